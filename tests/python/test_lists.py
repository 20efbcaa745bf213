"""Lists, completion, and what clients hear of changes."""

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from mcp_resources import (
    Completion,
    Context,
    InvalidUriError,
    Limits,
    ListPage,
    RegistrationError,
    Resource,
    ResourceNotFoundError,
    ResourceServer,
    Variable,
)
from mcp_resources.testing import Client, Connection, ServerError

LEGACY = "2025-11-25"


def uris(items: list[dict[str, Any]]) -> list[str]:
    return [item["uri"] for item in items]


async def test_pages_are_walked() -> None:
    server = ResourceServer("x", limits=Limits(page=7))
    for number in range(30):
        server.add_resource(Resource(f"a://{number:02}"), text="")
    async with Client(server) as client:
        assert uris(await client.list_resources()) == [f"a://{number:02}" for number in range(30)]


@pytest.mark.parametrize("kind", ["pool", "inline", "async", "generator", "async generator"])
async def test_a_template_lists_its_resources(server: ResourceServer, kind: str) -> None:
    server.add_resource(Resource("z://last"), text="")
    template = server.resource("a://{x}", inline=kind == "inline")(lambda x: x)
    items = [Resource(f"a://{x}", name=x, size=1) for x in "cab"]

    async def coroutine() -> list[Resource]:
        await asyncio.sleep(0)
        return items

    def generator() -> Iterator[Resource]:
        yield from items

    async def async_generator() -> AsyncIterator[Resource]:
        for item in items:
            yield item

    functions: dict[str, Callable[[], Any]] = {
        "async": coroutine,
        "generator": generator,
        "async generator": async_generator,
    }
    template.list(functions.get(kind, lambda: items))
    async with Client(server) as client:
        listed = await client.list_resources()
    assert sorted(uris(listed)) == ["a://a", "a://b", "a://c", "z://last"]
    assert [item["size"] for item in listed if item["uri"] == "a://a"] == [1]


async def test_a_callback_that_takes_a_cursor_pages_itself() -> None:
    server = ResourceServer("x", limits=Limits(page=10))
    asked: list[str | None] = []

    @server.resource("a://{x}")
    def item(x: str) -> str:
        return x

    @item.list
    async def items(cursor: str | None) -> ListPage:
        asked.append(cursor)
        start = int(cursor or "0")
        numbers = range(start, min(start + 10, 25))
        return ListPage([Resource(f"a://{n:02}") for n in numbers], str(start + 10) if start + 10 < 25 else None)

    async with Client(server) as client:
        assert uris(await client.list_resources()) == [f"a://{n:02}" for n in range(25)]
    assert asked == [None, "10", "20"]


async def test_many_sources_one_after_the_other(server: ResourceServer) -> None:
    """The walk from source to source does not recurse."""

    def one(number: int) -> Callable[[], list[Resource]]:
        return lambda: [Resource(f"a://{number}/x")]

    with server.batch():
        for number in range(2_000):
            server.resource(f"a://{number}/{{x}}", inline=True)(lambda x: x).list(one(number))
    async with Client(server) as client:
        assert len(await client.list_resources()) == 2_000


async def test_a_listed_resource_is_named_after_its_values(server: ResourceServer) -> None:
    """R-058: a value by itself, or a dict; lists make no name."""
    server.resource("a://{x}{?y}")(lambda x, y=None: x).list(lambda: [{"y": 2, "x": "b"}, {"x": "d"}])
    server.resource("b://{x*}", vars={"x": Variable(kind="list")})(lambda x: "").list(lambda: [{"x": ["c", "d"]}])
    server.resource("c://{x}")(lambda x: x).list(lambda: ["e f", 7])
    async with Client(server) as client:
        listed = {item["uri"]: item["name"] for item in await client.list_resources()}
    assert listed == {"a://b?y=2": "b/2", "a://d": "d", "b://c,d": "b://c,d", "c://e%20f": "e f", "c://7": "7"}


async def test_a_failing_source_fails_the_list(server: ResourceServer, caplog: pytest.LogCaptureFixture) -> None:
    @server.resource("a://{x}")
    def item(x: str) -> str:
        return x

    @item.list
    def items() -> list[Resource]:
        raise RuntimeError("secret")

    async with Client(server) as client:
        with pytest.raises(ServerError) as caught:
            await client.list_resources()
        assert (caught.value.code, "secret" in caught.value.message) == (-32603, False)
    assert "secret" in caplog.text


async def test_a_list_of_something_else_is_logged(server: ResourceServer, caplog: pytest.LogCaptureFixture) -> None:
    server.resource("a://{x}")(lambda x: x).list(lambda: [["a://b"]])
    async with Client(server) as client:
        with pytest.raises(ServerError):
            await client.list_resources()
    assert "failed: list" in caplog.text


