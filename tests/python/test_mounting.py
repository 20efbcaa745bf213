"""Providers that are mounted: over every entry, in both eras, under the guard, from many threads, and what they leave.

`serves()` is also what a process of its own serves: see `PROGRAM`.
"""

import asyncio
import base64
import gc
import http.client
import json
import mmap
import os
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from mcp_resources import (
    Contents,
    RegistrationError,
    Resource,
    ResourceNotFoundError,
    ResourceServer,
    providers,
)
from mcp_resources.testing import Client, Connection, ServerError
from stdio_process import read as line
from test_asgi import initialize, modern
from test_http import META, post, serving
from test_lifecycle import until
from vectors import MODERN

LEGACY = "2025-06-18"
ERAS = [MODERN, LEGACY]
BIG = "x" * 200_000
ENTRIES = "memory:///{+path}"
Ask = Callable[..., Awaitable[dict[str, Any]]]
"""Sends a request, and returns the answer: `result` or `error`."""

HERE = Path(__file__).parent
PROGRAM = "import test_mounting; test_mounting.serves().run()"


def provides() -> ResourceServer:
    """A server of a clock and a folder."""
    server = ResourceServer("mounted", limits={"page": 200})
    folder = providers.memory()
    folder.put("notes/a b.md", "Buy milk", "text/markdown")
    folder.put("notes/plain", "text")
    folder.put("blob", bytearray(b"\0\1"))
    folder.put("big", BIG)
    for number in range(250):
        folder.put(f"many/{number}", "one of many")
    server.mount(providers.clock(), folder)
    return server


def serves() -> ResourceServer:
    """The same, and functions that list before, between and after them."""
    server = provides()
    own = server.resource("own://{x}")(lambda x: x)
    own.list(lambda: [Resource("own://listed")])

    @server.resource("between://{x}")
    async def between(x: str) -> str:
        return x

    @between.list
    async def listed() -> list[Resource]:
        await asyncio.sleep(0)
        return [Resource("between://listed")]

    server.resource("during://{x}")(lambda x: x).list(lambda: [Resource("during://listed")])
    return server


@asynccontextmanager
async def by_client(server: ResourceServer, era: str) -> AsyncIterator[Ask]:
    async with Client(server, revision=era) as client:

        async def ask(method: str, **params: Any) -> dict[str, Any]:
            try:
                return {"result": await client.request(method, params)}
            except ServerError as error:
                return {"error": {"message": error.message, "data": error.data}}

        yield ask


@asynccontextmanager
async def by_http(server: ResourceServer, era: str) -> AsyncIterator[Ask]:
    async with serving(server) as url:
        session = Session(url)

        async def ask(method: str, **params: Any) -> dict[str, Any]:
            if era == MODERN:
                answer = (await asyncio.to_thread(post, url, method, **params))[1]
            else:
                answer = await asyncio.to_thread(session.call, method, params)
            return dict(answer)

        try:
            yield ask
        finally:
            session.close()


class Session:
    """A legacy session over HTTP, opened with the first call. Blocks."""

    def __init__(self, url: str) -> None:
        at = urlsplit(url)
        self._path = at.path
        self._connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=30)
        self._headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if "mcp-session-id" not in self._headers:
            self._send({"id": 0, "method": "initialize", "params": HELLO})
            self._send({"method": "notifications/initialized"})
        return dict(json.loads(self._send({"id": 1, "method": method, "params": params})))

    def _send(self, message: dict[str, Any]) -> bytes:
        self._connection.request("POST", self._path, json.dumps({"jsonrpc": "2.0", **message}), self._headers)
        response = self._connection.getresponse()
        if session := response.headers["mcp-session-id"]:
            self._headers["mcp-session-id"] = session
        return response.read()

    def close(self) -> None:
        self._connection.close()


HELLO = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}


@asynccontextmanager
async def by_asgi(server: ResourceServer, era: str) -> AsyncIterator[Ask]:
    app = server.asgi()
    session = None if era == MODERN else await initialize(app)

    async def ask(method: str, **params: Any) -> dict[str, Any]:
        if session is None:
            return dict(await modern(app, 1, method, **params).json())
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return dict(await session.post(message).json())

    yield ask


