"""The servers as processes over real pipes: bad input, concurrency, memory, the end. One text for every language.

Each line that a server writes is parsed and validated by `process.Server` on the way (R-005, R-146, R-148).
"""

import json
import random
import signal
import socket
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from ports import reserved_port
from process import Server, build, command, eventually, running
from vectors import MODERN, SUBSCRIPTION_ID

SLOW = "test://slow/{}"
MEGABYTE = 1 << 20
LANGUAGES = ["rust", "python", "node"]


@pytest.fixture(params=LANGUAGES)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    build(request.param)
    with running(command(request.param)) as server:
        yield server


def alive(server: Server) -> bool:
    """Whether the connection goes on."""
    server.modern("alive", "resources/read", {"uri": "test://static-text"})
    return "result" in server.response("alive")


BAD_LINES = [
    (b"{bad", {-32700}),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"', {-32700}),
    (b"\xff\xfe\x00", {-32700}),
    (b'{"jsonrpc":"2.0","id":1,"method":"\xc3\x28"}', {-32700}),
    (b"nul", {-32700}),
    (b"{}", {-32600}),
    (b"[]", {-32600}),
    (b"[1,2]", {-32600}),
    (b"42", {-32600}),
    (b'"text"', {-32600}),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', {-32600}),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', {-32600}),
    (b'{"jsonrpc":"2.0","method":7}', {-32600}),
    (b"[" * 100_000, {-32600, -32700}),
    (b'{"a":' * 100_000, {-32600, -32700}),
    (b"[" * 100_000 + b"]" * 100_000, {-32600, -32700}),
]


def test_bad_lines_are_refused_and_the_connection_goes_on(server: Server) -> None:
    """R-001, R-002, R-010, R-011, R-018: one error for each, no more, and the next request is served."""
    for line, codes in BAD_LINES:
        server.write(line + b"\n")
        answer = server.next()
        assert answer is not None, line[:80]
        assert "id" not in answer, line[:80]
        assert answer["error"]["code"] in codes, line[:80]
    assert alive(server)


