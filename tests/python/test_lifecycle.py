"""A server leaves nothing behind, also after a fork, on a full system, or with a client that does not read."""

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from asgi_call import Call
from mcp_resources import Context, Resource, ResourceServer, _core
from mcp_resources.driver import Driver
from mcp_resources.testing import Client, Connection, ServerError
from stdio_process import read as line
from test_http import post, serving

COUNT = 100
SLACK = 3
"""Descriptors and threads of the interpreter's own that may come and go."""


def registered() -> ResourceServer:
    """A server with every kind of function, each of which closes over it."""
    server = ResourceServer("x")

    @server.resource("a://def")
    def plain() -> str:
        return server.name

    @server.resource("a://async")
    async def later(ctx: Context) -> str:
        return server.name + str(ctx.cancelled)

    @server.resource("a://t/{x}")
    def note(x: str) -> str:
        return server.name + x

    note.complete("x")(lambda value: [server.name, value])
    note.list(lambda: [Resource("a://t/1", title=server.name)])
    server.add_resource(Resource("a://read"), read=lambda: server.name)
    return server


async def by_client(server: ResourceServer) -> None:
    async with Client(server) as client:
        assert await client.read_text("a://def") == "x"
        assert await client.read_text("a://async") == "xFalse"
        await client.list_resources()


async def by_http(server: ResourceServer) -> None:
    async with serving(server) as url:
        status, _ = await asyncio.to_thread(post, url, "resources/read", uri="a://def")
        assert status == 200


async def by_asgi(server: ResourceServer) -> None:
    app = server.asgi()
    headers = [(b"host", b"127.0.0.1"), (b"accept", b"application/json"), (b"content-type", b"application/json")]
    call = Call(app, "POST", "/mcp", headers, b"{}")
    await call.until(lambda: call.done)
    await asyncio.gather(call.task, return_exceptions=True)


async def by_nobody(server: ResourceServer) -> None:
    del server


KINDS: list[Callable[[ResourceServer], Awaitable[None]]] = [by_nobody, by_client, by_http, by_asgi]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def until(holds: Callable[[], bool], patience: float = 20.0) -> bool:
    """Polls; threads end when they are scheduled."""
    end = time.monotonic() + patience
    while not holds():
        if time.monotonic() > end:
            return False
        gc.collect()
        await asyncio.sleep(0.02)
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="it counts threads and files in /proc, which only Linux has")
@pytest.mark.parametrize("serve", KINDS)
async def test_servers_leave_nothing_behind(serve: Callable[[ResourceServer], Awaitable[None]]) -> None:
    for _ in range(3):
        await serve(registered())
    gc.collect()
    await until(lambda: threading.active_count() <= 3, 2)
    before = descriptors(), threading.active_count()
    alive: list[weakref.ref[Any]] = []
    for number in range(COUNT):
        server = registered()
        alive += [weakref.ref(server), weakref.ref(server._core)]
        await serve(server)
        del server
        if number % 10 == 0:
            await asyncio.sleep(0)
    assert await until(lambda: not any(ref() is not None for ref in alive)), sum(ref() is not None for ref in alive)
    assert await until(lambda: threading.active_count() <= before[1] + SLACK), threading.enumerate()
    assert await until(lambda: descriptors() <= before[0] + SLACK), (before, descriptors())


async def test_audited_servers_leave_nothing_behind(tmp_path: Path) -> None:
    seen: list[Any] = []
    before = threading.active_count()
    alive: list[weakref.ref[Any]] = []
    for number in range(10):
        server = ResourceServer("x", audit=seen.append if number % 2 else tmp_path / f"{number}.jsonl")
        server.resource("a://def")(lambda server=server: server.name)
        alive.append(weakref.ref(server))
        async with Client(server) as client:
            await client.read("a://def")
        server.flush_audit()
        del server, client
    assert len(seen) >= 5
    assert await until(lambda: not any(ref() is not None for ref in alive))
    assert await until(lambda: threading.active_count() <= before + SLACK), threading.enumerate()


