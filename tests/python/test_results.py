"""What a handler may return: JSON of every type, and results in the shape of other SDKs."""

import array
import asyncio
import base64
import ctypes
import dataclasses
import enum
import functools
import gc
import io
import ipaddress
import json
import mmap
import pickle
import sqlite3
import types
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, cast

import attrs
import numpy
import pydantic
import pytest
from mcp_resources import Contents, Context, Resource, ResourceNotFoundError, ResourceServer, providers
from mcp_resources.encoding import is_bytes, to_json
from mcp_resources.functions import json_of
from mcp_resources.testing import Client, Connection, ServerError
from test_asgi import MODERN_META as META


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: Color


def row() -> sqlite3.Row:
    connection = sqlite3.connect(":memory:")
    try:
        connection.row_factory = sqlite3.Row
        found: sqlite3.Row = connection.execute("select 1 as id, 'a' as name").fetchone()
        return found
    finally:
        connection.close()


async def read(server: ResourceServer, value: object) -> list[Contents]:
    server.resource("a://b", replace=True)(lambda: value)
    async with Client(server) as client:
        return await client.read("a://b")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, 7),
        (1.5, 1.5),
        (True, True),
        ({"a"}, ["a"]),
        (Color.RED, "red"),
        ([Point(1, Color.RED)], [{"x": 1, "y": "red"}]),
        (PurePosixPath("/a/b"), "/a/b"),
        (Decimal("1.10"), "1.10"),
        (date(2025, 1, 2), "2025-01-02"),
        (datetime(2025, 1, 2, tzinfo=UTC), "2025-01-02T00:00:00+00:00"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (row(), {"id": 1, "name": "a"}),
        ([row()], [{"id": 1, "name": "a"}]),
        (timedelta(days=1, hours=1, milliseconds=500), "P1DT1H0.5S"),
        (-timedelta(hours=1), "-PT1H"),
        (timedelta(0), "PT0S"),
        (deque([1, Color.RED]), [1, "red"]),
        (range(3), [0, 1, 2]),
        ({"a": 1}.keys(), ["a"]),
        ([{"a": 1}.values(), {"a": 1}.items()], [[1], [["a", 1]]]),
        (ipaddress.ip_address("127.0.0.1"), "127.0.0.1"),
        ([ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_address("::1")], ["10.0.0.0/8", "::1"]),
        ({Color.RED: 1}, {"red": 1}),
        (
            [{uuid.UUID(int=1): {date(2025, 1, 2): Color.RED}}],
            [{"00000000-0000-0000-0000-000000000001": {"2025-01-02": "red"}}],
        ),
        ({PurePosixPath("/a"): 1, Decimal("1.10"): 2, ipaddress.ip_address("::1"): 3}, {"/a": 1, "1.10": 2, "::1": 3}),
        (
            {1: 2, 1.5: 3, None: 4, "a": {Color.RED: [Point(1, Color.RED)]}},
            {"1": 2, "1.5": 3, "null": 4, "a": {"red": [{"x": 1, "y": "red"}]}},
        ),
        ({numpy.int64(7): 1, timedelta(hours=1): 2}, {"7": 1, "PT1H": 2}),
    ],
)
async def test_json_of_every_type(server: ResourceServer, value: object, expected: object) -> None:
    (contents,) = await read(server, value)
    assert (json.loads(str(contents.body)), contents.mime_type) == (expected, "application/json")


async def test_keys_without_a_text_of_their_own_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    server = ResourceServer("x")
    for value in ({(1, 2): 3}, {frozenset({1}): 1}, {object: 1}, {Color.RED: 1, "red": 2}):
        with pytest.raises(ServerError):
            await read(server, value)
    assert "the key (1, 2), a tuple" in caplog.text
    assert "two keys of a dict have the same text" in caplog.text


async def test_an_encoder_has_the_first_word_about_keys_too() -> None:
    server = ResourceServer("x", encoder=lambda value: "key" if isinstance(value, tuple | date) else NotImplemented)
    (contents,) = await read(server, {date(2025, 1, 2): [{(1, 2): 1}]})
    assert json.loads(str(contents.body)) == {"key": [{"key": 1}]}


