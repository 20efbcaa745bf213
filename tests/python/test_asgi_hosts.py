"""The ASGI application in real servers and frameworks: uvicorn, Starlette, FastAPI, and processes that are forked."""

import asyncio
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from asgi_call import Call
from fastapi import FastAPI
from mcp_resources import Auth, Context, ResourceServer, Verified
from mcp_resources.testing import Client
from starlette.applications import Starlette
from starlette.routing import Mount
from test_asgi import HELLO, MODERN_META, modern, post, request
from vectors import MODERN

ENDING = 3.0
"""How long a server may take to end, in seconds."""

PROGRAM = """
import asyncio, sys
import uvicorn
from mcp_resources import ResourceServer

server = ResourceServer("hosted")

@server.resource("slow://x")
async def slow() -> str:
    await asyncio.sleep(60)
    return "late"

server.resource("note://a")(lambda: "x")
if __name__ == "__main__":
    options = {"limit_max_requests": 1} if "few" in sys.argv else {}
    uvicorn.run(server.asgi(), host="127.0.0.1", port=int(sys.argv[1]), log_level="info", **options)
"""


def headers(method: str, uri: str | None = None) -> dict[str, str]:
    named = {"Mcp-Name": uri} if uri else {}
    return {
        "Host": "localhost",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": method,
        **named,
    }


def listening() -> bytes:
    """A listen, as bytes of HTTP/1.1."""
    params = {"notifications": {"resourceSubscriptions": ["note://a"]}, "_meta": MODERN_META}
    body = json.dumps(request(1, "subscriptions/listen", **params)).encode()
    lines = [f"{name}: {value}" for name, value in headers("subscriptions/listen").items()]
    head = "\r\n".join(["POST /mcp HTTP/1.1", *lines, f"Content-Length: {len(body)}", "", ""])
    return head.encode() + body


def listening_port(process: "subprocess.Popen[str]") -> int:
    """The port that uvicorn says that it was given."""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"Uvicorn running on http://127\.0\.0\.1:(\d+)", line):
            return int(found[1])
    raise RuntimeError("uvicorn did not start")


@contextmanager
def uvicorn_process(*arguments: str) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """A uvicorn with the application, and its port."""
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, "0", *arguments], stderr=subprocess.PIPE, text=True)
    try:
        yield process, listening_port(process)
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_uvicorn_ends_with_an_open_listen(number: signal.Signals) -> None:
    """R-096: a stream of notifications does not keep the process alive, and ends with its result."""
    with uvicorn_process() as (process, port), socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(listening())
        received = b""
        while b"acknowledged" not in received:
            received += client.recv(65536)
        process.send_signal(number)
        process.wait(ENDING)
        while chunk := client.recv(65536):
            received += chunk
        assert b'"resultType"' in received.split(b"acknowledged", 1)[1]


