"""What handlers return and raise, and what the client gets."""

import asyncio
import enum
import json
import logging
import threading
import uuid
from array import array
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pydantic
import pytest
from mcp_resources import (
    AccessDeniedError,
    Contents,
    CustomError,
    InputDeclinedError,
    InvalidParameterError,
    InvalidUriError,
    Limits,
    McpError,
    RateLimitedError,
    ReadResult,
    ReadTimeoutError,
    Resource,
    ResourceNotFoundError,
    ResourceServer,
    SizeExceededError,
)
from mcp_resources.testing import Client, ServerError

LEGACY = "2025-11-25"


@dataclass
class Point:
    x: int
    tags: set[str] = field(default_factory=set)


class Level(enum.Enum):
    HIGH = "high"


async def read(server: ResourceServer, handler: Callable[..., object], **details: Any) -> list[Contents]:
    server.resource("a://b", **details)(handler)
    async with Client(server) as client:
        return await client.read("a://b")


async def fail(server: ResourceServer, handler: Callable[..., object], revision: str = "2026-07-28") -> ServerError:
    server.resource("a://b")(handler)
    async with Client(server, revision=revision) as client:
        with pytest.raises(ServerError) as caught:
            await client.read("a://b")
        return caught.value


@pytest.mark.parametrize("how", ["pool", "inline", "async"])
@pytest.mark.parametrize(
    ("value", "body", "mime_type"),
    [
        ("Grüße 世界 🦀", "Grüße 世界 🦀", "text/plain"),
        ("", "", "text/plain"),
        (b"\x00\xff", b"\x00\xff", "application/octet-stream"),
        (b"", b"", "application/octet-stream"),
        (bytearray(b"ab"), b"ab", "application/octet-stream"),
        (memoryview(b"abcd")[::2], b"ac", "application/octet-stream"),
        (array("B", [1, 2]), b"\1\2", "application/octet-stream"),
        (array("H", [1, 2]), "[1,2]", "application/json"),
        ({"ä": [1, None, True]}, '{"ä":[1,null,true]}', "application/json"),
        ([], "[]", "application/json"),
        ((1, 2), "[1,2]", "application/json"),
        (Point(1, {"a"}), '{"x":1,"tags":["a"]}', "application/json"),
        ({"d": date(2025, 1, 2), "l": Level.HIGH, "u": uuid.UUID(int=1)}, None, "application/json"),
    ],
)
async def test_returns(server: ResourceServer, how: str, value: object, body: object, mime_type: str) -> None:
    async def coroutine() -> object:
        return value

    handler: Callable[..., object] = coroutine if how == "async" else lambda: value
    (contents,) = await read(server, handler, inline=how == "inline")
    if body is None:
        body = '{"d":"2025-01-02","l":"high","u":"00000000-0000-0000-0000-000000000001"}'
    assert (contents.body, contents.mime_type, contents.uri) == (body, mime_type, "a://b")


async def test_pydantic_models_write_themselves(server: ResourceServer) -> None:
    model = pydantic.create_model("Model", at=(date, ...), inner=(dict[str, int], ...))
    (contents,) = await read(server, lambda: model(at="2025-01-02", inner={"a": 1}))
    assert contents.body == '{"at":"2025-01-02","inner":{"a":1}}'


async def test_a_resource_says_its_own_media_type(server: ResourceServer) -> None:
    (contents,) = await read(server, lambda: {"type": "Point"}, mime_type="application/geo+json")
    assert contents.mime_type == "application/geo+json"


async def test_contents_say_more(server: ResourceServer) -> None:
    def several() -> list[Contents]:
        return [
            Contents("one", uri="a://b/1", mime_type="text/x-one", meta={"com.example/n": 1}),
            Contents(b"two"),
            Contents({"three": 3}),
            Contents(array("B", [4])),
        ]

    assert await read(server, several) == [
        Contents("one", uri="a://b/1", mime_type="text/x-one", meta={"com.example/n": 1}),
        Contents(b"two", uri="a://b", mime_type="application/octet-stream"),
        Contents('{"three":3}', uri="a://b", mime_type="application/json"),
        Contents(b"\x04", uri="a://b", mime_type="application/octet-stream"),
    ]


