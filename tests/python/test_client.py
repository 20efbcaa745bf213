"""The client: one script in both eras, over memory, stdio and HTTP; and what goes wrong with servers and processes."""

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp_resources import (
    AccessDeniedError,
    Client,
    ConfigError,
    Contents,
    InvalidUriError,
    McpError,
    Progress,
    Question,
    ReadFailedError,
    Resource,
    ResourceNotFoundError,
    ResourceServer,
)
from shop import shop

HERE = Path(__file__).parent
SHOP = [sys.executable, str(HERE / "shop.py")]
ERAS = ["2026-07-28", "2025-11-25"]
WAYS = ["memory", "stdio", "http"]
PATIENCE = 20.0


@asynccontextmanager
async def client_of(way: str, era: str | None = None, **options: Any) -> AsyncIterator[Client]:
    """A client of a shop of its own."""
    if way == "http":
        process = await asyncio.create_subprocess_exec(*SHOP, "http", stdout=subprocess.PIPE)
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().strip()
        try:
            async with Client(url, revision=era, **options) as client:
                yield client
        finally:
            process.terminate()
            await process.wait()
    else:
        server: Any = shop() if way == "memory" else [*SHOP, "stdio"]
        async with Client(server, revision=era, **options) as client:
            yield client


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Waits for a condition."""
    async with asyncio.timeout(PATIENCE):
        while not await condition():
            await asyncio.sleep(0.01)


async def until_watched(client: Client, count: int) -> None:
    """Waits until the server knows of so many watched URIs."""

    async def is_so() -> bool:
        return await client.read("shop://watched") == str(count)

    await until(is_so)


every_way = pytest.mark.parametrize("way", WAYS)
every_era = pytest.mark.parametrize("era", ERAS)


@every_era
@every_way
async def test_lists_reads_and_completes(way: str, era: str) -> None:
    """S-12, R-061, R-218, R-107: lists over pages, templates, contents of each form, completions."""
    async with client_of(way, era) as client:
        resources = [resource async for resource in client.list()]
        secret = next(resource for resource in resources if resource.uri == "shop://secret/3")
        assert len([one for one in resources if one.uri.startswith("shop://secret/")]) == 7
        assert (secret.title, secret.mime_type, secret.server) == ("Secret 3", None, "server")
        assert secret.raw["uri"] == "shop://secret/3"
        templates = {one.uri_template: one async for one in client.list_templates()}
        assert templates["shop://item/{id}"].description == "An item"
        assert await client.read("shop://item/7") == "item 7"
        assert await client.read("shop://logo") == b"\x89PNG\0"
        assert await client.read("shop://both") == [
            Contents("a", uri="shop://both/a", mime_type="text/plain", meta={"n": 1}),
            Contents(b"b", uri="shop://both/b", mime_type="application/octet-stream"),
        ]
        (whole,) = await client.read_contents("shop://logo")
        assert (whole.uri, whole.mime_type, whole.body) == ("shop://logo", "image/png", b"\x89PNG\0")
        found = await client.complete("shop://item/{id}", "id", "a", context={"other": "1"})
        assert (found.values, found.total) == (["alpha"], 5)
        about = await client.about()
        assert (about.revision, about.server_info["name"]) == (era, "shop")
        assert "resources" in about.capabilities
        assert (client.servers, client.failures, client.is_closed) == (["server"], {}, False)
    assert client.is_closed


@every_era
@every_way
async def test_errors_have_the_fixed_texts(way: str, era: str) -> None:
    """S-14: texts, classes and kinds; each derives from the tree's base, and from the builtin that it is a kind of."""
    async with client_of(way, era) as client:
        for uri, known, builtin, text in (
            ("shop://none", ResourceNotFoundError, LookupError, "Resource not found: shop://none"),
            ("no uri", InvalidUriError, ValueError, "Invalid URI: no uri"),
        ):
            with pytest.raises(known) as caught:
                await client.read(uri)
            assert (str(caught.value), caught.value.uri) == (text, uri)
            assert isinstance(caught.value, builtin)
            assert isinstance(caught.value, McpError)
        with pytest.raises(ReadFailedError) as failed:
            await client.request("shop/unknown")
        assert str(failed.value).startswith("Failed to read resource: ")
        assert (failed.value.kind, failed.value.code, failed.value.server) == ("server", -32601, "server")