def test_only_templates_list_and_complete(server: ResourceServer) -> None:
    handler = server.resource("a://b")(lambda: "")
    with pytest.raises(RegistrationError, match="no template"):
        handler.list(lambda: [])
    with pytest.raises(RegistrationError, match="nothing to complete"):
        handler.complete("x")
    with pytest.raises(RegistrationError, match="one too many"):
        server.resource("a://{x}")(lambda x: x).complete("x")(lambda value, arguments, more: [])


@pytest.mark.parametrize("kind", ["pool", "inline", "async"])
async def test_completion(server: ResourceServer, kind: str) -> None:
    @server.resource("a://{user}/{file}")
    def handler(user: str, file: str) -> str:
        return user + file

    def files(value: str, arguments: dict[str, str], ctx: Context) -> list[str]:
        return [f"{arguments.get('user', '?')}-{value}-{ctx.revision}"]

    async def coroutine(value: str, arguments: dict[str, str], ctx: Context) -> list[str]:
        await asyncio.sleep(0)
        return files(value, arguments, ctx)

    handler.complete("file", inline=kind == "inline")(coroutine if kind == "async" else files)
    handler.complete("user")(lambda value: Completion(["a", "b"], total=10))
    async with Client(server) as client:
        found = await client.complete("a://{user}/{file}", "file", "f", {"user": "u"})
        assert found.values == ["u-f-2026-07-28"]
        found = await client.complete("a://{user}/{file}", "user", "")
        assert (found.values, found.total, found.has_more) == (["a", "b"], 10, True)
        with pytest.raises(ServerError) as unknown:
            await client.complete("a://{user}/{file}", "none", "")
        assert unknown.value.code == -32602


async def test_more_values_than_fit_are_cut(server: ResourceServer) -> None:
    """R-108."""
    server.resource("a://{x}")(lambda x: x).complete("x")(lambda value: (str(n) for n in range(250)))
    async with Client(server) as client:
        found = await client.complete("a://{x}", "x", "")
    assert (len(found.values), found.total, found.has_more) == (100, 250, True)


@pytest.mark.parametrize("value", ["text", [1], 5])
async def test_a_bad_completion_is_logged(
    server: ResourceServer, caplog: pytest.LogCaptureFixture, value: object
) -> None:
    server.resource("a://{x}")(lambda x: x).complete("x")(lambda typed: value)
    async with Client(server) as client:
        with pytest.raises(ServerError) as caught:
            await client.complete("a://{x}", "x", "")
        assert caught.value.code == -32603
    assert "failed: x" in caplog.text


async def test_updates_reach_subscribers_from_any_thread(server: ResourceServer) -> None:
    server.add_resource(Resource("a://b"), text="")
    async with Client(server) as modern, Client(server, revision=LEGACY) as legacy, Client(server) as deaf:
        await legacy.subscribe("A://b")
        async with modern.listen(["a://%62"]) as listen:
            assert listen.honoured == {"resourceSubscriptions": ["a://%62"]}
            threading.Thread(target=server.notify_updated, args=("a://b",)).start()
            assert (await listen.next()).params["uri"] == "a://%62"
            assert (await legacy.notification()).params["uri"] == "A://b"
            await legacy.unsubscribe("a://b")
        server.notify_updated("a://b")
        for client in (modern, legacy, deaf):
            with pytest.raises(TimeoutError):
                await client.notification(0.1)


async def test_a_burst_of_updates_is_coalesced(server: ResourceServer) -> None:
    server.add_resource(Resource("a://b"), text="")
    async with Client(server) as client, client.listen(["a://b"]) as listen:
        for _ in range(100):
            server.notify_updated("a://b")
        await listen.next()
        await listen.next()
        with pytest.raises(TimeoutError):
            await listen.next(0.15)


async def test_a_handler_hears_who_watches(server: ResourceServer, caplog: pytest.LogCaptureFixture) -> None:
    """Over all clients, on a thread of its own; what fails is logged and the next change is told."""
    heard: queue.Queue[tuple[str, bool]] = queue.Queue()

    async def changes(count: int) -> list[tuple[str, bool]]:
        return sorted([await asyncio.to_thread(heard.get, timeout=30) for _ in range(count)])

    template = server.resource("a://{x}")(lambda x: x)
    other = server.resource("A://fixed")(lambda: "")
    server.resource("b://{x}")(lambda x: x)

    @template.on_watch
    def watched(uri: str, on: bool) -> None:
        heard.put((uri, on))
        if uri.endswith("bad"):
            raise ValueError("not this one")

    other.on_watch(lambda uri, on: heard.put((f"fixed {uri}", on)))
    async with Client(server) as client, Client(server, revision=LEGACY) as legacy:
        async with client.listen(["a://1", "a://fixed", "b://1", "a://bad"]):
            assert await changes(3) == [("a://1", True), ("a://bad", True), ("fixed a://fixed", True)]
            await legacy.subscribe("a://%31")
        assert await changes(2) == [("a://bad", False), ("fixed a://fixed", False)]
        await legacy.unsubscribe("a://1")
        assert await changes(1) == [("a://1", False)]
        assert heard.empty()
    assert "watched failed: a://bad" in caplog.text
    with pytest.raises(TypeError, match="plain function"):
        template.on_watch(asyncio.sleep)