@asynccontextmanager
async def by_stdio(_server: ResourceServer, era: str) -> AsyncIterator[Ask]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=1 << 20
    )
    assert process.stdin is not None
    assert process.stdout is not None
    into, out = process.stdin, process.stdout

    def send(message: dict[str, Any]) -> None:
        into.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def ask(method: str, **params: Any) -> dict[str, Any]:
        send({"id": 1, "method": method, "params": params | ({"_meta": META} if era == MODERN else {})})
        while "id" not in (message := json.loads(await out.readline())):
            pass  # the clock tells of each second
        return dict(message)

    try:
        if era == LEGACY:
            await ask("initialize", **HELLO)
            send({"method": "notifications/initialized"})
        yield ask
        into.close()
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def entry(ask: Ask, uri: str) -> dict[str, Any]:
    """The only entry of a resource's contents."""
    answer = await ask("resources/read", uri=uri)
    (found,) = answer["result"]["contents"]
    return dict(found)


async def listed(ask: Ask) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    params: dict[str, Any] = {}
    while True:
        page = (await ask("resources/list", **params))["result"]
        found += page["resources"]
        if "nextCursor" not in page:
            return found
        params = {"cursor": page["nextCursor"]}


async def completed(ask: Ask, template: str, variable: str, value: str) -> list[str]:
    reference = {"type": "ref/resource", "uri": template}
    answer = await ask("completion/complete", ref=reference, argument={"name": variable, "value": value})
    return list(answer["result"]["completion"]["values"])


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", [by_client, by_http, by_asgi, by_stdio])
async def test_every_entry_serves_providers(way: Any, era: str) -> None:
    """R-061, R-101, R-107: read at once and on a worker, listed in pages, completed."""
    async with way(serves(), era) as ask:
        note = await entry(ask, "memory:///notes/a%20b.md")
        assert note == {"uri": "memory:///notes/a%20b.md", "mimeType": "text/markdown", "text": "Buy milk"}
        assert (await entry(ask, "memory:///notes/plain"))["mimeType"] == "text/plain"
        assert (await entry(ask, "memory:///big"))["text"] == BIG
        blob = await entry(ask, "memory:///blob")
        assert (blob["mimeType"], base64.b64decode(blob["blob"])) == ("application/octet-stream", b"\0\1")
        assert (await entry(ask, "clock:///now"))["text"].endswith("Z")
        assert (await entry(ask, "clock:///Asia/Tokyo"))["text"].endswith("+09:00[Asia/Tokyo]")
        for uri in ("memory:///none", "clock:///None/Such"):
            assert (await ask("resources/read", uri=uri))["error"]["data"]["kind"] == "not_found"
        assert (await entry(ask, "own://function"))["text"] == "function"
        uris = [resource["uri"] for resource in await listed(ask)]
        assert len(uris) == len(set(uris)) > 200, "more than a page"
        assert {"clock:///now", "clock:///UTC", "memory:///notes/a%20b.md"} <= set(uris)
        assert sum(uri.startswith("clock:") for uri in uris) <= 3
        assert {"between://listed", "during://listed", "own://listed"} <= set(uris)
        assert await completed(ask, ENTRIES, "path", "notes/") == ["notes/a b.md", "notes/plain"]
        assert "Asia/Tokyo" in await completed(ask, "clock:///{+zone}", "zone", "tokyo")


async def test_over_http_nothing_of_a_provider_waits_for_the_loop() -> None:
    """The loop's own thread waits for each answer here, so that no other could come from the loop."""
    reference = {"type": "ref/resource", "uri": ENTRIES}
    async with serving(provides()) as url:
        asked: list[tuple[str, dict[str, Any]]] = [
            ("resources/read", {"uri": "memory:///notes/plain"}),
            ("resources/read", {"uri": "memory:///big"}),
            ("resources/read", {"uri": "clock:///Asia/Tokyo"}),
            ("resources/list", {}),
            ("completion/complete", {"ref": reference, "argument": {"name": "path", "value": "n"}}),
        ]
        for method, params in asked:
            status, answer = post(url, method, **params)
            assert status == 200
            assert "result" in answer, answer


