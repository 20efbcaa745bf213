"""The native HTTP server under a Python program: its threads beside the event loop, tokens, the end."""

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from mcp_resources import Auth, Context, InvalidTokenError, Resource, ResourceServer, Verified
from vectors import MODERN

META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@asynccontextmanager
async def serving(server: ResourceServer, **options: Any) -> AsyncIterator[str]:
    loop = asyncio.get_running_loop()
    started: asyncio.Future[str] = loop.create_future()
    task = asyncio.create_task(server.serve_http(port=0, started=started.set_result, **options))
    try:
        yield await started
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def post(url: str, method: str, token: str | None = None, **params: Any) -> tuple[int, Any]:
    """One modern request. Blocks."""
    at = urlsplit(url)
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": method,
    }
    if "uri" in params:
        headers["mcp-name"] = params["uri"]
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=30)
    try:
        connection.request("POST", at.path, json.dumps(message), headers)
        response = connection.getresponse()
        body = response.read()
        return response.status, json.loads(body) if body else None
    finally:
        connection.close()


async def read(url: str, uri: str, token: str | None = None) -> Any:
    _, answer = await asyncio.to_thread(post, url, "resources/read", token, uri=uri)
    return answer["result"]["contents"][0]["text"]


async def test_handlers_of_every_kind(server: ResourceServer) -> None:
    loop_thread = threading.get_ident()

    @server.resource("pool://{x}")
    def pool(x: str) -> str:
        return f"{x} {threading.get_ident() == loop_thread}"

    @server.resource("inline://{x}", inline=True)
    def inline(x: str) -> str:
        return f"{x} {threading.get_ident() == loop_thread}"

    @server.resource("task://{x}")
    async def task(x: str) -> str:
        await asyncio.sleep(0.01)
        return f"{x} {threading.get_ident() == loop_thread}"

    async with serving(server) as url:
        answers = await asyncio.gather(
            *(read(url, f"{kind}://{n}") for n in range(5) for kind in ("pool", "inline", "task"))
        )
    expected = [f"{n} {thread}" for n in range(5) for thread in (False, True, True)]
    assert answers == expected


async def test_what_the_engine_knows_does_not_wait_for_the_loop(server: ResourceServer) -> None:
    """A handler holds the event loop; constants, lists and errors are answered all the same."""
    server.add_resource(Resource("text://x"), text="constant")
    held, free = threading.Event(), threading.Event()

    @server.resource("hold://x", inline=True)
    def hold() -> str:
        held.set()
        assert free.wait(20)
        return "let go"

    answers: list[Any] = []

    def ask(url: str) -> None:
        assert held.wait(20)
        answers.append(post(url, "resources/read", uri="text://x")[1]["result"]["contents"][0]["text"])
        answers.append(len(post(url, "resources/list")[1]["result"]["resources"]))
        answers.append(post(url, "resources/read", uri="none://x")[1]["error"]["code"])
        free.set()

    async with serving(server) as url:
        thread = threading.Thread(target=ask, args=(url,))
        thread.start()
        assert await read(url, "hold://x") == "let go"
        await asyncio.to_thread(thread.join)
    assert answers == ["constant", 2, -32602]


async def test_a_handler_notifies_its_own_session(server: ResourceServer) -> None:
    """R-083: from the loop and from a worker thread, while the server's threads write."""

    def notify() -> str:
        server.notify_updated("note://a")
        return "told"

    server.resource("note://a")(lambda: "x")
    server.resource("tell://worker")(notify)
    server.resource("tell://inline", inline=True)(notify)
    async with serving(server) as url:
        assert await asyncio.to_thread(tell, url, ["tell://worker", "tell://inline"]) == ["told", "told"]


