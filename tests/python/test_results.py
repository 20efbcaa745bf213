"""What a handler may return: JSON of every type, and results in the shape of other SDKs."""

import base64
import dataclasses
import enum
import ipaddress
import json
import sqlite3
import uuid
from collections import deque
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

import pytest
from mcp_resources import Contents, Context, Resource, ResourceServer
from mcp_resources.testing import Client, ServerError


class Color(enum.Enum):
    RED = "red"


class Number:
    """As a number of numpy."""

    dtype = "int64"

    def __init__(self, value: int) -> None:
        self.value = value

    def tolist(self) -> int:
        return self.value


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
        ({Number(7): 1, timedelta(hours=1): 2}, {"7": 1, "PT1H": 2}),
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

    def __init__(self, uri: str, text: str) -> None:
        self.uri, self.text, self.mimeType, self.meta = uri, text, "text/markdown", {"com.example/n": 1}


class BlobResourceContents:
    def __init__(self, uri: str, blob: str) -> None:
        self.uri, self.blob, self.mimeType = uri, blob, None


class ResourceContent:
    """As FastMCP has it; `ReadResourceContents` of the official SDK is alike."""

    def __init__(self, content: str | bytes) -> None:
        self.content, self.mime_type, self.meta = content, "text/csv", None


class Result:
    """`ReadResourceResult`, or FastMCP's `ResourceResult`."""

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
        (Result([TextResourceContents("a://x", "t")]), [TEXT]),
        (
            Result([BlobResourceContents("a://y", BLOB)]),
            [Contents(b"\x00\xff", uri="a://y", mime_type="application/octet-stream")],
        ),
        (Result([ResourceContent("1,2")]), [Contents("1,2", uri="a://b", mime_type="text/csv")]),
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
    ],
)
async def test_what_only_looks_alike_is_json(server: ResourceServer, value: object) -> None:
    (contents,) = await read(server, value)
    assert json.loads(str(contents.body)) == value


async def test_results_of_the_official_sdk(server: ResourceServer) -> None:
    from mcp import types  # of the tests alone: other tests here need no SDK

    text = types.TextResourceContents(uri="a://x", text="t")
    blob = types.BlobResourceContents(uri="a://y", blob=BLOB)
    text_only, both = await read(server, text), await read(server, types.ReadResourceResult(contents=[text, blob]))
    assert [contents.body for contents in text_only + both] == ["t", "t", b"\x00\xff"]


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