async def test_a_result_carries_its_own_caching_hint(server: ResourceServer) -> None:
    """R-113, R-116: but what is registered as private stays so."""

    def own() -> ReadResult:
        return ReadResult(Contents("x"), ttl_ms=5, cache_scope="public")

    server.resource("a://b", ttl_ms=1)(own)
    server.resource("a://c", cache_scope="public")(own)
    async with Client(server) as client:
        for uri, scope in (("a://b", "private"), ("a://c", "public")):
            result = await client.request("read", {"uri": uri})
            assert (result["ttlMs"], result["cacheScope"]) == (5, scope)


async def test_no_contents_at_all_are_not_found(server: ResourceServer) -> None:
    """R-067."""
    assert (await fail(server, lambda: ReadResult([]))).kind == "not_found"


def sync_chunks(*chunks: object) -> Callable[[], Iterator[object]]:
    def generate() -> Iterator[object]:
        yield from chunks

    return generate


def async_chunks(*chunks: object) -> Callable[[], AsyncIterator[object]]:
    async def generate() -> AsyncIterator[object]:
        for chunk in chunks:
            await asyncio.sleep(0)
            yield chunk

    return generate


@pytest.mark.parametrize("make", [sync_chunks, async_chunks])
@pytest.mark.parametrize("inline", [True, False])
async def test_generators_are_gathered(server: ResourceServer, make: Callable[..., Any], inline: bool) -> None:
    (contents,) = await read(server, make("a", "ß", "c"), inline=inline, mime_type="text/x")
    assert (contents.body, contents.mime_type) == ("aßc", "text/x")
    server.remove_resource("a://b")
    (contents,) = await read(server, make(b"\x00", bytearray(b"\x01\x02"), b"\x03"))
    assert contents.body == b"\x00\x01\x02\x03"


async def test_a_generator_is_bounded_and_closed() -> None:
    server = ResourceServer("x", limits=Limits(contents=1000))
    closed: list[str] = []

    @server.resource("a://sync")
    def endless() -> Iterator[str]:
        try:
            while True:
                yield "x" * 100
        finally:
            closed.append("sync")

    @server.resource("a://async")
    async def endless_async() -> AsyncIterator[str]:
        try:
            while True:
                yield "x" * 100
        finally:
            closed.append("async")

    async with Client(server) as client:
        for uri in ("a://sync", "a://async"):
            with pytest.raises(ServerError) as caught:
                await client.read(uri)
            assert (caught.value.kind, caught.value.data["limit"]) == ("size_exceeded", 1000)
    assert closed == ["sync", "async"]


async def test_a_generator_that_fails_late_is_an_error(
    server: ResourceServer, caplog: pytest.LogCaptureFixture
) -> None:
    def late() -> Iterator[str]:
        yield "begun"
        raise RuntimeError("secret")

    assert (await fail(server, late)).kind == "read_error"
    assert "secret" in caplog.text


async def test_mixed_chunks_are_the_authors_mistake(server: ResourceServer, caplog: pytest.LogCaptureFixture) -> None:
    assert (await fail(server, sync_chunks("a", b"b"))).kind == "read_error"
    assert "yields texts and bytes" in caplog.text


@pytest.mark.parametrize(
    ("error", "kind", "modern", "legacy", "data"),
    [
        (ResourceNotFoundError(), "not_found", -32602, -32002, {}),
        (AccessDeniedError(), "not_found", -32602, -32002, {}),
        (InvalidUriError("no"), "invalid_uri", -32602, -32602, {}),
        (InvalidParameterError("x", "a word"), "invalid_parameter", -32602, -32602, {"parameter": "x"}),
        (SizeExceededError(10, 11), "size_exceeded", -31013, -32603, {"limit": 10, "size": 11}),
        (ReadTimeoutError(5), "timeout", -31008, -32603, {"timeoutMs": 5}),
        (RateLimitedError(7), "rate_limited", -31029, -32603, {"retryAfterMs": 7}),
        (InputDeclinedError(), "input_declined", -32602, -32603, {}),
        (RuntimeError("secret"), "read_error", -32603, -32603, {}),
        (ValueError("secret"), "read_error", -32603, -32603, {}),
        (TimeoutError("secret"), "read_error", -32603, -32603, {}),
        (McpError("secret"), "read_error", -32603, -32603, {}),
        (CustomError(4711, "Own", {"a": 1}), None, 4711, 4711, {"a": 1}),
    ],
)
async def test_exceptions_become_errors(
    error: Exception, kind: str | None, modern: int, legacy: int, data: dict[str, object]
) -> None:
    """DEC-20."""
    for revision, code in (("2026-07-28", modern), (LEGACY, legacy)):
        server = ResourceServer("x")

        def handler() -> str:
            raise error

        caught = await fail(server, handler, revision)
        assert (caught.code, caught.kind) == (code, kind)
        assert data.items() <= caught.data.items()
        assert "secret" not in json.dumps([caught.message, caught.data])
        if kind is not None:
            assert caught.data["uri"] == "a://b"