async def test_an_encoder_has_the_first_word() -> None:
    class Money:
        amount = 5

    def encoder(value: object) -> object:
        if isinstance(value, Money):
            return {"amount": value.amount}
        return "day" if isinstance(value, date) else NotImplemented

    server = ResourceServer("x", encoder=encoder)
    (contents,) = await read(server, [Money(), date(2025, 1, 2), Color.RED])
    assert json.loads(str(contents.body)) == [{"amount": 5}, "day", "red"]


class TextResourceContents:
    """As the official SDK has it."""

    __module__ = "mcp.types"

    def __init__(self, uri: str, text: str) -> None:
        self.uri, self.text, self.mimeType, self.meta = uri, text, "text/markdown", {"com.example/n": 1}


class BlobResourceContents:
    __module__ = "mcp_types._types"

    def __init__(self, uri: str, blob: str) -> None:
        self.uri, self.blob, self.mimeType = uri, blob, None


class ResourceContent:
    """As FastMCP has it; `ReadResourceContents` of the official SDK is alike."""

    __module__ = "fastmcp.resources.base"

    def __init__(self, content: str | bytes) -> None:
        self.content, self.mime_type, self.meta = content, "text/csv", None


class ResourceResult:
    """As FastMCP has it; `ReadResourceResult` of the official SDK is alike."""

    __module__ = "fastmcp.resources.base"

    def __init__(self, contents: list[object]) -> None:
        self.contents = contents


BLOB = base64.b64encode(b"\x00\xff").decode()
TEXT = Contents("t", uri="a://x", mime_type="text/markdown", meta={"com.example/n": 1})
WIRE = {"uri": "a://x", "mimeType": "text/markdown", "text": "t", "_meta": {"com.example/n": 1}}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"contents": [WIRE]}, [TEXT]),
        ({"contents": [WIRE, {"uri": "a://y", "blob": BLOB}], "resultType": "complete"}, None),
        (TextResourceContents("a://x", "t"), [TEXT]),
        ([TextResourceContents("a://x", "t")], [TEXT]),
        (ResourceResult([TextResourceContents("a://x", "t")]), [TEXT]),
        (
            ResourceResult([BlobResourceContents("a://y", BLOB)]),
            [Contents(b"\x00\xff", uri="a://y", mime_type="application/octet-stream")],
        ),
        (ResourceResult([ResourceContent("1,2")]), [Contents("1,2", uri="a://b", mime_type="text/csv")]),
        (ResourceContent(b"1"), [Contents(b"1", uri="a://b", mime_type="text/csv")]),
    ],
)
async def test_results_of_other_sdks(server: ResourceServer, value: object, expected: list[Contents] | None) -> None:
    found = await read(server, value)
    if expected is None:
        assert [contents.body for contents in found] == ["t", b"\x00\xff"]
    else:
        assert found == expected


@pytest.mark.parametrize(
    "value",
    [
        {"contents": []},
        {"contents": ["a"]},
        {"contents": [WIRE], "author": "me"},
        {"contents": [{"uri": "a://x", "text": "t", "blob": BLOB}]},
        [WIRE],
        {"contents": [WIRE | {"score": 0.5}]},
        {"contents": [WIRE, {"uri": "a://y", "text": "t", "title": "T"}]},
    ],
)
async def test_what_only_looks_alike_is_json(server: ResourceServer, value: object) -> None:
    (contents,) = await read(server, value)
    assert json.loads(str(contents.body)) == value


class Article(pydantic.BaseModel):
    uri: str = "mailto:a@b"
    content: str = "body"
    mime_type: str = "text/plain"
    text: str = "t"
    id: int = 1


@dataclasses.dataclass
class Mail:
    uri: str = "mailto:a@b"
    mimeType: str = "text/plain"
    text: str = "hi"
    content: str = "hi"


