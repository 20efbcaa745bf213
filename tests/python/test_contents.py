"""The option `redact`, and the cache of reads."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from asgi_call import Call
from mcp_resources import Contents, ReadResult, Resource, ResourceServer
from mcp_resources.testing import Client, ServerError
from test_asgi import initialize, modern, request

Seen = list[tuple[str, object, str | None]]


def redacting(seen: Seen | None = None, **options: Any) -> ResourceServer:
    """A server whose contents lose what is secret."""

    def redact(uri: str, contents: Contents) -> Contents:
        if seen is not None:
            seen.append((uri, contents.body, contents.mime_type))
        body = contents.body
        if isinstance(body, str):
            return Contents(body.replace("secret", "*"), mime_type=contents.mime_type, meta=contents.meta)
        assert isinstance(body, bytes)
        return Contents(bytes(len(body)), uri=contents.uri)

    return ResourceServer("x", redact=redact, **options)


async def read(server: ResourceServer, uri: str) -> list[Contents]:
    async with Client(server) as client:
        return await client.read(uri)


def plain() -> str:
    return "a secret"


async def later() -> str:
    await asyncio.sleep(0)
    return "a secret"


def chunks() -> Iterator[str]:
    yield "a sec"
    yield "ret"


async def async_chunks() -> AsyncIterator[str]:
    yield "a sec"
    await asyncio.sleep(0)
    yield "ret"


@pytest.mark.parametrize("function", [plain, later, chunks, async_chunks])
@pytest.mark.parametrize("inline", [True, False])
async def test_whatever_a_handler_returns_is_redacted(function: Callable[[], Any], inline: bool) -> None:
    """S-19."""
    seen: Seen = []
    server = redacting(seen)
    server.resource("a://b", inline=inline, mime_type="text/x")(function)
    (contents,) = await read(server, "a://b")
    assert (contents.body, contents.mime_type, contents.uri) == ("a *", "text/x", "a://b")
    assert seen == [("a://b", "a secret", None)]


async def test_constants_json_and_bytes_are_redacted() -> None:
    """S-19: text and blob, and each entry with its own URI."""
    seen: Seen = []
    server = redacting(seen)
    server.add_resource(Resource("a://text"), text="secret")
    server.add_resource(Resource("a://bytes"), bytes=b"secret")
    server.resource("a://json")(lambda: {"is": "secret"})
    server.resource("a://two")(lambda: [Contents("secret", uri="a://two/2", meta={"com.example/n": 1}), Contents(b"x")])
    server.resource("a://chunks")(lambda: iter([b"ab"]))
    assert [(await read(server, uri))[0].body for uri in ("a://text", "a://bytes", "a://json")] == [
        "*",
        bytes(6),
        '{"is":"*"}',
    ]
    text, blob = await read(server, "a://two")
    assert (text.body, text.meta, blob.body) == ("*", {"com.example/n": 1}, bytes(1))
    assert seen[2:] == [
        ("a://json", '{"is":"secret"}', "application/json"),
        ("a://two/2", "secret", None),
        ("a://two", b"x", None),
    ]


@pytest.mark.parametrize("redact", [lambda uri, contents: None, lambda uri, contents: "text", lambda: None])
async def test_a_redact_that_fails_sends_nothing(redact: Any, caplog: pytest.LogCaptureFixture) -> None:
    """S-19: it fails closed, for constants too."""
    server = ResourceServer("x", redact=redact)
    server.resource("a://live")(plain)
    server.add_resource(Resource("a://text"), text="a secret")
    async with Client(server) as client:
        for uri in ("a://live", "a://text"):
            with pytest.raises(ServerError) as caught:
                await client.read(uri)
            assert caught.value.kind == "read_error"
            assert "secret" not in f"{caught.value} {caught.value.data}"
    assert "redact" in caplog.text or "takes 0" in caplog.text


async def test_a_result_keeps_its_hint() -> None:
    server = redacting()
    server.resource("a://b", ttl_ms=5)(lambda: ReadResult(Contents("secret"), ttl_ms=7))
    async with Client(server) as client:
        result = await client.request("read", {"uri": "a://b"})
    assert (result["ttlMs"], result["contents"][0]["text"]) == (7, "*")


class Counted:
    """A resource that is kept, with a function that waits."""

    def __init__(self, *, pool: bool, **options: Any) -> None:
        self.server = ResourceServer("x", cache=True, **options)
        self.calls = 0
        self.gate = threading.Event()
        function = self.block if pool else self.wait
        self.server.resource("a://slow", ttl_ms=60_000)(function)

    def block(self) -> str:
        self.calls += 1
        self.gate.wait(5)
        return f"call {self.calls}"

    async def wait(self) -> str:
        self.calls += 1
        while not self.gate.is_set():
            await asyncio.sleep(0.001)
        return f"call {self.calls}"

    async def until_called(self) -> None:
        while not self.calls:
            await asyncio.sleep(0.001)
        await settled()


async def settled() -> None:
    """Lets the loop take so many turns that nothing more happens by itself."""
    for _ in range(40):
        await asyncio.sleep(0)


@pytest.mark.parametrize("pool", [True, False])
async def test_concurrent_reads_make_one_call(pool: bool) -> None:
    """R-219, R-220: of several clients, on a thread and on the loop; kept until an update."""
    counted = Counted(pool=pool)
    async with Client(counted.server) as one, Client(counted.server) as two:
        reads = [asyncio.ensure_future(client.read_text("a://slow")) for client in (one, one, two, two)]
        await counted.until_called()
        counted.gate.set()
        assert await asyncio.wait_for(asyncio.gather(*reads), 5) == ["call 1"] * 4
        assert await two.read_text("a://slow") == "call 1"
        counted.server.notify_updated("A://slow")
        assert await one.read_text("a://slow") == "call 2"


async def test_concurrent_requests_over_http_make_one_call() -> None:
    """R-219: each answer goes to its own response, in both eras."""
    counted = Counted(pool=False)
    app = counted.server.asgi()
    session = await initialize(app)
    first: list[Call] = [modern(app, 1, "resources/read", uri="a://slow")]
    await counted.until_called()
    rest = [modern(app, n, "resources/read", uri="A://slow") for n in (2, 3)]
    rest += [session.post(request(n, "resources/read", uri="a://slow")) for n in (4, 5)]
    await settled()
    counted.gate.set()
    answers = [await asyncio.wait_for(call.json(), 5) for call in first + rest]
    assert [answer["id"] for answer in answers] == [1, 2, 3, 4, 5]
    assert {answer["result"]["contents"][0]["text"] for answer in answers} == {"call 1"}
    assert counted.calls == 1


async def test_a_call_goes_on_for_those_who_wait() -> None:
    """R-128, R-131: the client that made the call leaves."""
    counted = Counted(pool=False)
    app = counted.server.asgi()
    first = modern(app, 1, "resources/read", uri="a://slow")
    await counted.until_called()
    second = modern(app, 2, "resources/read", uri="a://slow")
    await settled()
    first.leave()
    await settled()
    counted.gate.set()
    answer = await asyncio.wait_for(second.json(), 5)
    assert (answer["result"]["contents"][0]["text"], counted.calls) == ("call 1", 1)