def test_uvicorn_ends_after_its_last_request() -> None:
    """R-096: as `limit_max_requests` ends the workers of gunicorn, without a signal."""
    with uvicorn_process("few") as (process, port), socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(listening())
        received = b""
        while b"acknowledged" not in received:
            received += client.recv(65536)
        with socket.create_connection(("127.0.0.1", port), timeout=20) as last:
            last.sendall(b"GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert last.recv(65536)
            process.wait(ENDING)
        while chunk := client.recv(65536):
            received += chunk
        assert b'"resultType"' in received.split(b"acknowledged", 1)[1]


@pytest.mark.parametrize("options", [[], ["--http", "h11"]], ids=["default", "h11"])
def test_uvicorn_refuses_what_may_be_smuggled(options: list[str], tmp_path: Any) -> None:
    """RFC 9112, section 11.2: whatever the server around the application lets through."""
    (tmp_path / "hosted.py").write_text(PROGRAM + "\napp = server.asgi()\n", "utf-8")
    command = [sys.executable, "-m", "uvicorn", "hosted:app", "--port", "0", "--app-dir", str(tmp_path), *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        port = listening_port(process)
        start = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        hidden = "GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for bad in (
            f"{start}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
            f"{start}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{hidden}",
            f"{start}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}{hidden}",
            f"{start}X: a\x01b\r\nContent-Length: 2\r\n\r\n{{}}",
            f"{start}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n{hidden}",
            f"{start}Transfer-Encoding: gzip\r\n\r\n{hidden}",
            f"{start}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n{hidden}",
        ):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
                client.sendall(bad.encode())
                received = b""
                while chunk := client.recv(65536):
                    received += chunk
                assert received.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501")), (bad, received)
                assert received.count(b"HTTP/1.1 ") == 1, (bad, received)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def read(app: Any, path: str) -> Call:
    """A modern read of `note://a` at this path."""
    return post(
        app,
        request(1, "resources/read", uri="note://a", _meta=MODERN_META),
        path=path,
        mcp_protocol_version=MODERN,
        mcp_method="resources/read",
        mcp_name="note://a",
    )


def mounted(framework: str, prefix: str, app: Any) -> Any:
    if framework == "starlette":
        return Starlette(routes=[Mount(prefix, app=app)])
    made = FastAPI()
    made.mount(prefix, app)
    return made


@pytest.mark.parametrize("framework", ["starlette", "fastapi"])
async def test_the_endpoint_is_the_mount_and_what_follows_it(server: ResourceServer, framework: str) -> None:
    server.resource("note://a")(lambda: "x")
    for prefix, path in (
        ("/mcp", "/mcp/"),
        ("/mcp", "/mcp/mcp"),
        ("/mcp", "/mcp/mcp/"),
        ("/api", "/api/mcp"),
        ("/api", "/api/mcp/"),
        ("/api", "/api/"),
        ("/", "/mcp"),
        ("/", "/mcp/"),
    ):
        call = read(mounted(framework, prefix, server.asgi()), path)
        assert (await call.json())["result"]["contents"][0]["text"] == "x", path
    call = read(mounted(framework, "/api", server.asgi()), "/api/other")
    assert call.task is not None
    assert (await call.json())["error"]["message"] == (
        'Nothing is served at "/api/other": the endpoint is at "/api/mcp"'
    )
    assert call.status == 404


@pytest.mark.parametrize("framework", [None, "starlette", "fastapi"])
async def test_only_one_final_slash_makes_no_difference(server: ResourceServer, framework: str | None) -> None:
    """R-155: other spellings of a path are refused, and nothing is redirected."""
    server.resource("note://a")(lambda: "x")
    app = server.asgi(health="/health", metrics=True)
    app = app if framework is None else mounted(framework, "/", app)
    for path in ("/mcp", "/mcp/"):
        assert (await read(app, path).json())["result"]["contents"][0]["text"] == "x", path
    for path in ("/mcp//", "//mcp", "/mcp/.", "/mcp/x", "/MCP"):
        call = read(app, path)
        await call.json()
        assert call.status == 404, path
    for path in ("/health", "/health/", "/metrics", "/metrics/"):
        call = post(app, None, verb="GET", path=path)
        await call.until(lambda call=call: call.done)
        assert call.status == 200, path


async def test_an_encoded_slash_is_no_slash(server: ResourceServer) -> None:
    """An ASGI server decodes the path; what was sent decides."""
    app = server.asgi(health="/health")
    for raw in (b"/mcp%2F", b"/mcp%2f", b"%2Fmcp", b"/health%2F"):
        scope = {
            "type": "http",
            "method": "GET",
            "path": raw.decode().replace("%2F", "/").replace("%2f", "/"),
            "raw_path": raw,
            "headers": [(b"host", b"localhost")],
            "query_string": b"",
            "root_path": "",
        }
        sent: list[Any] = []

        async def send(message: Any, sent: list[Any] = sent) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        await app(scope, receive, send)
        assert sent[0]["status"] == 404, raw


@pytest.mark.parametrize("framework", ["starlette", "fastapi"])
async def test_the_metadata_is_found_below_a_mount(server: ResourceServer, framework: str) -> None:
    """R-196, R-198: the challenge names a document that answers."""

    async def verify(token: str) -> Verified:
        return Verified(token)

    auth = Auth("http://localhost/auth/mcp", ["https://login.example.com"], verify)
    app = mounted(framework, "/auth", server.asgi(auth=auth))
    call = read(app, "/auth/mcp")
    await call.json()
    assert call.status == 401
    _, _, url = call.headers["www-authenticate"].partition('resource_metadata="http://localhost')
    document = post(app, None, verb="GET", path=url.partition('"')[0])
    assert (await document.json())["resource"] == "http://localhost/auth/mcp"
    assert document.status == 200


async def test_a_refusal_names_the_option(server: ResourceServer, caplog: pytest.LogCaptureFixture) -> None:
    """R-156, R-157: in the answer, and in the log once for each value."""
    app = server.asgi()
    with caplog.at_level(logging.WARNING, "mcp_resources"):
        for _ in range(3):
            for given, option in (({"host": "0.0.0.0:8000"}, "hosts"), ({"origin": "https://a.example"}, "origins")):
                call = post(app, None, verb="GET", **given)
                answer = await call.json()
                assert call.status == 403
                assert next(iter(given.values())) in answer["error"]["message"]
                assert f'"{option}"' in answer["error"]["message"]
        await post(app, None, verb="GET", path="/mpc?key=secret").json()
    logged = [record.getMessage() for record in caplog.records]
    assert [sum(word in line for line in logged) for word in ("0.0.0.0", "a.example", "/mpc")] == [1, 1, 1]
    assert not any("secret" in line for line in logged)


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    """R-190: half a body, and then nothing."""
    app = ResourceServer("slow", limits={"body_timeout": 50}).asgi()
    call = post(app, request(1, "ping"))
    call.task.cancel()
    received: list[Any] = []
    first = [{"type": "http.request", "body": b'{"json', "more_body": True}]

    async def receive() -> Any:
        return first.pop() if first else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        received.append(message)

    await asyncio.wait_for(app(call.scope, receive, send), 10)
    assert received[0]["status"] == 408


async def test_bodies_have_a_bound_together() -> None:
    """A body that waits for its rest takes its place from others; one that came at once does not."""
    server = ResourceServer("many", limits={"bodies_total": 100})
    server.resource("note://a")(lambda: "x")
    app = server.asgi()
    call = post(app, request(1, "ping"))
    call.task.cancel()
    waits = asyncio.Event()
    statuses: list[int] = []

    def body(*chunks: bytes) -> Any:
        given = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in reversed(chunks)]

        async def receive() -> Any:
            return given.pop() if given else await waits.wait()

        return receive

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    one = asyncio.ensure_future(app(call.scope, body(b" " * 80), send))
    await asyncio.sleep(0)
    await asyncio.wait_for(app(call.scope, body(b" " * 80), send), 10)
    assert statuses == [503]
    read_now = modern(app, 1, "resources/read", uri="note://a")
    assert (await read_now.json())["result"]["contents"][0]["text"] == "x"
    one.cancel()


