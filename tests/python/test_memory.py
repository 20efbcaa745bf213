"""What many requests over HTTP leave in a server's process: no object, no descriptor, no thread, no memory."""

import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from test_http import META
from vectors import MODERN

WARM, MANY, CLIENTS = 4_000, 20_000, 8
MIB = 1 << 20

PROGRAM = """
import asyncio, gc, json, os, sys
from mcp_resources import Context, ResourceNotFoundError, ResourceServer

server = ResourceServer("x", cache=True, metrics=True, audit=lambda entry: None)

def count(folder):
    return len(os.listdir(f"/proc/self/{folder}"))

@server.resource("state://x", inline=True)
def state() -> str:
    gc.collect()
    pages = int(open("/proc/self/statm").read().split()[1])
    return json.dumps({
        "rss": pages * os.sysconf("SC_PAGE_SIZE"), "objects": len(gc.get_objects()),
        "descriptors": count("fd"), "threads": count("task"),
    })

server.resource("def://{x}")(lambda x: "x" * 2_000)
server.resource("inline://{x}", inline=True)(lambda x: x)
server.resource("kept://{x}", ttl_ms=1)(lambda x: {"x": x})

@server.resource("async://{x}")
async def later(x: str, ctx: Context) -> str:
    ctx.progress(1)
    await asyncio.sleep(0)
    return x

@server.resource("none://{x}")
def none(x: str) -> str:
    raise ResourceNotFoundError()

if sys.argv[1] == "native":
    server.run("http", port=0)
else:
    import socket, uvicorn
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"Serving http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    uvicorn.Server(uvicorn.Config(server.asgi(), log_level="critical")).run([listener])
"""
KINDS = ["def", "inline", "kept", "async", "none"]


@contextmanager
def served(way: str) -> Iterator[str]:
    """The URL of the program, in a process of its own."""
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, way], stderr=subprocess.PIPE)
    assert process.stderr is not None
    try:
        yield process.stderr.readline().decode().split()[1]
    finally:
        process.terminate()
        process.wait(30)
        rest = process.stderr.read()
        process.stderr.close()
    assert b"Traceback" not in rest, rest.decode()


class Asker:
    """A client that keeps its connection."""

    def __init__(self, url: str) -> None:
        at = urlsplit(url)
        self._path = at.path
        self._connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=30)

    def read(self, uri: str) -> Any:
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": MODERN,
            "mcp-method": "resources/read",
            "mcp-name": uri,
        }
        params = {"uri": uri, "_meta": META}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params})
        self._connection.request("POST", self._path, body, headers)
        response = self._connection.getresponse()
        received = response.read()
        answer = json.loads(received)
        assert ("error" if uri.startswith("none:") else "result") in answer, answer
        return answer

    def close(self) -> None:
        self._connection.close()


def ask(url: str, times: int) -> None:
    """So many reads of every kind, by clients that stay and come again."""
    failed: list[BaseException] = []

    def client(number: int) -> None:
        try:
            for start in range(0, times // CLIENTS, 250):
                with closing(Asker(url)) as asker:
                    for at in range(start, start + 250):
                        asker.read(f"{KINDS[at % len(KINDS)]}://{number}-{at % 50}")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed[0]


def state(url: str) -> dict[str, int]:
    with closing(Asker(url)) as asker:
        found: dict[str, int] = json.loads(asker.read("state://x")["result"]["contents"][0]["text"])
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="it counts threads and files in /proc, which only Linux has")
@pytest.mark.parametrize("way", ["native", "asgi"])
def test_many_requests_leave_nothing_behind(way: str) -> None:
    with served(way) as url:
        ask(url, WARM)
        before = state(url)
        ask(url, MANY)
        after = state(url)
    print(f"{way}: {MANY} requests: before {before}, after {after}")
    grown = {name: after[name] - before[name] for name in after}
    assert grown["objects"] < 1_000, grown
    assert grown["descriptors"] < 10, grown
    assert grown["threads"] < 10, grown
    assert grown["rss"] < 8 * MIB, grown


SESSIONS = """
import asyncio, gc, os
from mcp_resources import ResourceServer
from mcp_resources._core import EmbeddedLoop, Embedding, Sender
from mcp_resources.driver import Driver

MANY = 10_000
ABOUT = {"protocolVersion": "2025-11-25", "capabilities": {}}
HELLO = ABOUT | {"clientInfo": {"name": "client", "version": "1"}}
GREETING = ABOUT | {"serverInfo": {"name": "app", "version": "1"}}

def memory():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

async def main():
    resources = ResourceServer("ours")
    resources.resource("a://{b}")(lambda b: b)
    sender = Sender(None, [], True)
    driver = Driver(asyncio.get_running_loop())
    clients = EmbeddedLoop(Embedding(resources._core, True), driver)

    def session(uri):
        made = clients.connect("2025-11-25", True, lambda: None)
        for method, params, theirs in [("initialize", HELLO, GREETING), ("resources/subscribe", {"uri": uri}, None)]:
            number = made.start(method, params, 1, sender, theirs)
            assert made.next(number)[0] == "result"
            made.end(number)
            made.tell("notifications/initialized", {}, sender)
        return made

    kept = [session("a://first") for _ in range(MANY // 10)]
    before = memory()
    kept += [session(f"a://{number}") for number in range(MANY)]
    print((memory() - before) // MANY)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it counts threads and files in /proc, which only Linux has")
def test_an_idle_session_of_an_attached_server_is_small() -> None:
    """After its handshake and a subscription, in bytes."""
    ran = subprocess.run([sys.executable, "-c", SESSIONS], capture_output=True, text=True, timeout=120, check=False)
    assert 0 < int(ran.stdout or -1) <= 6 * 1024, ran.stdout + ran.stderr