@attrs.define
class Record:
    uri: str = "mailto:a@b"
    mime_type: str = "text/plain"
    blob: str = "aGk="
    content: bytes | None = None


class Row(Mapping[str, object]):
    """As rows of a database have both keys and attributes."""

    uri, mime_type, text, content = "mailto:a@b", "text/plain", "hi", "hi"

    def __getitem__(self, key: str) -> object:
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(("uri", "mime_type", "text", "content"))

    def __len__(self) -> int:
        return 4


class Page(pydantic.BaseModel):
    contents: list[Article] = [Article()]


class ResourceContents(types.SimpleNamespace):
    """A class of the author with a name that an SDK has, too."""


@pytest.mark.parametrize("make", [Article, Mail, Record, Row, Page])
async def test_members_of_an_author_are_data(server: ResourceServer, make: Callable[[], object]) -> None:
    """Whatever they are called, alone, in a list and in a dict, and as the return annotation says."""
    for value in (make(), [make()], (make(), make()), {"contents": [make()]}, {"pages": [make()]}):
        (contents,) = await read(server, value)
        assert (contents.uri, contents.mime_type) == ("a://b", "application/json")
        assert json.loads(str(contents.body)) == json.loads(to_json(value))
    text = to_json(make())
    assert "text/plain" in text
    assert text.count(":") > 3


async def test_an_object_without_a_json_form_is_refused_whatever_its_members_are_called(server: ResourceServer) -> None:
    for value in (ResourceContents(uri="a://x", mimeType="text/plain", text="t"), type("X", (), {"contents": [1]})()):
        with pytest.raises(ServerError, match="Failed to read"):
            await read(server, value)


async def test_results_of_the_official_sdk(server: ResourceServer) -> None:
    from mcp import types as sdk  # of the tests alone: other tests here need no SDK
    from mcp.server.lowlevel.helper_types import ReadResourceContents

    class Own(sdk.TextResourceContents):
        """A class of the author that is derived from one of the SDK."""

    text = sdk.TextResourceContents(uri="a://x", text="t")
    blob = sdk.BlobResourceContents(uri="a://y", blob=BLOB)
    text_only, both = await read(server, text), await read(server, sdk.ReadResourceResult(contents=[text, blob]))
    assert [contents.body for contents in text_only + both] == ["t", "t", b"\x00\xff"]
    (one,), (other,) = await read(server, Own(uri="a://x", text="t")), await read(server, ReadResourceContents("t"))
    assert (one.body, one.uri, other.body, other.uri) == ("t", "a://x", "t", "a://b")
    assert [json_of(returning(cls)) for cls in (sdk.ReadResourceResult, list[Own], Own, Article)] == [
        None,
        None,
        None,
        "application/json",
    ]


def returning(annotation: object) -> Callable[[], object]:
    def function() -> object: ...

    function.__annotations__["return"] = annotation
    return function