async def test_denials_may_be_explicit() -> None:
    server = ResourceServer("x", explicit_denials=True)

    async def handler() -> str:
        raise AccessDeniedError

    error = await fail(server, handler)
    assert (error.code, error.kind) == (-31003, "access_denied")


@pytest.mark.parametrize("value", [None, object(), {"a": object()}, float("nan"), "\ud800"])
async def test_what_cannot_be_answered_is_logged_for_the_author(
    server: ResourceServer, caplog: pytest.LogCaptureFixture, value: object
) -> None:
    error = await fail(server, lambda: value)
    assert (error.code, error.kind) == (-32603, "read_error")
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert "a://b" in record.getMessage()


async def test_an_exception_is_logged_with_its_traceback(
    server: ResourceServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken() -> str:
        raise RuntimeError("for the author")

    await fail(server, broken)
    assert "broken failed: a://b" in caplog.text
    assert 'raise RuntimeError("for the author")' in caplog.text


async def test_reserved_codes_are_refused(server: ResourceServer, caplog: pytest.LogCaptureFixture) -> None:
    """R-023."""

    def handler() -> str:
        raise CustomError(-32001, "mine")

    assert (await fail(server, handler)).code == -32603
    assert "-32001 is reserved" in caplog.text


async def test_big_contents_are_exact_and_bounded() -> None:
    server = ResourceServer("x", limits=Limits(contents=3 << 20))
    text = "Zeile “1”\t\\\n" * 100_000
    blob = bytes(range(256)) * 4096
    server.resource("a://text")(lambda: text)
    server.resource("a://blob")(lambda: memoryview(blob))
    server.resource("a://inline", inline=True)(lambda: text)
    server.resource("a://large")(lambda: b"x" * (3 << 20 | 1))
    async with Client(server) as client:
        assert await client.read_text("a://text") == text
        assert (await client.read("a://blob"))[0].body == blob
        assert await client.read_text("a://inline") == text
        with pytest.raises(ServerError) as caught:
            await client.read("a://large")
        assert caught.value.kind == "size_exceeded"


async def test_def_runs_on_a_worker_and_inline_does_not(server: ResourceServer) -> None:
    threads: dict[str, int] = {}

    def note(name: str) -> str:
        threads[name] = threading.get_ident()
        return name

    server.resource("a://pool")(lambda: note("pool"))
    server.resource("a://inline", inline=True)(lambda: note("inline"))
    async with Client(server) as client:
        await client.read("a://pool")
        await client.read("a://inline")
    assert threads["inline"] == threading.get_ident() != threads["pool"]


async def test_a_plain_function_that_returns_a_coroutine_is_told(
    server: ResourceServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def inner() -> str:
        raise AssertionError

    coroutine = inner()
    assert (await fail(server, lambda: coroutine)).kind == "read_error"
    assert "coroutine" in caplog.text
    coroutine.close()


async def test_one_function_is_behind_several_uris(server: ResourceServer, caplog: pytest.LogCaptureFixture) -> None:
    """A handler that is decorated again is the function that it was, whatever its kind."""

    @server.resource("a://later")
    @server.resource("a://now")
    async def waits() -> str:
        return "waited"

    @server.resource("a://lines")
    @server.resource("a://parts")
    def parts() -> Iterator[str]:
        yield "x"
        yield "y"

    server.add_resource(Resource("a://added"), read=waits)
    async with Client(server) as client:
        for uri in ("a://later", "a://now", "a://added"):
            assert await client.read_text(uri) == "waited"
        for uri in ("a://lines", "a://parts"):
            assert await client.read_text(uri) == "xy"
        names = {item["uri"]: item["name"] for item in await client.list_resources()}
    assert names["a://later"] == "waits"
    assert await waits() == "waited"
    assert not caplog.records