HELD = """
import mmap, sys
import test_mounting

sys.setswitchinterval(1000)  # the thread that has the interpreter keeps it
server = test_mounting.serves()
file = open(sys.argv[1], "r+b")
gate = mmap.mmap(file.fileno(), 1)

@server.resource("hold://it", inline=True)
def hold() -> str:
    while not gate[0]:
        pass
    return "held"

server.run()
"""


def test_over_a_pipe_an_answer_is_written_without_the_interpreter(tmp_path: Path) -> None:
    path = tmp_path / "gate"
    path.write_bytes(b"\0")
    command = [sys.executable, "-c", HELD, str(path)]
    with (
        path.open("r+b") as file,
        mmap.mmap(file.fileno(), 1) as gate,
        subprocess.Popen(command, cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        try:
            process.stdin.write(line(1, "memory:///big") + line(2, "clock:///Asia/Tokyo") + line(3, "hold://it"))
            process.stdin.flush()
            first = {json.loads(process.stdout.readline())["id"] for _ in range(2)}
            assert first == {1, 2}
            gate[0] = 1
            assert json.loads(process.stdout.readline())["id"] == 3
            process.stdin.close()
            assert process.wait() == 0
        finally:
            gate[0] = 1
            watchdog.cancel()


def test_over_a_pipe_the_end_of_input_waits_for_a_provider() -> None:
    """R-150."""
    command = [sys.executable, "-c", PROGRAM]
    asked = b"".join(line(id, "memory:///big") for id in range(20))
    done = subprocess.run(command, input=asked, capture_output=True, cwd=HERE, timeout=60, check=True)
    assert {json.loads(answer)["id"] for answer in done.stdout.splitlines()} == set(range(20))


@pytest.mark.parametrize("way", [by_client, by_http, by_asgi])
async def test_a_provider_may_run_out_of_time(way: Any) -> None:
    """R-127: it is the redaction that takes so long here, on the provider's thread."""
    held = threading.Event()

    def redact(uri: str, contents: Contents) -> Contents:
        if uri.endswith("held"):
            held.wait()
        return contents

    server, folder = ResourceServer("x", redact=redact, limits={"read_timeout": 100}), providers.memory()
    for path in ("held", "free"):
        folder.put(path, "x")
    server.mount(folder)
    async with way(server, MODERN) as ask:
        try:
            late = await ask("resources/read", uri="memory:///held")
            assert late["error"]["data"]["kind"] == "timeout"
            assert (await entry(ask, "memory:///free"))["text"] == "x"
        finally:
            held.set()


@pytest.mark.parametrize("era", ERAS)
async def test_a_long_list_comes_in_pages(era: str) -> None:
    """R-101."""
    server, folder = ResourceServer("many"), providers.memory()
    server.mount(folder)
    for number in range(10_000):
        folder.put(f"{number:05}", "x")
    assert len(folder) == 10_000
    async with Client(server, revision=era) as client:
        names = [resource["name"] for resource in await client.list_resources()]
    assert names == [f"{number:05}" for number in range(10_000)]


async def test_a_subscription_hears_of_what_is_put() -> None:
    """R-083, R-092: also from another thread."""
    server, folder = ResourceServer("x"), providers.memory()
    server.mount(folder)
    folder.put("a", "1")
    async with Client(server, revision=LEGACY) as client:
        await client.subscribe("memory:///a")
        await asyncio.to_thread(folder.put, "a", "2")
        heard = await client.notification()
        assert (heard.kind, heard.params) == ("updated", {"uri": "memory:///a"})
        assert await client.read_text("memory:///a") == "2"
        folder.put("b", "new")
        assert (await client.notification()).kind == "list_changed"
        folder.remove("a")
        assert {(await client.notification()).kind for _ in range(2)} == {"updated", "list_changed"}


async def test_a_listen_hears_of_what_is_put_and_outlives_the_mount() -> None:
    """R-092, R-093."""
    server, folder = ResourceServer("x"), providers.memory()
    server.mount(folder)
    folder.put("a", "1")
    async with Client(server) as client, client.listen(["memory:///a"], list_changed=True) as listen:
        await asyncio.to_thread(folder.put, "a", "2")
        heard = await listen.next()
        assert (heard.kind, heard.params["uri"]) == ("updated", "memory:///a")
        folder.put("b", "new")
        assert (await listen.next()).kind == "list_changed"
        assert server.unmount(folder)
        heard = await listen.next()
        while heard.kind != "list_changed":
            heard = await listen.next()
        folder.put("a", "nobody hears")
        with pytest.raises(ServerError, match="not found"):
            await client.read("memory:///a")
        server.mount(folder)
        assert (await listen.next()).kind == "list_changed"
        assert await client.read_text("memory:///a") == "nobody hears"


@pytest.mark.parametrize("era", ERAS)
async def test_the_guard_hides_entries(era: str) -> None:
    """R-075, S-12: in lists, reads, completions and notifications."""
    server = ResourceServer("x", guard={"deny": ["memory:///secret/**"]})
    folder = providers.memory()
    for path in ("secret/a", "open/a"):
        folder.put(path, "1")
    server.mount(folder)
    async with Client(server, revision=era) as client:
        assert [resource["uri"] for resource in await client.list_resources()] == ["memory:///open/a"]
        assert (await client.complete(ENTRIES, "path", "")).values == ["open/a"]
        with pytest.raises(ServerError) as hidden:
            await client.read("memory:///secret/a")
        with pytest.raises(ServerError) as missing:
            await client.read("memory:///open/none")
        assert (hidden.value.code, hidden.value.message) == (missing.value.code, missing.value.message)
        if era == LEGACY:
            with pytest.raises(ServerError):
                await client.subscribe("memory:///secret/a")
            await client.subscribe("memory:///open/a")
            folder.put("secret/a", "2")
            folder.put("open/a", "2")
            assert (await client.notification()).params == {"uri": "memory:///open/a"}
        else:
            async with client.listen(["memory:///secret/a", "memory:///open/a"]) as listen:
                folder.put("secret/a", "2")
                folder.put("open/a", "2")
                assert (await listen.next()).params["uri"] == "memory:///open/a"


async def test_providers_come_and_go_while_it_serves() -> None:
    server, other = ResourceServer("x"), ResourceServer("y")
    folder, clock = providers.memory(), providers.clock()
    folder.put("a", "1")

    @server.resource("do://mount")
    def mount() -> str:
        server.mount(folder)
        return "mounted"

    async with Client(server) as client, Client(other) as reader:
        assert await client.read_text("do://mount") == "mounted"
        assert await client.read_text("memory:///a") == "1"
        other.mount(folder)
        assert await reader.read_text("memory:///a") == "1", "one folder, two servers"
        assert await asyncio.to_thread(server.unmount, folder)
        assert not server.unmount(folder)
        assert await reader.read_text("memory:///a") == "1"
        with server.batch():
            server.add_resource(Resource("a://b"), text="x")
            server.mount(clock)
        assert (await client.read_text("clock:///now")).endswith("Z")


def test_what_is_wrong_with_a_mount_is_said() -> None:
    server, other = ResourceServer("x"), ResourceServer("y")
    folder, clock = providers.memory(), providers.clock()
    assert not server.unmount(folder)

    def said(*given: Any, at: ResourceServer = server) -> str:
        with pytest.raises((TypeError, RegistrationError)) as raised:
            at.mount(*given)
        return str(raised.value)

    async def made() -> None: ...

    coroutine = made()
    made_by = "of mcp_resources.providers, such as mount(providers.memory())"
    assert said("./docs") == f"mount takes a provider, got './docs'; make one with a function {made_by}"
    assert said(providers.Memory) == f"mount takes a provider, got the class Memory; call a function {made_by}"
    assert said(providers.clock) == "mount takes a provider, got the function clock; call it: mount(clock())"
    assert said(coroutine) == "mount takes a provider, got a coroutine; await it first"
    assert said([folder]) == "mount takes a provider, got a list; write mount(*…)"
    coroutine.close()
    with pytest.raises(TypeError, match="unmount takes a provider, got 5"):
        server.unmount(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        providers.Memory()
    server.mount(clock, folder)
    assert said(folder) == "memory: it is mounted already; unmount it first, or make another"
    assert "the mount memory has it" in said(providers.memory())
    assert said(clock, at=other) == "clock: it is mounted already; make another for each server"
    assert said(providers.clock(), providers.memory(), providers.memory(), at=other)
    other.mount(providers.memory())
    assert "memory:///{+path}" in said(providers.memory(), at=other)


def test_what_is_wrong_with_an_entry_is_said() -> None:
    folder = providers.memory()
    wrong: list[tuple[tuple[Any, ...], str]] = [
        (("a", 5), "a: the body is 5, expected a text or bytes"),
        (("a", None), "a: the body is None, expected a text or bytes"),
        ((5, "x"), 'path is 5, expected a text such as "notes/today.md"'),
        ((Path("a"), "x"), "path is PosixPath('a'), expected a text such as \"notes/today.md\""),
    ]
    for arguments, message in wrong:
        with pytest.raises(TypeError) as raised:
            folder.put(*arguments)
        assert str(raised.value) == message
    assert len(folder) == 0
    assert not folder.remove("a")
    assert repr(folder) == "<provider memory>"


async def test_a_clock_is_mounted_again_when_it_is_free() -> None:
    """After it was unmounted, and after a call that mounted nothing."""
    server, other, clock = ResourceServer("x"), ResourceServer("y"), providers.clock()
    with pytest.raises(RegistrationError):
        server.mount(clock, providers.memory(), providers.memory())
    for one in (server, other, server):
        one.mount(clock)
        async with Client(one) as client:
            assert (await client.read_text("clock:///now"))[:2] == "20"
        assert one.unmount(clock)


@pytest.mark.parametrize("era", ERAS)
async def test_a_clock_tells_of_the_time(era: str) -> None:
    """R-083, R-092: while somebody waits, and for the server that it is mounted in now."""
    clock = providers.clock()
    for server in (ResourceServer("x"), ResourceServer("y")):
        server.mount(clock)
        async with Client(server, revision=era) as client:
            if era == LEGACY:
                await client.subscribe("clock:///now")
                assert (await client.notification()).params["uri"] == "clock:///now"
            else:
                async with client.listen(["clock:///Asia/Tokyo"]) as listen:
                    assert (await listen.next()).params["uri"] == "clock:///Asia/Tokyo"
            assert server.unmount(clock)


async def test_redact_sees_what_providers_give(caplog: pytest.LogCaptureFixture) -> None:
    """S-19."""
    threads = set()

    def redact(uri: str, contents: Contents) -> Contents:
        threads.add(threading.current_thread())
        if uri.endswith("broken"):
            raise ValueError("the author's")
        if uri.endswith("gone"):
            raise ResourceNotFoundError()
        body = contents.body
        changed = body.replace("secret", "***") if isinstance(body, str) else body[::-1]
        return Contents(changed, mime_type=contents.mime_type)

    server, folder = ResourceServer("x", redact=redact), providers.memory()
    server.mount(folder, providers.clock())
    for path, body in (("small", "a secret"), ("large", "secret " * 20_000), ("bytes", b"12"), ("broken", "x")):
        folder.put(path, body, "text/x-note" if path == "small" else None)
    folder.put("gone", "x")
    async with Client(server) as client:
        (small,) = await client.read("memory:///small")
        assert (small.body, small.mime_type) == ("a ***", "text/x-note")
        assert await client.read_text("memory:///large") == "*** " * 20_000
        assert (await client.read("memory:///bytes"))[0].body == b"21"
        assert (await client.read_text("clock:///now")).endswith("Z")
        for path, kind in (("broken", "read_error"), ("gone", "not_found")):
            with pytest.raises(ServerError) as failed:
                await client.read(f"memory:///{path}")
            assert failed.value.kind == kind
            assert "author" not in str(failed.value)
    assert threading.main_thread() not in threads
    assert "the author's" in caplog.text


async def test_many_threads_share_a_folder() -> None:
    server, folder = ResourceServer("x"), providers.memory()
    server.mount(folder)
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for at in range(300):
                folder.put(f"{number}/{at}", str(at) * (20_000 if at % 100 == 0 else 1))
                if at % 2:
                    assert folder.remove(f"{number}/{at}")
                assert len(folder) > 0
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    async with Client(server) as client:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            await client.list_resources()
        for thread in threads:
            thread.join()
        assert not failed, failed[0]
        assert len(folder) == len(await client.list_resources()) == 8 * 150
        assert await client.read_text("memory:///7/100") == "100" * 20_000


@pytest.mark.skipif(sys.platform != "linux", reason="it counts threads and files in /proc, which only Linux has")
async def test_servers_with_providers_leave_nothing_behind() -> None:
    def threads() -> int:
        return len(os.listdir("/proc/self/task"))

    async def serve() -> list["weakref.ref[Any]"]:
        holder: list[Any] = []
        server = ResourceServer("x", redact=lambda uri, contents: holder and contents)
        folder, clock = providers.memory(), providers.clock()
        holder += [server, folder, clock]  # a circle through the function
        folder.put("a", BIG)
        server.mount(folder, clock)
        server.resource("own://x")(lambda: (server, folder))
        async with Client(server) as client:
            assert await client.read_text("memory:///a") == BIG
            await client.read_text("clock:///Asia/Tokyo")
            await client.list_resources()
        return [weakref.ref(server), weakref.ref(server._core)]

    await serve()
    gc.collect()
    before, alive = threads(), []
    for _ in range(50):
        alive += await serve()
    assert await until(lambda: not any(ref() is not None for ref in alive))
    assert await until(lambda: threads() <= before + 3), (before, threads())
    gc.collect()
    objects = len(gc.get_objects())
    for _ in range(10):
        await serve()
    assert await until(lambda: len(gc.get_objects()) < objects + 200), (objects, len(gc.get_objects()))


def test_a_connection_of_bytes_serves_providers() -> None:
    """What is answered at once is there at once; the rest when its thread has it."""
    connection = Connection(serves())
    assert b"Buy milk" in connection.receive(line(1, "memory:///notes/a%20b.md"))
    found = connection.receive(line(2, "memory:///big"))
    while not found.endswith(b"\n"):
        found += connection.settle()
    assert BIG.encode() in found
    connection.close()


def run(script: str, *arguments: str) -> None:
    """A program of an author's ends well."""
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=HERE)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("serves_before", ["no", "yes"])
def test_a_forked_process_serves_providers(serves_before: str, tmp_path: Path) -> None:
    """As gunicorn forks with a preloaded application; workers, and the redaction on them, are the process's own."""
    run(
        """
        import asyncio, os, pathlib, sys
        from mcp_resources import Contents, ResourceServer, providers
        from mcp_resources.testing import Client

        server = ResourceServer("x", redact=lambda uri, contents: Contents(contents.body + "!"))
        folder = providers.memory()
        folder.put("big", "x" * 100_000)
        path = pathlib.Path(sys.argv[2], "a.txt")
        path.write_text("first")
        server.mount(folder, providers.clock(), providers.files({"watched": path.parent}))

        async def use():
            async with Client(server) as client:
                assert await client.read_text("memory:///big") == "x" * 100_000 + "!"
                assert (await client.read_text("clock:///Asia/Tokyo")).endswith("]!")
                assert len(await client.list_resources()) >= 4
                async with client.listen(["memory:///big"]) as listen:
                    folder.put("big", "x" * 100_000)
                    assert (await listen.next()).kind == "updated"
                async with client.listen(["file:///watched/a.txt"]) as listen:
                    path.write_text(f"{os.getpid()} {len(path.read_text())}")
                    assert (await listen.next()).kind == "updated"
                assert str(os.getpid()) in await client.read_text("file:///watched/a.txt")
                async with client.listen(["clock:///now"]) as listen:
                    assert (await listen.next()).kind == "updated"

        if sys.argv[1] == "yes":
            asyncio.run(use())
        for _ in range(2):
            child = os.fork()
            if child == 0:
                asyncio.run(asyncio.wait_for(use(), 30))
                sys.exit(0)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0, status
        asyncio.run(use())
        """,
        serves_before,
        str(tmp_path),
    )


def test_the_interpreter_ends_while_a_provider_is_redacted() -> None:
    run(
        """
        import asyncio, threading
        from mcp_resources import ResourceServer, providers
        from mcp_resources.testing import Client

        entered, never = threading.Event(), threading.Event()

        def redact(uri, contents):
            entered.set()
            never.wait()

        server, folder = ResourceServer("x", redact=redact), providers.memory()
        for number in range(8):
            folder.put(str(number), "x")
        server.mount(folder)

        async def main():
            async with Client(server) as client:
                for number in range(8):
                    client.send("read", {"uri": f"memory:///{number}"})
                await asyncio.to_thread(entered.wait)

        asyncio.run(main())
        """
    )