def machine_values() -> list[tuple[object, object]]:
    """Values with a buffer, and what they are in JSON."""
    record = numpy.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")])

    class Pair(ctypes.Structure):
        _fields_ = (("x", ctypes.c_int), ("y", ctypes.c_double))

    grid = numpy.arange(6).reshape(2, 3)
    numbers = [(numpy.dtype(kind).type(3), 3) for kind in "bBhHiIlLqQefdg"]
    arrays = [(numpy.array([1, 2], dtype=kind), [1, 2]) for kind in "bhHiIlLqQefd"]
    own = [(array.array(kind, [1, 2]), [1, 2]) for kind in "bhHiIlLqQfd"]
    views = [(memoryview(array.array(kind, [1, 2])), [1, 2]) for kind in "bhHiIlLqQfd"]
    return [
        *numbers,
        *arrays,
        *own,
        *views,
        (numpy.bool_(True), True),
        (numpy.array([True, False]), [True, False]),
        (numpy.int64(1_800_000_000), 1_800_000_000),
        (numpy.array([1.0, 2.0]).mean(), 1.5),
        (numpy.datetime64("2025-01-02"), "2025-01-02"),
        (numpy.datetime64("2025-01-02T03:04:05.000000006"), "2025-01-02T03:04:05.000000006"),
        (numpy.array(["2025-01-02"], dtype="datetime64[D]"), ["2025-01-02"]),
        (numpy.array(["a", "b"]), ["a", "b"]),
        (numpy.array([{"a": 1}, None, "x"], dtype=object), [{"a": 1}, None, "x"]),
        (record[0], [1, 2.5]),
        (record, [[1, 2.5]]),
        (grid, [[0, 1, 2], [3, 4, 5]]),
        (grid[:, ::2], [[0, 2], [3, 5]]),
        (grid.T, [[0, 3], [1, 4], [2, 5]]),
        (grid[:0], []),
        (numpy.array(7), 7),
        (numpy.ma.masked_array([1, 2], mask=[0, 1]), [1, None]),
        (memoryview(grid), [[0, 1, 2], [3, 4, 5]]),
        (memoryview(array.array("i")), []),
        (array.array("u", "né"), "né"),
        ((ctypes.c_int * 2)(1, 2), [1, 2]),
        ((ctypes.c_double * 2)(1, 2), [1, 2]),
        ((ctypes.py_object * 1)({"a": 1}), [{"a": 1}]),
        (ctypes.c_int(5), 5),
        (Pair(1, 2.5), {"x": 1, "y": 2.5}),
        ((Pair * 1)(Pair(1, 2.5)), [{"x": 1, "y": 2.5}]),
    ]


@pytest.mark.parametrize(("value", "expected"), machine_values())
async def test_the_memory_of_a_value_is_not_served(server: ResourceServer, value: object, expected: object) -> None:
    """Alone, in contents, in a list and in a dict."""
    for given, then in ((value, expected), ([value], [expected]), ({"a": value}, {"a": expected})):
        for result in (given, Contents(given), [Contents(given)]):
            (contents,) = await read(server, result)
            assert isinstance(contents.body, str)
            assert (json.loads(contents.body), contents.mime_type) == (then, "application/json")


def buffers() -> list[tuple[object, bytes]]:
    """Bytes, as objects with a buffer have them."""
    pixels = numpy.arange(6, dtype="uint8").reshape(2, 3)
    memory = mmap.mmap(-1, 2)
    memory.write(b"ab")
    return [
        (b"ab", b"ab"),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"abc")[::2], b"ac"),
        (memoryview(b"ab").cast("c"), b"ab"),
        (memoryview(b"abcd").cast("B", (2, 2)), b"abcd"),
        (memory, b"ab"),
        (array.array("B", [1, 2]), b"\1\2"),
        (pixels, bytes(range(6))),
        (pixels[:, ::2], b"\0\2\3\5"),
        (pixels[:0], b""),
        (ctypes.create_string_buffer(b"a"), b"a\0"),
        ((ctypes.c_ubyte * 2)(1, 2), b"\1\2"),
        ((ctypes.c_byte * 2)(1, -1), b"\1\xff"),
        (io.BytesIO(b"ab").getbuffer(), b"ab"),
        (pickle.PickleBuffer(b"ab"), b"ab"),
        (numpy.bytes_(b"ab"), b"ab"),
    ]


@pytest.mark.parametrize(("value", "expected"), buffers())
async def test_buffers_of_bytes_are_bytes(server: ResourceServer, value: object, expected: bytes) -> None:
    assert is_bytes(value)

    def chunks() -> Iterator[object]:
        yield value
        yield value

    for result in (value, Contents(value)):
        assert [contents.body for contents in await read(server, result)] == [expected]
    server.resource("a://chunks", replace=True)(chunks)
    server.add_resource(Resource("a://constant"), bytes=value, replace=True)
    async with Client(server) as client:
        assert [contents.body for contents in await client.read("a://chunks")] == [expected * 2]
        assert [contents.body for contents in await client.read("a://constant")] == [expected]