async def test_changes_of_the_list_are_told(server: ResourceServer) -> None:
    async with Client(server, revision=LEGACY) as client:
        server.add_resource(Resource("a://b"), text="")
        assert (await client.notification()).kind == "list_changed"
        await asyncio.to_thread(server.remove_resource, "a://b")
        assert (await client.notification()).kind == "list_changed"
        server.notify_list_changed()
        assert (await client.notification()).kind == "list_changed"


async def test_a_handler_may_notify_and_register(server: ResourceServer) -> None:
    def change(ctx: Context) -> str:
        server.add_resource(Resource(f"a://new/{ctx.revision}"), text="new")
        server.notify_updated("a://watched")
        return "ok"

    server.resource("a://pool")(change)
    server.resource("a://inline", inline=True)(change)
    server.add_resource(Resource("a://watched"), text="")
    for uri, revision in (("a://inline", LEGACY), ("a://pool", "2025-06-18")):
        async with Client(server, revision=revision) as client:
            await client.subscribe("a://watched")
            assert await client.read_text(uri) == "ok"
            assert {(await client.notification()).kind for _ in range(2)} == {"updated", "list_changed"}
            assert await client.read_text(f"a://new/{revision}") == "new"


def test_notifying_of_no_uri_is_an_error(server: ResourceServer) -> None:
    with pytest.raises(InvalidUriError):
        server.notify_updated("no uri")


async def test_a_removed_handler_is_not_found(server: ResourceServer) -> None:
    handler = server.resource("a://{x}")(lambda x: x)
    async with Client(server) as client:
        assert await client.read_text("a://b") == "b"
        handler.remove()
        with pytest.raises(ServerError) as caught:
            await client.read("a://b")
        assert caught.value.kind == "not_found"
    assert server._core.handlers == 0


META = (
    b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
)


def test_a_connection_without_time_threads_or_io(server: ResourceServer) -> None:
    futures: list[asyncio.Future[str]] = []

    @server.resource("a://wait")
    async def wait() -> str:
        futures.append(asyncio.get_running_loop().create_future())
        return await futures[-1]

    @server.resource("a://missing")
    def missing() -> str:
        raise ResourceNotFoundError

    server.resource("a://def")(lambda: "def")
    connection = Connection(server, now=(1000, 5))

    def read(id: int, uri: bytes) -> bytes:
        return b'{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":"%b",%b}}\n' % (id, uri, META)

    line = read(1, b"a://def")
    assert b"".join(connection.receive(line[at : at + 1]) for at in range(len(line))).endswith(b"\n")
    assert b"-32602" in connection.receive(read(2, b"a://missing"))
    assert connection.receive(read(3, b"a://wait")) == b""
    assert connection.in_flight == 1
    futures[0].set_result("done")
    assert b'"text":"done"' in connection.settle()
    connection.receive(read(4, b"a://wait"))
    assert connection.tick(29_999) == b""
    assert b"timeoutMs" in connection.tick(1)
    assert futures[1].cancelled()
    assert connection.in_flight == 0
    listen = b'{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{%b,"notifications":{"resourceSubscriptions":["a://def"]}}}\n'
    assert b"acknowledged" in connection.receive(listen % META)
    server.notify_updated("a://def")
    assert connection.settle() == b""
    assert connection.deliver(0) == b""
    assert b'"uri":"a://def"' in connection.deliver()
    connection.close()


async def test_a_value_that_a_lambda_keeps_is_its_own(server: ResourceServer) -> None:
    """`region=region` in a loop is no place for the cursor or for the values that were chosen."""

    @server.resource("a://{region}/{name}")
    def read(region: str, name: str) -> str:
        return name

    for region in ["eu"]:
        read.list(lambda region=region: [{"region": region, "name": "1"}])
        read.complete("name")(lambda value, region=region: [region])
    async with Client(server) as client:
        assert uris(await client.list_resources()) == ["a://eu/1"]
        assert (await client.complete("a://{region}/{name}", "name", "")).values == ["eu"]


@pytest.mark.parametrize("default", [None, "start"])
async def test_a_cursor_may_have_a_default(server: ResourceServer, default: str | None) -> None:
    @server.resource("a://{name}")
    def read(name: str) -> str:
        return name

    @read.list
    def names(cursor: str | None = default) -> ListPage:
        return ListPage(["2"]) if cursor == "next" else ListPage(["1"], "next")

    async with Client(server) as client:
        assert uris(await client.list_resources()) == ["a://1", "a://2"]