async def test_a_command_that_dies_at_start_is_started_once(tmp_path: Path) -> None:
    """Each call says at once how it ended, with what it said last."""
    starts = tmp_path / "starts"
    program = tmp_path / "dies.py"
    program.write_text(
        f"import sys\nwith open({str(starts)!r}, 'a') as file:\n    file.write('x')\n"
        "print('first', file=sys.stderr)\nsys.exit('No module named shop')"
    )
    ended = "the server cannot be reached: the server ended with exit status 1: first | No module named shop"
    async with Client([sys.executable, str(program)]) as client:
        for count, call in enumerate(
            (client.about, lambda: client.read("shop://x"), lambda: client.request("ping")), 1
        ):
            with pytest.raises(ReadFailedError) as failed:
                await call()
            assert (str(failed.value), failed.value.kind) == (f"Failed to read resource: {ended}", "unreachable")
            assert starts.read_text() == "x" * count


async def test_a_server_that_wants_a_token_says_so() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"
        async with Client(url) as client:
            for call in (client.about, lambda: client.read("shop://x")):
                with pytest.raises(ReadFailedError) as failed:
                    await call()
                assert failed.value.kind == "unauthorized"
                assert f"{url} asks for authorization (status 401): give a valid token" in str(failed.value)


@every_era
@every_way
async def test_the_allow_list_decides_everywhere(way: str, era: str) -> None:
    """S-10, S-11, S-12: what is not allowed is neither listed, read, watched nor completed. The seed's own case."""
    globs = ["file:///project/src/**/*.ts", "shop://item/a*"]
    async with client_of(way, era, resources=globs) as client:
        assert [resource.uri async for resource in client.list()] == ["file:///project/src/a.ts"]
        assert [one.uri_template async for one in client.list_templates()] == ["shop://item/{id}"]
        assert await client.read("file:///project/src/a.ts") == "a"
        for uri in ("file:///project/config.json", "file:///project/src/%2e%2e/config.json", "shop://item/b"):
            with pytest.raises(AccessDeniedError, match=r"^Access denied: ") as caught:
                await client.read(uri)
            assert str(caught.value) == f"Access denied: {uri}"
            with pytest.raises(AccessDeniedError):
                await anext(client.watch(uri))
        with pytest.raises(AccessDeniedError):
            await client.complete("shop://set/{count}", "count")
        with pytest.raises(AccessDeniedError):
            await client.request("resources/read", {"uri": "file:///project/config.json"})


@every_era
@every_way
async def test_watches_from_the_first_contents_on(way: str, era: str) -> None:
    """S-13: the contents, each change, gone, and there again; the end of the iteration ends the subscription."""
    async with client_of(way, era) as client:
        seen = []
        async for change in client.watch("shop://counter"):
            seen.append(change.contents)
            if change.contents == "1":
                await client.read("shop://set/2")
            elif change.contents == "2" and len(seen) == 2:
                await until_watched(client, 1)
                await client.read("shop://drop")
            elif change.contents is None:
                await client.read("shop://restore")
            else:
                break
        assert seen == ["1", "2", None, "2"]
        assert (change.uri, change.server) == ("shop://counter", "server")
        del change
        await until_watched(client, 0)