@pytest.mark.parametrize("value", [numpy.int64(9), numpy.array([1.5]), array.array("i", [1]), 9, ctypes.c_int(5)])
async def test_numbers_are_no_bytes(server: ResourceServer, value: object, caplog: pytest.LogCaptureFixture) -> None:
    """As a chunk of a stream and as a constant they are refused: `bytes(9)` would be nine zero bytes."""
    assert not is_bytes(value)
    server.resource("a://chunks")(lambda: iter(()))

    def chunks() -> Iterator[object]:
        yield value

    server.resource("a://chunks", replace=True)(chunks)
    async with Client(server) as client:
        with pytest.raises(ServerError):
            await client.read("a://chunks")
    assert "expected a text or bytes" in caplog.text
    with pytest.raises(TypeError, match="expected bytes or a buffer of bytes"):
        server.add_resource(Resource("a://constant"), bytes=value)
    with pytest.raises(TypeError):
        providers.memory().put("a", cast(Any, value))


def timed(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: object, **kwargs: object) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Later:
    """Can be awaited, as a query of a database library."""

    def __await__(self) -> Iterator[Any]:
        yield from asyncio.sleep(0).__await__()
        return "abc"


async def coroutine(*_: object) -> str:
    await asyncio.sleep(0)
    return "abc"


def generator(*_: object) -> Iterator[str]:
    yield from "abc"


async def async_generator(*_: object) -> AsyncIterator[str]:
    for letter in "abc":
        await asyncio.sleep(0)
        yield letter


async def coroutine_of_a_generator(*_: object) -> AsyncIterator[str]:
    return async_generator()


def future(*_: object) -> "asyncio.Future[str]":
    return asyncio.ensure_future(coroutine())


BEHIND = [
    timed(coroutine),
    timed(generator),
    timed(async_generator),
    timed(coroutine_of_a_generator),
    coroutine_of_a_generator,
    lambda *_: coroutine(),
    lambda *_: generator(),
    lambda *_: async_generator(),
    lambda *_: Later(),
    functools.partial(timed(coroutine), 1),
]


@pytest.mark.parametrize("function", BEHIND)
@pytest.mark.parametrize("inline", [True, False])
async def test_what_a_function_returns_is_awaited(
    server: ResourceServer, function: Callable[..., Any], inline: bool, recwarn: pytest.WarningsRecorder
) -> None:
    """Decorators and lambdas hide that a function is asynchronous or a generator."""
    server.resource("a://read", inline=inline)(lambda: function())
    server.resource("a://itself", inline=inline)(function)
    server.resource("a://read/{x}", inline=inline)(lambda x: function(x))
    async with Client(server) as client:
        assert [await client.read_text(f"a://{uri}") for uri in ("read", "itself", "read/1")] == ["abc"] * 3
    gc.collect()
    assert not [warning for warning in recwarn if "never awaited" in str(warning.message)]


@pytest.mark.parametrize("function", BEHIND)
def test_it_is_awaited_without_threads(server: ResourceServer, function: Callable[..., Any]) -> None:
    server.resource("a://read")(lambda: function())
    connection = Connection(server)
    try:
        head = {"jsonrpc": "2.0", "id": 1, "method": "resources/read"}
        answer = connection.receive(json.dumps(head | {"params": {"uri": "a://read", "_meta": META}}).encode() + b"\n")
        for _ in range(9):
            answer += connection.settle()
        assert json.loads(answer)["result"]["contents"][0]["text"] == "abc"
    finally:
        connection.close()


async def test_lists_completions_and_methods_are_awaited_too() -> None:
    server = ResourceServer("x")

    async def item(*_: object) -> list[str]:
        await asyncio.sleep(0)
        return ["abc"]

    async def items(*_: object) -> AsyncIterator[str]:
        yield "abc"

    async def members(params: object) -> dict[str, object]:
        return {"params": params}

    server.method("vendor/x")(lambda params: members(params))
    for name, function in (("a", item), ("b", items)):
        handler = server.resource(f"{name}://{{x}}")(lambda x: x)
        handler.list(lambda function=function: function())
        handler.complete("x")(lambda value, function=function: function(value))
    async with Client(server) as client:
        assert [item["uri"] for item in await client.list_resources()] == ["a://abc", "b://abc"]
        assert [(await client.complete(f"{name}://{{x}}", "x", "")).values for name in "ab"] == [["abc"]] * 2
        assert (await client.request("vendor/x", {"a": 1}))["params"]["a"] == 1