def test_connections_leave_nothing_behind() -> None:
    alive = []
    for _ in range(COUNT):
        server = registered()
        connection = Connection(server)
        assert b'"x"' in connection.receive(line(1, "a://def"))
        connection.close()
        alive += [weakref.ref(server), weakref.ref(server._core)]
        del server, connection
    gc.collect()
    assert not any(ref() is not None for ref in alive)


def run(script: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A program of an author's."""
    command = [sys.executable, "-X", "dev", "-c", textwrap.dedent(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


FORKED = """
import asyncio, os, sys
from mcp_resources import ResourceServer
from mcp_resources.testing import Client

seen = []
path, serves_before = sys.argv[1], sys.argv[2] == "yes"
by_function = ResourceServer("x", audit=seen.append)
by_file = ResourceServer("x", audit=path)
for server in (by_function, by_file):
    server.resource("a://def")(lambda: "x")

async def use(server):
    async with Client(server) as client:
        assert await client.read_text("a://def") == "x"

def all():
    for server in (by_function, by_file):
        asyncio.run(use(server))
        server.flush_audit()

if serves_before:
    all()
before = len(seen)
child = os.fork()
if child == 0:
    all()
    assert len(seen) > before, "the child records"
    sys.exit(0)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
all()
"""


@pytest.mark.parametrize("serves_before", ["no", "yes"])
def test_a_forked_process_serves_and_ends(tmp_path: Path, serves_before: str) -> None:
    """As gunicorn forks with a preloaded application; `def` handlers and both kinds of audit log."""
    path = tmp_path / "audit.jsonl"
    done = run(FORKED, str(path), serves_before)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    reads = path.read_text("utf-8").count("resources/read")
    assert reads == (3 if serves_before == "yes" else 2)


def test_the_interpreter_ends_while_the_audit_function_is_busy() -> None:
    done = run("""
        import asyncio, threading
        from mcp_resources import ResourceServer
        from mcp_resources.testing import Client

        inside = threading.Event()

        def audit(entry):
            inside.set()
            threading.Event().wait()

        server = ResourceServer("x", audit=audit)
        server.resource("a://def")(lambda: "x")

        async def use():
            async with Client(server) as client:
                await client.read("a://def")

        asyncio.run(use())
        assert inside.wait(20)
    """)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_the_interpreter_ends_while_a_handler_is_busy() -> None:
    done = run("""
        import asyncio, threading
        from mcp_resources import ResourceServer
        from mcp_resources.testing import Client

        server = ResourceServer("x")
        inside = threading.Event()

        @server.resource("a://def")
        def wait():
            inside.set()
            threading.Event().wait()

        async def use():
            async with Client(server) as client:
                id, answer = client.send("read", {"uri": "a://def"})
                while not inside.is_set():
                    await asyncio.sleep(0.01)
                client.cancel(id)

        asyncio.run(use())
    """)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


async def test_without_a_thread_handlers_run_on_the_loop(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    server = registered()
    async with Client(server) as client:
        monkeypatch.setattr("mcp_resources.log._threadless", None)
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            reads = [client.read_text("a://def") for _ in range(20)]
            assert await asyncio.gather(*reads) == ["x"] * 20
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "can't start new thread" in caplog.text
        assert await client.read_text("a://def") == "x"


async def test_with_one_thread_alone_jobs_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ResourceServer("x")
    server.resource("a://{id}")(lambda id: threading.current_thread().name)
    async with Client(server) as client:
        (name,) = {await client.read_text("a://first")}

        def refuse(self: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", refuse)
        assert set(await asyncio.gather(*(client.read_text(f"a://{id}") for id in range(50)))) == {name}


class Mute(Driver):
    """The loop behind a client that never reads."""


async def test_a_client_that_does_not_read_stalls_nobody_else() -> None:
    server = ResourceServer("x", limits={"output": 64})
    server.resource("a://def")(lambda: "x" * 100)
    driver = Mute(asyncio.get_running_loop())
    channel = driver.channel = _core.Channel(server._core, weakref.proxy(driver), stdio=False)
    channel.feed(b"".join(line(id, "a://def") for id in range(1, 101)))
    async with Client(server) as client:
        for _ in range(5):
            assert await asyncio.wait_for(client.read_text("a://def"), 10) == "x" * 100
    assert channel.in_flight > 50
    # It reads again: everything is answered.
    taken = b""
    end = time.monotonic() + 20
    while taken.count(b"\n") < 100 and time.monotonic() < end:
        taken += channel.take()
        channel.writable()
        await asyncio.sleep(0.001)
    assert taken.count(b"\n") == 100
    driver.release()


async def test_a_batch_is_of_its_own_thread_and_task(server: ResourceServer) -> None:
    inside, published = asyncio.Event(), asyncio.Event()

    async def other() -> None:
        await inside.wait()
        server.add_resource(Resource("a://task"), text="")
        published.set()

    task = asyncio.create_task(other())
    async with Client(server) as client:
        with suppress(ZeroDivisionError), server.batch():
            server.add_resource(Resource("a://dropped"), text="")
            thread = threading.Thread(target=lambda: server.add_resource(Resource("a://thread"), text=""))
            thread.start()
            thread.join()
            inside.set()
            await published.wait()
            listed = {item["uri"] for item in await client.list_resources()}
            raise ZeroDivisionError
        assert listed == {"a://task", "a://thread"}
        assert {item["uri"] for item in await client.list_resources()} == listed
    await task


async def test_the_lifespan_is_opened_once_and_closed_last() -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def life(server: ResourceServer) -> Any:
        seen.append(f"open {server.name}")
        yield {"pool": 7}
        seen.append("closed")

    server = ResourceServer("x", lifespan=life)
    server.resource("a://b")(lambda ctx: f"{ctx.lifespan['pool']}")
    async with Client(server) as one, Client(server) as two:
        assert await one.read_text("a://b") == await two.read_text("a://b") == "7"
        async with serving(server) as url:
            assert (await asyncio.to_thread(post, url, "resources/read", uri="a://b"))[0] == 200
        assert seen == ["open x"]
    assert seen == ["open x", "closed"]
    async with Client(server) as one:
        assert await one.read_text("a://b") == "7"
    assert seen == ["open x", "closed"] * 2


async def test_a_client_of_tests_that_cannot_begin_closes_the_lifespan() -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def life(server: ResourceServer) -> Any:
        seen.append("open")
        yield
        seen.append("closed")

    server = ResourceServer("x", lifespan=life, revisions=["2026-07-28"])
    with pytest.raises(ServerError):
        async with Client(server, revision="2025-11-25"):
            pass
    assert seen == ["open", "closed"]


async def test_a_client_of_tests_that_is_closed_says_so() -> None:
    client = Client(ResourceServer("x"))
    async with client:
        assert await client.list_resources() == []
    with pytest.raises(RuntimeError, match="not open"):
        await client.list_resources()


def test_a_lifespan_is_shared_on_one_loop_after_another() -> None:
    """Tasks that wait for each other on one loop do not tie the server to it."""
    seen: list[str] = []

    @asynccontextmanager
    async def life(server: ResourceServer) -> Any:
        await asyncio.sleep(0)
        seen.append("open")
        yield
        await asyncio.sleep(0)
        seen.append("closed")

    server = ResourceServer("x", lifespan=life)
    server.resource("a://b")(lambda: "x")

    async def one() -> str:
        async with Client(server) as client:
            return await client.read_text("a://b")

    async def several() -> list[str]:
        return await asyncio.gather(one(), one(), one())

    assert asyncio.run(several()) == asyncio.run(several()) == ["x"] * 3
    assert seen == ["open", "closed"] * (len(seen) // 2)