def tell(url: str, uris: list[str]) -> list[str]:
    """Reads in a session that watches `note://a`, and waits for a notification after each. Blocks."""
    at = urlsplit(url)
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    caller, watcher = (http.client.HTTPConnection(at.hostname or "", at.port, timeout=30) for _ in range(2))

    def call(method: str, **params: Any) -> Any:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        caller.request("POST", at.path, json.dumps({"id": 1, **message}), headers)
        response = caller.getresponse()
        if session := response.headers["mcp-session-id"]:
            headers["mcp-session-id"] = session
        return json.loads(response.read())["result"]

    try:
        call("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "c", "version": "1"})
        message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        caller.request("POST", at.path, json.dumps(message), headers)
        caller.getresponse().read()
        call("resources/subscribe", uri="note://a")
        watcher.request("GET", at.path, headers=headers)
        stream, texts = watcher.getresponse(), []
        for uri in uris:
            texts.append(call("resources/read", uri=uri)["contents"][0]["text"])
            while b"note://a" not in stream.readline():
                pass
        return texts
    finally:
        caller.close()
        watcher.close()


async def test_tokens_are_verified_on_the_loop(server: ResourceServer) -> None:
    """R-195, R-198, R-202."""
    asked: list[str] = []

    @server.resource("me://x")
    def me(ctx: Context) -> str:
        return ctx.principal

    async def verify(token: str) -> Verified:
        asked.append(token)
        await asyncio.sleep(0)
        if token == "bad":
            raise InvalidTokenError
        if token == "broken":
            raise RuntimeError("no answer")
        return Verified(f"user of {token}", ["read"], expires=time.time() + 60 if token == "kept" else None)

    auth = Auth("https://api.example.com/mcp", ["https://login.example.com"], verify)
    async with serving(server, auth=auth) as url:
        assert await read(url, "me://x", "kept") == "user of kept"
        assert await read(url, "me://x", "kept") == "user of kept"
        assert await read(url, "me://x", "once") == await read(url, "me://x", "once") == "user of once"
        for token, status in ((None, 401), ("bad", 401), ("broken", 503)):
            answer = await asyncio.to_thread(post, url, "resources/read", token, uri="me://x")
            assert answer[0] == status, token
    assert asked == ["kept", "once", "once", "bad", "broken"]


async def test_an_address_that_is_taken(server: ResourceServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            await server.serve_http(port=taken.getsockname()[1])


async def test_a_name_is_served_at_all_of_its_addresses(server: ResourceServer) -> None:
    """`localhost` is 127.0.0.1 and, where this machine has it, ::1."""
    server.resource("note://a")(lambda: "x")
    addresses = {info[4][0] for info in socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM)}
    async with serving(server, host="localhost") as url:
        port = urlsplit(url).port
        for address in sorted(addresses):
            try:
                with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
                    probe.bind((address, 0))
            except OSError:
                continue
            shown = f"[{address}]" if ":" in address else address
            status, answer = await asyncio.to_thread(
                post, f"http://{shown}:{port}/mcp/", "resources/read", uri="note://a"
            )
            assert (status, answer["result"]["contents"][0]["text"]) == (200, "x"), address


async def test_cancelling_it_lets_what_is_in_flight_finish(server: ResourceServer) -> None:
    started = asyncio.Event()

    @server.resource("slow://x")
    async def slow() -> str:
        started.set()
        while await listening(url):
            await asyncio.sleep(0.001)
        return "finished"

    async with serving(server) as url:
        reading = asyncio.create_task(read(url, "slow://x"))
        await started.wait()
    assert await reading == "finished"


async def listening(url: str) -> bool:
    """Whether the server takes new connections."""
    try:
        _, writer = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
    except OSError:
        return False
    writer.close()
    return True


PROGRAM = """
import asyncio
import sys
from mcp_resources import ResourceServer
server = ResourceServer("end")
@server.resource("slow://x")
async def slow() -> str:
    print("started", file=sys.stderr)
    await asyncio.sleep(0.3)
    return "finished"
server.run("http", port=0)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process(number: signal.Signals) -> None:
    """What is in flight is answered, and the code is 0."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=subprocess.PIPE, env=environment)
    assert process.stderr is not None
    url = process.stderr.readline().decode().split()[1]
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(post(url, "resources/read", uri="slow://x")))
    thread.start()
    assert process.stderr.readline() == b"started\n"
    process.send_signal(number)
    thread.join(30)
    assert process.wait(30) == 0
    assert process.stderr.read() == b""
    process.stderr.close()
    assert answers[0][1]["result"]["contents"][0]["text"] == "finished"


async def test_by_default_only_this_machine_is_served(server: ResourceServer) -> None:
    """R-158: the address is one that no other machine reaches, not every address of this one."""
    async with serving(server) as url:
        at = urlsplit(url)
        assert at.hostname == "127.0.0.1"
        socket.create_connection(("127.0.0.1", at.port)).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", at.port))