async def test_anonymous_clients_are_apart_by_their_address() -> None:
    """R-211, R-204: one client takes nothing from the others, and is not the local process."""
    policy = {"rate": {"read": {"per_second": 0.001, "burst": 1}}, "scopes": {"secret://**": "admin"}}
    policy["principals"] = {"": {"scopes": "admin"}}
    server = ResourceServer("rated", guard=policy)  # type: ignore[arg-type]
    server.resource("note://a")(lambda ctx: ctx.principal)
    server.resource("secret://a")(lambda: "secret")
    app = server.asgi()

    async def ask(address: str, uri: str = "note://a") -> Any:
        call = read(app, "/mcp")
        call.task.cancel()
        body = json.dumps(request(1, "resources/read", uri=uri, _meta=MODERN_META)).encode()
        lines = [(name.lower().encode(), value.encode()) for name, value in headers("resources/read", uri).items()]

        async def addressed(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, "client": (address, 1)}, receive, send)

        return await Call(addressed, "POST", "/mcp", lines, body).json()

    answer = await ask("192.0.2.1")
    assert answer["result"]["contents"][0]["text"] == "anonymous"
    assert "error" in await ask("192.0.2.1")
    assert "result" in await ask("192.0.2.2")
    assert "error" in await ask("192.0.2.3", "secret://a")


def test_sessions_of_one_address_have_a_bound() -> None:
    """R-169."""

    async def run() -> list[int]:
        app = ResourceServer("few", limits={"sessions_per_client": 2}).asgi()
        statuses = []
        for address in ("192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2"):

            async def addressed(scope: Any, receive: Any, send: Any, address: str = address) -> None:
                await app({**scope, "client": (address, 1)}, receive, send)

            call = post(addressed, request(0, "initialize", **HELLO))
            await call.json()
            statuses.append(call.status)
        return statuses

    assert asyncio.run(run()) == [200, 200, 429, 200]


def test_processes_that_are_forked_serve() -> None:
    """As gunicorn does with `preload`: registered once, then forked."""
    server = ResourceServer("forked")
    server.resource("note://a")(lambda: "x")

    async def run() -> Any:
        return await read(server.asgi(), "/mcp").json()

    for _ in range(2):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                answer = asyncio.run(asyncio.wait_for(run(), 20))
                os.write(writing, answer["result"]["contents"][0]["text"].encode())
                code = 0
            finally:
                os._exit(code)
        os.close(writing)
        with os.fdopen(reading, "rb") as told:
            assert told.read() == b"x"
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


async def test_handlers_see_headers_without_credentials(server: ResourceServer) -> None:
    """R-208."""

    @server.resource("note://a")
    def note(ctx: Context) -> str:
        return json.dumps(ctx.headers)

    call = post(
        server.asgi(),
        request(1, "resources/read", uri="note://a", _meta=MODERN_META),
        mcp_protocol_version=MODERN,
        mcp_method="resources/read",
        mcp_name="note://a",
        x_tenant="acme",
        cookie="secret",
        authorization="Bearer secret",
    )
    found = json.loads((await call.json())["result"]["contents"][0]["text"])
    assert found["x-tenant"] == "acme"
    assert "secret" not in json.dumps(found)
    async with Client(server) as client:
        assert json.loads(await client.read_text("note://a")) == {}