@every_era
async def test_every_end_of_an_iteration_ends_the_subscription(era: str) -> None:
    """S-13: `aclose`, a cancelled task, and letting go of the iterator."""
    async with client_of("memory", era) as client:
        closed = client.watch("shop://counter")
        assert (await anext(closed)).contents == "1"
        await until_watched(client, 1)
        await closed.aclose()
        await until_watched(client, 0)
        with pytest.raises(StopAsyncIteration):
            await anext(closed)

        async def follow() -> None:
            async for _ in client.watch("shop://counter"):
                pass

        task = asyncio.create_task(follow())
        await until_watched(client, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until_watched(client, 0)
        dropped = client.watch("shop://counter")
        await anext(dropped)
        await until_watched(client, 1)
        del dropped
        await until_watched(client, 0)
        waiting = client.watch("shop://counter")
        await anext(waiting)
        pending = asyncio.ensure_future(anext(waiting, None))
        await asyncio.sleep(0)
        await waiting.aclose()
        assert await pending is None


@every_era
@every_way
async def test_a_call_can_be_taken_back_or_be_too_late(way: str, era: str) -> None:
    """R-127, R-214: a cancelled task takes its request back; a time-out says how long it was. Other calls go on."""
    async with client_of(way, era) as client:
        await client.about()
        task = asyncio.create_task(client.read("shop://slow/cancelled"))

        async def has_begun() -> bool:
            return await client.read("shop://begun") == "cancelled"

        await until(has_begun)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(ReadFailedError, match="no answer within 50 ms") as late:
            await client.read("shop://slow/late", timeout=50)
        assert late.value.kind == "timeout"

        async def both_are_over() -> bool:
            return await client.read("shop://cancelled") == "cancelled,late"

        await until(both_are_over)


@every_era
@every_way
async def test_progress_is_reported(way: str, era: str) -> None:
    """R-124: each report of a read is given to its function; one that raises is logged and harms nothing."""
    told: list[tuple[float, float | None, str | None]] = []

    def report(progress: Progress) -> None:
        told.append((progress.progress, progress.total, progress.message))
        if progress.progress == 1:
            raise ValueError("the author's")

    async with client_of(way, era) as client:
        assert await client.read("shop://steps", progress=report) == "done"
        assert told == [(step, 3, f"step {step}") for step in range(3)]
        told.clear()
        assert len([one async for one in client.list(progress=report)]) > 3
        assert (1, None, "listing") in told


@every_era
@every_way
async def test_questions_are_answered(way: str, era: str, caplog: pytest.LogCaptureFixture) -> None:
    """R-135, R-139: the capability is declared, and the question reaches the author's function, async or not."""
    asked: list[Question] = []

    async def answer(question: Question) -> dict[str, object]:
        asked.append(question)
        await asyncio.sleep(0)
        return {"action": "accept", "content": {"name": "Ada"}}

    def fail(question: Question) -> dict[str, object]:
        raise ValueError("the author's own")

    async with client_of(way, era, answers={"elicitation": answer}) as client:
        assert await client.read("shop://greeting") == "Hello, Ada"
    assert (asked[0].server, asked[0].params["message"]) == ("server", "Your name?")
    for broken in (fail, lambda question: 7):
        async with client_of(way, era, answers={"elicitation": broken}) as client:
            with pytest.raises(ReadFailedError):
                await client.read("shop://greeting", timeout=5000)
    assert "the author's own" in caplog.text
    assert "expected a JSON object" in caplog.text


@every_era
async def test_a_server_that_dies_is_started_again(era: str) -> None:
    """S-13: a watch survives the death of its server, and tells what has changed meanwhile."""
    async with client_of("stdio", era) as client:
        watch = client.watch("shop://counter")
        assert (await anext(watch)).contents == "1"
        await client.read("shop://set/5")
        assert (await anext(watch)).contents == "5"
        first = await client.read("shop://process")
        assert isinstance(first, str)
        os.kill(int(first), signal.SIGKILL)
        async with asyncio.timeout(PATIENCE):
            assert (await anext(watch)).contents == "1"
        second = await client.read("shop://process")
        assert first != second
    assert isinstance(second, str)
    await ended(int(second))


async def ended(process: int) -> None:
    """Waits until a process has ended."""

    async def is_gone() -> bool:
        try:
            return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    await until(is_gone)


async def test_one_of_two_servers_is_broken(tmp_path: Path) -> None:
    """S-10, S-12: an agent's servers; one that cannot be started is told of, and harms nobody."""
    path = tmp_path / "agents.json"
    servers = {
        "broken": {"command": "/nowhere/no-such-program", "resources": "*"},
        "shop": {"command": SHOP[0], "args": [SHOP[1], "stdio"], "resources": ["shop://nothing"]},
        "unused": {"command": "/nowhere/unused", "resources": "*"},
    }
    agent = {"mcpServers": {"broken": {"resources": "*"}, "shop": {"resources": ["shop://counter"]}}}
    path.write_text(json.dumps({"mcpServers": servers, "agents": {"frontend": agent}}))
    async with Client.from_config(path, agent="frontend") as client:
        assert client.servers == ["broken", "shop"]
        assert [(one.uri, one.server) async for one in client.list()] == [("shop://counter", "shop")]
        assert list(client.failures) == ["broken"]
        assert isinstance(client.failures["broken"], ReadFailedError)
        assert await client.read("shop://counter", server="shop") == "1"
        with pytest.raises(ReadFailedError, match="there is no server") as unknown:
            await client.read("shop://counter", server="none")
        assert unknown.value.kind == "no_server"
        watch = client.watch("shop://counter", server="shop")
        assert (await anext(watch)).server == "shop"
    with pytest.raises(ConfigError, match="backend"):
        Client.from_config(path, agent="backend")
    with pytest.raises(ConfigError, match=r"missing\.json"):
        Client.from_config(tmp_path / "missing.json")


async def test_results_are_kept_for_their_ttl() -> None:
    """R-219, R-220: what may be kept is not asked for again, until an update ends it."""
    server = ResourceServer("x")
    calls: list[int] = []

    @server.resource("a://kept", ttl_ms=60_000, cache_scope="public")
    async def kept() -> str:
        calls.append(1)
        return str(len(calls))

    async with Client(server) as client:
        assert [await client.read("a://kept") for _ in range(3)] == ["1", "1", "1"]
        watch = client.watch("a://kept")
        assert (await anext(watch)).contents == "2"
        server.notify_updated("a://kept")
        assert (await anext(watch)).contents == "3"
        assert await client.read("a://kept") == "3"
    assert len(calls) == 3


@pytest.mark.parametrize("way", ["odd", "failing"])
async def test_a_hostile_server_harms_nobody(way: str) -> None:
    """S-14, R-020: noise between messages, entries that make no sense, errors with control characters."""
    notes: list[tuple[str, str]] = []
    command = [sys.executable, str(HERE / "hostile.py"), way]
    async with Client(command, name="odd", on_note=lambda server, note: notes.append((server, note))) as client:
        # What is not a URI is listed as it was sent; what has no text for one is left out.
        no_uri, item = [resource async for resource in client.list()]
        assert no_uri.uri == "no uri"
        assert (item.uri, item.name, item.title, item.size) == ("a://ok", "a://ok", None, None)
        assert item.raw["count"] == float("inf")
        assert {server for server, _ in notes} == {"odd"}
        if way == "odd":
            assert await client.read("a://ok") == "fine"
        else:
            with pytest.raises(ReadFailedError) as failed:
                await client.read("a://ok")
            assert (failed.value.code, failed.value.data) == (-32603, {"a": 1})
            assert "\x1b" not in str(failed.value)


async def test_an_endless_list_can_be_left() -> None:
    """S-12: pages are asked for as they are needed."""
    async with Client([sys.executable, str(HERE / "hostile.py"), "endless"]) as client:
        count = 0
        async for _ in client.list():
            count += 1
            if count == 50:
                break


@every_era
async def test_changes_of_lists_are_told(era: str) -> None:
    """R-076, R-077: a listener gets the name of the server whose list has changed; its end ends the iteration."""
    server = ResourceServer("x")
    server.add_resource(Resource("a://b"), text="b")
    client = Client(server, name="mine", revision=era)
    async with client:
        changes, watch = client.list_changes(), client.watch("a://b")
        assert (await anext(watch)).contents == "b"
        first = asyncio.ensure_future(anext(changes))
        async with asyncio.timeout(PATIENCE):
            while not first.done():
                server.notify_list_changed()
                await asyncio.sleep(0.01)
        assert first.result() == "mine"
        waiting = asyncio.ensure_future(anext(changes, "over"))
        await asyncio.sleep(0)
    while (last := await waiting) == "mine":
        waiting = asyncio.ensure_future(anext(changes, "over"))
    assert last == "over"


async def test_use_after_the_end_is_an_error() -> None:
    """Calls that wait, and calls after the end, say so; closing again does nothing."""
    client = Client(shop())
    async with client:
        watch = client.watch("shop://counter")
        await anext(watch)
        waiting = asyncio.create_task(client.read("shop://slow/1"))
        await client.read("shop://counter")
    with pytest.raises(ReadFailedError, match="cancelled"):
        await waiting
    with pytest.raises(StopAsyncIteration):
        await anext(watch)
    uses: list[Callable[[str], Awaitable[object]]] = [client.read, client.read_contents, client.request]
    for use in uses:
        with pytest.raises(ReadFailedError, match="the client is closed") as caught:
            await use("shop://counter")
        assert caught.value.kind == "cancelled"
    with pytest.raises(ReadFailedError):
        client.list()
    with pytest.raises(ReadFailedError):
        client.watch("shop://counter")
    await client.close()


async def test_a_client_belongs_to_one_loop() -> None:
    """Two loops in two threads: the second is told so, and a client of its own works beside the first."""
    told: list[object] = []

    async def use(client: Client) -> None:
        try:
            told.append(await client.read("shop://item/1"))
        except RuntimeError as error:
            told.append(str(error))

    async with Client([*SHOP, "stdio"]) as client:
        await client.read("shop://item/0")

        async def own() -> None:
            async with Client(shop()) as other:
                await use(other)

        for coroutine in (use(client), own()):
            thread = threading.Thread(target=asyncio.run, args=(coroutine,))
            thread.start()
            await asyncio.to_thread(thread.join)
    assert "first used on another event loop" in str(told[0])
    assert told[1] == "item 1"


def test_a_client_that_was_not_closed_is_told_of() -> None:
    """A warning; its server ends with it."""
    process: list[str] = []

    async def forget() -> None:
        client = Client([*SHOP, "stdio"])
        process.append(str(await client.read("shop://process")))

    def run_and_collect() -> None:
        asyncio.run(forget())
        gc.collect()

    with pytest.warns(ResourceWarning, match="was not closed"):
        run_and_collect()
    asyncio.run(ended(int(process[0])))


LEFT = """
import asyncio, sys
from mcp_resources import Client

client = Client(sys.argv[1:])

async def main():
    print(await client.read("shop://process"), flush=True)

asyncio.run(main())
"""

FORKED = """
import asyncio, os, sys
from mcp_resources import Client

async def read(client):
    try:
        return await client.read("shop://item/1")
    except RuntimeError as error:
        return str(error)

async def parent(client):
    print(await read(client), flush=True)
    child = os.fork()
    if child == 0:
        return False
    os.waitpid(child, 0)
    print(await read(client), flush=True)
    await client.close()
    return True

async def child():
    print(await read(client), flush=True)
    async with Client(sys.argv[1:]) as own:
        print(await read(own), flush=True)

client = Client(sys.argv[1:])
runner = asyncio.Runner()
if not runner.run(parent(client)):
    asyncio.events._set_running_loop(None)
    asyncio.run(child())
    del client
    sys.stdout.flush()
    os._exit(0)
runner.close()
"""


def run(script: str) -> list[str]:
    """The lines that a program prints."""
    done = subprocess.run(
        [sys.executable, "-c", script, *SHOP, "stdio"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_process_that_ends_leaves_no_server() -> None:
    """A client that is open when the interpreter ends."""
    (process,) = run(LEFT)
    asyncio.run(ended(int(process)))


def test_a_forked_process_needs_a_client_of_its_own() -> None:
    """The parent's goes on, and is an error in the child, where a new one works."""
    lines = run(FORKED)
    assert lines[0] == "item 1"
    assert "make a new one after os.fork()" in lines[1]
    assert lines[2:] == ["item 1", "item 1"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Client("server --all"), "not a URL"),
        (lambda: Client([]), "command is empty"),
        (lambda: Client(7), "server is 7, expected a command"),
        (lambda: Client(["x"], headers={"a": "b"}), "headers is an option for a URL"),
        (lambda: Client("http://localhost/mcp", cwd="/"), "cwd is an option for a command"),
        (lambda: Client(["x"], resources="a://b"), "or a list of globs"),
        (lambda: Client(["x"], resources=["a://b\\"]), "is no glob"),
        (lambda: Client(["x"], timeout=0), "timeout is 0"),
        (lambda: Client(["x"], revision="2020-01-01"), "2020-01-01"),
        (lambda: Client(["x"], answers={"elicit": print}), "elicitation"),
        (lambda: Client(["x"], answers={"roots": 7}), "expected a function that takes a Question"),
        (lambda: Client(["x"], on_note=7), "on_note is 7"),
    ],
)
def test_a_wrong_option_is_named(make: Callable[[], Client], message: str) -> None:
    """S-10."""
    with pytest.raises(ConfigError, match=message):
        make()


async def test_many_reads_at_once() -> None:
    """Each future gets its own answer, however they are batched."""
    async with Client([*SHOP, "stdio"]) as client:
        uris = [f"shop://item/{number}" for number in range(500)]
        assert await asyncio.gather(*map(client.read, uris)) == [f"item {number}" for number in range(500)]


@every_era
async def test_one_read_after_another(era: str) -> None:
    """A loop that reads its answers itself: nothing is lost when it blocks, or takes one back."""
    async with client_of("stdio", era) as client:

        async def read(count: int) -> None:
            for number in range(count):
                assert await client.read(f"shop://item/{number}") == f"item {number}"

        await read(50)
        blocked = asyncio.create_task(client.read("shop://item/blocked"))
        await asyncio.sleep(0)
        time.sleep(0.3)  # longer than the loop may leave unread what it was lent
        assert await blocked == "item blocked"
        await read(50)
        for _ in range(3):
            with pytest.raises(ReadFailedError, match="no answer within 50 ms"):
                await client.read("shop://slow/late", timeout=50)
            await read(10)
            task = asyncio.create_task(client.read("shop://slow/cancelled"))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await read(10)
        await asyncio.gather(read(20), read(20))
        await read(50)
        task = asyncio.create_task(client.read("shop://slow/closed"))
        await asyncio.sleep(0)
    with pytest.raises(ReadFailedError) as ended:
        await task
    assert ended.value.kind == "cancelled"


def test_a_loop_that_is_closed_leaves_no_server() -> None:
    """A client that is not closed, with a read in flight, ends with its loop and its last reference."""

    async def begin() -> tuple[list[Client], int]:
        client = Client([*SHOP, "stdio"])
        for number in range(20):
            assert await client.read(f"shop://item/{number}") == f"item {number}"
        asyncio.get_running_loop().create_task(client.read("shop://slow/left"))
        await asyncio.sleep(0)
        return [client], int(str(await client.read("shop://process")))

    clients, process = asyncio.run(begin())
    with pytest.warns(ResourceWarning, match="was not closed"):
        clients.clear()
    deadline = time.monotonic() + PATIENCE
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < deadline, "the server is still there"
        time.sleep(0.01)


def test_the_client_costs_a_server_nothing() -> None:
    """The client's half is loaded when it is first asked for."""
    script = "import sys, mcp_resources; print('mcp_resources.client' in sys.modules); mcp_resources.Client"
    assert run(f"{script}; print('mcp_resources.client' in sys.modules)") == ["False", "True"]


async def test_a_lifespan_is_open_while_a_client_is() -> None:
    """A server of this process: opened with the client, closed after it; what it raises, the client raises."""
    seen: list[str] = []

    @asynccontextmanager
    async def lifespan(server: ResourceServer) -> AsyncIterator[None]:
        seen.append("open")
        yield
        seen.append("closed")

    server = ResourceServer("x", lifespan=lifespan)
    async with Client(server):
        assert seen == ["open"]
    assert seen == ["open", "closed"]

    @asynccontextmanager
    async def broken(server: ResourceServer) -> AsyncIterator[None]:
        raise OSError("no database")
        yield

    with pytest.raises(OSError, match="no database"):
        async with Client(ResourceServer("x", lifespan=broken)):
            pass


async def test_a_failure_elsewhere_is_no_answer() -> None:
    """A handler that reads from another server: what is wrong there stays with the author."""
    server = ResourceServer("front")

    async with Client(shop(), resources=["shop://slow/1"]) as upstream:

        @server.resource("front://slow")
        async def slow() -> object:
            return await upstream.read("shop://slow/1", timeout=10)

        async with Client(server) as client:
            with pytest.raises(ReadFailedError) as failed:
                await client.read("front://slow")
    assert failed.value.kind == "server"
    assert "10 ms" not in str(failed.value)