BAD_REQUESTS = [
    ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, -32600),
    ({"id": 1, "method": "ping"}, -32600),
    ({"jsonrpc": "2.0", "id": 1, "method": "resources/list"}, -32602),
    ({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": []}, -32602),
]


BAD_CALLS: list[tuple[str, dict[str, Any], int]] = [
    ("no/such", {}, -32601),
    ("tools/list", {}, -32601),
    ("prompts/get", {"name": "x"}, -32601),
    ("resources/read", {}, -32602),
    ("resources/read", {"uri": 5}, -32602),
    ("resources/list", {"cursor": "forged"}, -32602),
    ("completion/complete", {"ref": 1}, -32602),
    ("subscriptions/listen", {}, -32602),
]


def test_bad_requests_are_refused_with_their_id(server: Server) -> None:
    """R-003, R-009, R-011, R-012, R-013."""
    for message, code in BAD_REQUESTS:
        server.send(message)
        assert server.response(1)["error"]["code"] == code, message
    for method, params, code in BAD_CALLS:
        assert server.ask(2, method, params)["error"]["code"] == code, method
    assert alive(server)


HOSTILE = [
    "",
    "not a uri",
    "file:///etc/passwd",
    "test://template/..%2f..%2fetc%2fpasswd/data",
    "test://path/../../etc/passwd",
    "test://path/%2e%2e/%2e%2e/etc/passwd",
    "test://path//etc/passwd",
    "test://path/a%00b",
    "test://users/a%2Fb/files/c",
    "test://users/../files/c",
    "test://template/%FF/data",
    "test://template/%zz/data",
    "test://template/" + "a" * 100_000 + "/data",
    "test://" + "a-" * 20_000,
    "javascript:alert(1)",
    "test://template/\u0000/data",
]


def test_hostile_uris_are_refused(server: Server) -> None:
    """R-069, R-074: not found or invalid, in both eras, and no handler's text."""
    server.initialize()
    for uri in HOSTILE:
        assert server.ask(1, "resources/read", {"uri": uri})["error"]["code"] == -32602, uri[:80]
        server.request(2, "resources/read", {"uri": uri})
        assert server.response(2)["error"]["code"] in {-32002, -32602}, uri[:80]
    assert alive(server)


def test_a_huge_line_is_refused_in_bounded_memory(server: Server) -> None:
    """R-153: 200 MB on one line are one error, and cost no memory."""
    assert alive(server)
    before = server.memory()
    peak = before
    chunk = b"x" * MEGABYTE
    for count in range(200):
        server.write(chunk)
        if count % 20 == 0:
            peak = max(peak, server.memory())
    server.write(b"\n")
    answer = server.next()
    assert answer is not None
    assert answer["error"]["code"] in {-32600, -32700}
    assert alive(server)
    assert max(peak, server.memory()) - before < 32 * MEGABYTE


def test_a_message_comes_in_single_bytes(server: Server) -> None:
    """R-145: any chunking, both line ends, blank lines."""
    server.asked["1"] = {"method": "ping"}
    for byte in b'\r\n\n{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n':
        server.write(bytes([byte]))
    assert server.response(1) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert alive(server)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_socket_carries_the_same_framing(language: str) -> None:
    """R-154: a Unix socket in the place of both pipes."""
    build(language)
    with running(command(language), socket=True) as server:
        server.initialize()
        server.request(1, "resources/subscribe", {"uri": "test://watched-resource"})
        server.response(1)
        server.modern(2, "resources/read", {"uri": "test://large-text"})
        assert len(server.response(2)["result"]["contents"][0]["text"]) == 1_000_000
        assert server.ask(3, "resources/read", {"uri": "test://trigger/updated"})["result"]
        told = server.next()
        assert told is not None
        assert told["method"] == "notifications/resources/updated"
        server.end_input()
        assert server.wait() == 0


def test_a_client_that_does_not_read_costs_no_memory(server: Server) -> None:
    """DEC-17: above a high-water mark the server stops to read."""
    assert alive(server)
    server.pause(True)
    before, count = server.memory(), 100

    def flood() -> None:
        for number in range(count):
            server.modern(number, "resources/read", {"uri": "test://large-text"})

    writer = threading.Thread(target=flood)
    writer.start()
    time.sleep(2)
    grown = server.memory() - before
    server.pause(False)
    for number in range(count):
        assert len(server.response(number)["result"]["contents"][0]["text"]) == 1_000_000
    writer.join()
    assert grown < 48 * MEGABYTE


def test_a_hundred_slow_reads_run_at_once(server: Server) -> None:
    """R-149, R-040: each is answered once, on a line of its own, and nobody waits for another."""
    server.initialize()
    delays = {number: random.Random(number).randrange(100, 600) for number in range(100)}
    started = time.monotonic()
    for number, delay in delays.items():
        server.request(number, "resources/read", {"uri": SLOW.format(delay)})
    server.request("ping", "ping")
    assert server.response("ping")["result"] == {}
    assert time.monotonic() - started < 30
    for number, delay in delays.items():
        assert server.response(number)["result"]["contents"][0]["text"] == f"slept {delay}"
    assert time.monotonic() - started < sum(delays.values()) / 1000 / 2


def test_an_id_in_flight_is_refused(server: Server) -> None:
    """DEC-02: the newcomer, not the first."""
    server.modern(1, "resources/read", {"uri": SLOW.format(500)})
    server.modern(1, "resources/read", {"uri": SLOW.format(500)})
    assert server.response(1)["error"]["code"] == -32600
    assert server.response(1)["result"]["contents"][0]["text"] == "slept 500"


def test_a_cancelled_read_is_not_answered(server: Server) -> None:
    """R-127, R-128: and its slot is free again."""
    server.modern(1, "resources/read", {"uri": SLOW.format(300)})
    for id in (1, 1, 99, "1", None):
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
    assert server.silent(0.8)
    assert server.ask(1, "resources/read", {"uri": SLOW.format(1)})["result"]["contents"][0]["text"] == "slept 1"


def test_both_eras_take_turns(server: Server) -> None:
    """R-025, R-026, R-027: 100 requests of both on one process, each in the shape of its own."""
    server.initialize("2025-06-18")
    for number in range(100):
        (server.modern if number % 2 else server.request)(number, "resources/read", {"uri": "test://static-text"})
    for number in range(100):
        result = server.response(number)["result"]
        expected = {"contents", "resultType", "ttlMs", "cacheScope", "_meta"} if number % 2 else {"contents"}
        assert set(result) == expected, number


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_each_revision_hears_of_changes(server: Server, revision: str) -> None:
    """R-037, R-081, R-083, R-076."""
    assert server.initialize(revision)["protocolVersion"] == revision
    server.request(1, "resources/subscribe", {"uri": "test://watched-resource"})
    assert server.response(1)["result"] == {}
    server.request(2, "resources/read", {"uri": "test://trigger/updated"})
    server.response(2)
    heard = server.next()
    assert heard is not None
    assert heard["method"] == "notifications/resources/updated"
    assert heard["params"] == {"uri": "test://watched-resource"}
    server.request(3, "resources/read", {"uri": "test://trigger/list-changed"})
    server.response(3)
    changed = server.next()
    assert changed is not None
    assert changed["method"] == "notifications/resources/list_changed"


def test_a_change_before_initialized_is_told_after_it(server: Server) -> None:
    """R-038, DEC-08: held back, not lost, and told without waiting for another message."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    server.request("initialize", "initialize", params)
    server.response("initialize")
    server.negotiated = "2025-11-25"
    server.request(1, "resources/subscribe", {"uri": "test://watched-resource"})
    server.request(2, "resources/read", {"uri": "test://trigger/updated"})
    server.response(2)
    assert server.response(1)["result"] == {}
    assert server.silent(0.3)
    server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    told = server.next(5)
    assert told is not None
    assert told["method"] == "notifications/resources/updated"


def test_every_line_is_an_answer_or_belongs_to_a_listen(server: Server) -> None:
    """R-148, R-088, R-091, R-098, R-024: classified one by one, after everything at once."""
    filter = {"resourcesListChanged": True, "resourceSubscriptions": ["test://watched-resource", "test://none"]}
    server.modern("listen", "subscriptions/listen", {"notifications": filter})
    for number, uri in enumerate(["test://trigger/updated", "test://error", "test://none", SLOW.format(50)] * 5):
        server.modern(number, "resources/read", {"uri": uri, "_meta": {"progressToken": number}})
    seen: set[object] = set()
    while len(seen) < 20:
        message = server.next()
        assert message is not None
        if "id" in message:
            assert message["id"] not in seen
            seen.add(message["id"])
            assert "secret-detail" not in json.dumps(message), "R-014"
        elif message["method"] == "notifications/progress":
            assert message["params"]["progressToken"] not in seen
        else:
            assert message["params"]["_meta"][SUBSCRIPTION_ID] == "listen"
    first = next(json.loads(line) for line in server.lines if b"subscriptionId" in line)
    assert first["method"] == "notifications/subscriptions/acknowledged"


def test_the_end_of_input_ends_the_process(server: Server) -> None:
    """R-044, R-150: what is in flight may finish within a second, the rest is cancelled, the code is 0."""
    assert alive(server)
    server.modern(1, "resources/read", {"uri": SLOW.format(200)})
    server.modern(2, "resources/read", {"uri": SLOW.format(60_000)})
    started = time.monotonic()
    server.end_input()
    assert server.wait() == 0
    assert time.monotonic() - started < 30
    assert [message["id"] for message in server.rest()] == [1]


def test_an_idle_process_ends_at_once(server: Server) -> None:
    """R-150."""
    assert alive(server)
    started = time.monotonic()
    server.end_input()
    assert server.wait() == 0
    assert time.monotonic() - started < 2


def test_a_signal_ends_the_process_gracefully(server: Server) -> None:
    """R-150, R-096, R-097: each listen gets its result, then cancelled; the code is 0."""
    for id in ("a", 2):
        server.modern(id, "subscriptions/listen", {"notifications": {"resourcesListChanged": True}})
        acknowledged = server.next()
        assert acknowledged is not None
    started = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    assert server.wait() == 0
    assert time.monotonic() - started < 30
    rest = server.rest()
    for id in ("a", 2):
        own = [m for m in rest if m.get("id") == id or m.get("params", {}).get("requestId") == id]
        assert [list(message)[-1] for message in own] == ["result", "params"]
        assert own[0]["result"]["_meta"][SUBSCRIPTION_ID] == id
        assert own[1]["method"] == "notifications/cancelled"
    assert len(rest) == 4


def test_what_nobody_sent_is_not_written(server: Server) -> None:
    """R-147, R-019: a server that is not spoken to says nothing on stdout."""
    assert server.silent(0.5)
    server.send({"jsonrpc": "2.0", "id": 77, "result": {}})
    server.send({"jsonrpc": "2.0", "method": "notifications/unknown"})
    assert server.silent(0.5)


NOISY = """
    import ctypes, logging, os, subprocess, sys, warnings
    from mcp_resources import ResourceServer

    server = ResourceServer("noisy", version="1")
    logging.basicConfig(stream=sys.stdout)

    @server.resource("test://noisy")
    def noisy() -> str:
        print("printed")
        sys.stdout.write("written")
        sys.stdout.flush()
        sys.__stdout__.write("more")
        logging.getLogger("x").warning("logged")
        warnings.warn("warned")
        os.write(1, b"to the descriptor")
        subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
        ctypes.CDLL(None).puts(b"from C")
        ctypes.CDLL(None).fflush(None)
        sys.stdin.read()
        print("Grüße", file=sys.stderr)
        return "quiet"

    server.run()
"""


NARROW = """
    from mcp_resources import Limits, Resource, ResourceServer

    server = ResourceServer("narrow", version="1", limits=Limits(output=1))
    server.add_resource(Resource("test://text"), text="x" * 100)
    server.run()
"""


def test_lines_that_wait_for_room_are_served_without_another() -> None:
    """R-149, R-153, R-212: the output is full after each answer; what came in the same write is served all the same."""
    with running([sys.executable, "-c", textwrap.dedent(NARROW)]) as server:
        meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
        params = {"uri": "test://text", "_meta": meta}
        lines = b""
        for number in range(5):
            message = {"jsonrpc": "2.0", "id": number, "method": "resources/read", "params": params}
            server.asked[str(number)] = message
            lines += json.dumps(message).encode() + b"\n"
        server.write(lines)
        for number in range(5):
            assert server.response(number)["result"]["contents"][0]["text"] == "x" * 100


NARROW_WORKERS = """
    from mcp_resources import Limits, ResourceServer

    server = ResourceServer("narrow", version="1", limits=Limits(output=1))

    @server.resource("test://text/{x}")
    def text(x: str) -> str:
        return x

    server.run()
"""


def test_jobs_that_wait_for_room_start_whichever_thread_has_made_it() -> None:
    """R-149: the output is full after each answer, which the worker writes itself. The others start all the same."""
    with running([sys.executable, "-c", textwrap.dedent(NARROW_WORKERS)]) as server:
        meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
        lines = b""
        for number in range(100):
            params = {"uri": f"test://text/{number}", "_meta": meta}
            message = {"jsonrpc": "2.0", "id": number, "method": "resources/read", "params": params}
            server.asked[str(number)] = message
            lines += json.dumps(message).encode() + b"\n"
        server.write(lines)
        for number in range(100):
            assert server.response(number)["result"]["contents"][0]["text"] == str(number)


def test_what_a_handler_prints_stays_out_of_the_protocol() -> None:
    """R-146, R-147: print, logging, the descriptor itself, child processes and C: stdout carries messages alone."""
    with running([sys.executable, "-c", textwrap.dedent(NOISY)]) as server:
        for number in range(3):
            answer = server.ask(number, "resources/read", {"uri": "test://noisy"})
            assert answer["result"]["contents"][0]["text"] == "quiet", server.errors
        server.end_input()
        assert server.wait() == 0
        assert len(server.lines) == 3
        assert eventually(lambda: "Grüße".encode() in server.errors)


def test_the_revision_of_a_modern_request_is_its_own(server: Server) -> None:
    """R-028, R-030: and the versions are those of discover."""
    discovered = server.ask(1, "server/discover")["result"]
    server.modern(2, "server/discover", {"_meta": {"io.modelcontextprotocol/protocolVersion": "1900-01-01"}})
    refused = server.response(2)["error"]
    assert refused["code"] == -32022
    assert refused["data"] == {"supported": discovered["supportedVersions"], "requested": "1900-01-01"}
    assert discovered["supportedVersions"][0] == MODERN


def test_a_print_of_a_handler_is_no_message(server: Server) -> None:
    """R-146: it goes to standard error; each line of the output is parsed and validated on the way."""
    server.initialize()
    for number in range(1, 4):
        assert server.ask(number, "resources/read", {"uri": "test://trigger/print"})["result"]
    assert eventually(lambda: server.errors.count(b"a stray print") == 3), server.errors
    assert not any(b"stray" in line for line in server.lines)
    assert alive(server)


def test_a_reserved_port_is_given_to_no_other_socket() -> None:
    """Neither to one that listens on any free port nor to one that connects, and a server may still listen on it."""
    with reserved_port() as port:
        for _ in range(2):
            with socket.create_server(("127.0.0.1", port)) as server:
                for _ in range(1_000):
                    with socket.create_server(("127.0.0.1", 0)) as other:
                        assert other.getsockname()[1] != port
                    with socket.create_connection(("127.0.0.1", port)) as client, server.accept()[0]:
                        assert client.getsockname()[1] != port