async def test_what_is_awaited_may_fail_or_be_cancelled(server: ResourceServer) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def fails() -> str:
        await asyncio.sleep(0)
        raise ResourceNotFoundError

    async def waits() -> str:
        try:
            begun.set()
            return await asyncio.Future()
        finally:
            ended.set()

    server.resource("a://fails")(lambda: fails())
    server.resource("a://waits")(lambda: waits())
    async with Client(server) as client:
        with pytest.raises(ServerError) as error:
            await client.read("a://fails")
        assert error.value.kind == "not_found"
        id, _ = client.send("read", {"uri": "a://waits"})
        await begun.wait()
        client.cancel(id)
        await ended.wait()


@pytest.mark.parametrize(
    ("returns", "mime_type"),
    [
        (dict[str, int], "application/json"),
        (list, "application/json"),
        (Point, "application/json"),
        (int, "application/json"),
        (Mapping[str, int], "application/json"),
        (bytes, "application/octet-stream"),
        (str, None),
        (Contents, None),
        (list[Contents], None),
        (dict | str, None),
        (None, None),
        (Any, None),
    ],
)
async def test_the_media_type_is_that_of_the_annotation(
    server: ResourceServer, returns: Any, mime_type: str | None
) -> None:
    def handler() -> object:
        return None

    handler.__annotations__["return"] = returns
    server.resource("a://b")(handler)
    server.resource("a://own", mime_type="text/x")(handler)
    async with Client(server) as client:
        first, own = await client.list_resources()
    assert (first.get("mimeType"), own["mimeType"]) == (mime_type, "text/x")


async def test_a_list_of_values(server: ResourceServer) -> None:
    @server.resource("notes://{day}/{n}")
    def note(day: str, n: int) -> str:
        return f"{day} {n}"

    @server.resource("colors://{color}")
    def color(color: Color) -> str:
        return color.value

    note.list(lambda: [{"day": "mon", "n": 1}, Resource("notes://tue/2")])
    color.list(lambda: [Color.RED, "blue"])
    async with Client(server) as client:
        listed = {item["uri"] for item in await client.list_resources()}
    assert listed == {"notes://mon/1", "notes://tue/2", "colors://red", "colors://blue"}


def test_a_handler_expands_its_template(server: ResourceServer) -> None:
    handler = server.resource("a://{day}/{on}{?limit}")(lambda day, on, limit=None: "")
    assert handler.expand(day=date(2025, 1, 2), on=True) == "a://2025-01-02/true"
    assert handler.expand(day="x y", on=Color.RED, limit=5) == "a://x%20y/red?limit=5"
    assert server.resource("a://b")(lambda: "").expand() == "a://b"


async def test_a_cell_of_a_notebook_runs_twice(server: ResourceServer) -> None:
    for text in ("first", "second"):
        server.resource("a://b", replace=True)(lambda text=text: text)
        server.resource("a://t/{x}", replace=True)(lambda x, text=text: text)
        server.add_resource(Resource("a://c"), text=text, replace=True)
    async with Client(server) as client:
        assert [await client.read_text(f"a://{path}") for path in ("b", "c", "t/1")] == ["second"] * 3


@pytest.mark.parametrize("annotation", [Context | None, "Context | None", "Optional[Context]", "'Context'"])
async def test_a_context_that_may_be_none_is_given(server: ResourceServer, annotation: Any) -> None:
    def handler(request=None) -> str:  # type: ignore[no-untyped-def]
        return str(request.uri)

    handler.__annotations__["request"] = annotation
    server.resource("a://b")(handler)
    async with Client(server) as client:
        assert await client.read_text("a://b") == "a://b"
