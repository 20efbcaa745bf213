"""A value of a typed variable has one spelling: the shared cases, and the types that only Python has (S-11, S-16)."""

import collections
import datetime
import decimal
import enum
import ipaddress
import json
import os
import pathlib
import random
import struct
import uuid
from typing import Annotated, Any, Literal, NewType
from urllib.parse import quote

import pytest
import typing_extensions
from mcp_resources import Param, RegistrationError, ResourceServer, UriTemplate, Variable
from mcp_resources.testing import Client, ServerError
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    HttpUrl,
    Json,
    NaiveDatetime,
    PlainSerializer,
    StrictInt,
    StringConstraints,
)
from vectors import ROOT

CASES = json.loads((ROOT / "tests" / "fixtures" / "guard" / "spellings.json").read_text("utf-8"))
TYPES = {
    "integer": int,
    "number": float,
    "boolean": bool,
    "uuid": uuid.UUID,
    "date": datetime.date,
    "date-time": datetime.datetime,
}


class Region(enum.Enum):
    EU = "eu"
    US = "us"


def annotations(case: dict[str, Any]) -> list[Any]:
    """The ways to declare the type of a case."""
    if "values" in case:
        plain: list[Any] = [Region, Literal["eu", "us"]]
    else:
        plain = [TYPES[case["type"]]]
    described = [Annotated[one, Field(description="it")] for one in plain]
    texts = [Annotated[one, "it"] for one in plain]
    optional = [Annotated[one | None, Field(description="it")] for one in plain]
    strict = [Annotated[one, {"a": 1}] for one in plain]
    return [*plain, *described, *texts, *optional, *strict]


async def outcome(client: Client, uri: str) -> str:
    try:
        return await client.read_text(uri)
    except ServerError as error:
        return "refused" if error.code == -32602 else f"another error: {error}"


@pytest.mark.parametrize("case", CASES["types"], ids=lambda case: case.get("type", "values"))
async def test_no_spelling_avoids_a_rule(case: dict[str, Any]) -> None:
    """S-11, S-16: whatever rule it is, and however the type is declared."""
    value = case["value"]
    for annotation in annotations(case):
        for guard in (
            {"deny": [f"doc://x/{value}", f"list://x\\?n={value}"]},
            {"principals": {"": {"deny": [f"doc://x/{value}", f"list://x\\?n={value}"]}}},
            {"scopes": {f"doc://x/{value}": "secret", f"list://x\\?n={value}": "secret"}},
        ):
            server = ResourceServer("spelled", guard=guard)

            @server.resource("doc://x/{n}")
            def document(n: annotation) -> str:
                return f"document {n}"

            @server.resource("list://x{?n*}")
            def documents(n: list[annotation]) -> str:
                return f"documents {n}"

            async with Client(server) as client:
                for spelling in [value, *case["refused"]]:
                    assert await outcome(client, f"doc://x/{spelling}") == "refused", (annotation, spelling)
                    assert await outcome(client, f"list://x?n={spelling}") == "refused", (annotation, spelling)
                for spelling in case["open"]:
                    assert (await outcome(client, f"doc://x/{spelling}")).startswith("document ")
                    assert (await outcome(client, f"list://x?n={spelling}")).startswith("documents ")


@pytest.mark.parametrize("case", CASES["types"], ids=lambda case: case.get("type", "values"))
async def test_no_other_spelling_is_watched_listed_or_completed(case: dict[str, Any]) -> None:
    """S-16: subscriptions, listens, reported changes, items of a lister and references of completion."""
    server = ResourceServer("spelled")

    @server.resource("doc://x/{n}")
    def document(n: annotations(case)[0]) -> str:
        return "document"

    @document.list
    def listed() -> list[str]:
        from urllib.parse import unquote

        return [case["value"], *map(unquote, case["refused"])]

    value = case["value"]
    async with Client(server, revision="2025-11-25") as client:
        await client.subscribe(f"doc://x/{value}")
        if "type" in case:
            (item,) = await client.list_resources()
            assert item["uri"] == UriTemplate("doc://x/{n}").expand(n=value)
        for spelling in case["refused"]:
            with pytest.raises(ServerError):
                await client.subscribe(f"doc://x/{spelling}")
            with pytest.raises(ServerError):
                await client.complete(f"doc://x/{spelling}", "n", "")
    async with Client(server) as client:
        wanted = [f"doc://x/{value}", *(f"doc://x/{spelling}" for spelling in case["refused"])]
        async with client.listen(wanted) as updates:
            assert updates.honoured["resourceSubscriptions"] == [f"doc://x/{value}"]
            server.notify_updated(f"doc://x/{value}")
            assert (await updates.next()).params["uri"] == f"doc://x/{value}"
    refused = [spelling for spelling in case["refused"] if "type" in case and not is_no_value(spelling)]
    for spelling in refused:
        with pytest.raises(RegistrationError, match="n"):
            server.notify_updated(f"doc://x/{spelling}")


def is_no_value(spelling: str) -> bool:
    """Whether the template's own policy refuses it, so that its URI is nobody's."""
    return "%0B" in spelling


@pytest.mark.parametrize("case", CASES["queries"], ids=lambda case: case["deny"])
async def test_no_encoding_or_order_avoids_a_rule(case: dict[str, Any]) -> None:
    """S-11: a template gives its handler the same values for all of them."""
    server = ResourceServer("spelled", guard={"deny": case["deny"]})
    server.resource(case["template"])(lambda **values: repr(values))
    async with Client(server) as client:
        for uri in case["hidden"]:
            assert await outcome(client, uri) == "refused", uri
        for uri in case["open"]:
            assert await outcome(client, uri) != "refused", uri
        async with client.listen([*case["hidden"], *case["open"]]) as updates:
            assert updates.honoured["resourceSubscriptions"] == case["open"]


def name_of(value: object) -> str:
    return str(value)[:40].partition(" object at")[0]


def lower(text: str) -> str:
    return text.lower()


@pytest.mark.parametrize(
    ("annotation", "good", "bad"),
    [
        (Annotated[int, Field(ge=1)], ["7"], ["07", "+7", " 7", "7.0", "0_7", "0"]),
        (Annotated[int, Param("it"), Field(ge=1)], ["7"], ["07", "0"]),
        (Annotated[int, Param(type="string")], ["7"], ["07", "+7", " 7", "0_7"]),
        (StrictInt, ["7"], ["07", "7.0"]),
        (Annotated[str, StringConstraints(to_lower=True)], ["a"], ["A"]),
        (Annotated[str, AfterValidator(lower)], ["a"], ["A"]),
        (Annotated[str, BeforeValidator(str.strip)], ["a"], [" a", "a "]),
        (
            Annotated[int, BeforeValidator(lambda text: int(text, 16)), PlainSerializer(lambda n: f"{n:x}")],
            ["ff"],
            ["FF", "0xff", "0ff"],
        ),
        (decimal.Decimal, ["1", "1.5", "-0.1"], ["1.0", "1.50", "01", "+1", "1e0", "-0", " 1"]),
        (pathlib.PurePosixPath, ["a"], ["a/", "./a", "a/."]),
        (ipaddress.IPv4Address, ["127.0.0.1"], ["127.0.0.01", "2130706433", "0x7f.0.0.1"]),
        (ipaddress.IPv6Address, ["::1", "::a"], ["0::1", "::A", "0:0:0:0:0:0:0:1", "::0001"]),
        (ipaddress.IPv4Network, ["10.0.0.0/8"], ["10.0.0.0/255.0.0.0"]),
        (datetime.timedelta, ["PT1H", "P1D"], ["PT60M", "P1DT0H", "PT24H", "01:00:00", "3600"]),
        (datetime.time, ["12:00:00", "12:00:00Z"], ["12:00", "12:00:00.0", "13:00:00+01:00", "12:00:00+00:00"]),
        (NaiveDatetime, ["2026-01-31T12:00:00"], ["2026-01-31 12:00:00", "2026-01-31T12:00", "2026-01-31T12:00:00.0"]),
        (Json[int], ["7"], [" 7", "7 "]),
        (HttpUrl, ["http://a.example/"], ["HTTP://a.example/", "http://a.example", "http://A.example/"]),
        (complex, ["1+2j"], ["1.0+2j", "(1+2j)"]),
    ],
    ids=name_of,
)
async def test_what_pydantic_converts_has_one_spelling(annotation: Any, good: list[str], bad: list[str]) -> None:
    """S-16: the text of the result is compared with what the client sent."""
    server = ResourceServer("spelled")

    @server.resource("doc://x{?n}")
    def document(n: annotation = None) -> str:
        return "document"

    async with Client(server) as client:
        for text in good:
            assert await outcome(client, f"doc://x?n={quote(text, safe='')}") == "document", text
        for text in bad:
            assert await outcome(client, f"doc://x?n={quote(text, safe='')}") == "refused", text


async def test_collections_of_typed_items() -> None:
    """S-16: an exploded variable may be a set, a tuple or a deque, of any type of items."""
    server = ResourceServer("spelled")

    @server.resource("set://x{?n*}")
    def as_set(n: set[int]) -> str:
        return repr(sorted(n))

    @server.resource("frozen://x{?n*}")
    def as_frozen(n: frozenset[Region] = frozenset()) -> str:
        return repr(sorted(one.name for one in n))

    @server.resource("tuple://x{?n*}")
    def as_tuple(n: tuple[int, ...]) -> str:
        return repr(n)

    @server.resource("pair://x{?n*}")
    def as_pair(n: tuple[int, str] = (0, "")) -> str:
        return repr(n)

    @server.resource("deque://x{?n*}")
    def as_deque(n: collections.deque[int]) -> str:
        return repr(n)

    @server.resource("most://x{?n*}")
    def most(n: Annotated[list[int], Field(max_length=2)]) -> str:
        return repr(n)

    @server.resource("keys://x{?n*}", vars={"n": Variable(kind="map")})
    def keys(n: dict[int, float]) -> str:
        return repr(n)

    async with Client(server) as client:
        for uri, text in {
            "set://x?n=1&n=2&n=1": "[1, 2]",
            "set://x": "[]",
            "set://x?n=1&n=02": "refused",
            "frozen://x?n=us&n=eu": "['EU', 'US']",
            "frozen://x?n=EU": "refused",
            "tuple://x?n=2&n=1": "(2, 1)",
            "tuple://x": "()",
            "pair://x?n=1&n=a": "(1, 'a')",
            "pair://x?n=1": "refused",
            "pair://x?n=01&n=a": "refused",
            "deque://x?n=1": "deque([1])",
            "most://x?n=1&n=2": "[1, 2]",
            "most://x?n=1&n=2&n=3": "refused",
            "most://x?n=01": "refused",
            "keys://x?1=1.5": "{1: 1.5}",
            "keys://x?01=1.5": "refused",
            "keys://x?1=1.50": "refused",
        }.items():
            assert await outcome(client, uri) == text, uri
        assert as_set.expand(n={10, 9, 1}) == "set://x?n=1&n=9&n=10"


async def test_a_value_without_a_text_is_no_value(caplog: pytest.LogCaptureFixture) -> None:
    """S-16: a list and `expand` take the values that have a text, and write it as a request must."""
    server = ResourceServer("spelled")

    @server.resource("doc://x{?n}")
    def document(n: str = "") -> str:
        return n

    for value, text in {
        1.0: "1",
        1e21: "1e%2B21",
        2.5: "2.5",
        decimal.Decimal("1.50"): "1.5",
        Region.EU: "eu",
        uuid.UUID(int=7): "00000000-0000-0000-0000-000000000007",
        datetime.datetime(
            2026, 1, 31, 13, tzinfo=datetime.timezone(datetime.timedelta(hours=1))
        ): "2026-01-31T12%3A00%3A00Z",
        datetime.timedelta(hours=25): "P1DT1H",
        ipaddress.ip_address("::1"): "%3A%3A1",
        pathlib.PurePosixPath("a/b"): "a%2Fb",
    }.items():
        assert document.expand(n=value) == f"doc://x?n={text}", value
        assert UriTemplate("doc://x{?n}").expand(n=value) == f"doc://x?n={text}", value
    for wrong in (object(), lambda: 1, b"x", float("nan"), decimal.Decimal("inf"), ValueError("x"), int, [object()]):
        with pytest.raises((TypeError, ValueError), match=r"no value of a variable|not bytes"):
            document.expand(n=wrong)
        with pytest.raises((TypeError, ValueError), match=r"no value of a variable|not bytes"):
            UriTemplate("doc://x{?n}").expand(n=wrong)
        found = wrong
        document.list(lambda: [found])  # noqa: B023
        async with Client(server) as client:
            with pytest.raises(ServerError):
                await client.list_resources()
    assert "no value of a variable" in caplog.text


async def test_a_lister_may_return_values_of_the_one_required_variable() -> None:
    """S-16."""
    server = ResourceServer("spelled")

    @server.resource("doc://x/{n}{?q,r}")
    def document(n: int, q: str = "", r: str = "") -> str:
        return f"{n}"

    document.list(lambda: [7, 8])
    async with Client(server) as client:
        assert [item["uri"] for item in await client.list_resources()] == ["doc://x/7", "doc://x/8"]


async def test_field_as_a_default() -> None:
    """S-16: a `Field` of pydantic may be the default of a parameter."""
    server = ResourceServer("spelled")

    @server.resource("doc://x/{n}{?q}")
    def document(n: int = Field(description="the number"), q: int = Field(default=3, ge=1)) -> str:
        return f"{n} {q}"

    async with Client(server) as client:
        (template,) = await client.list_templates()
        parameters = template["_meta"]["io.github.mcp-resources/parameters"]
        assert parameters["n"] == {"type": "integer", "description": "the number", "required": True}
        assert await outcome(client, "doc://x/7") == "7 3"
        assert await outcome(client, "doc://x/7?q=0") == "refused"


@pytest.mark.parametrize(
    ("annotation", "published"),
    [
        (
            Annotated[Literal["a", "b"], Field(description="it")],
            {"type": "string", "enum": ["a", "b"], "description": "it"},
        ),
        (Annotated[Region, Field(description="it")], {"type": "string", "enum": ["eu", "us"], "description": "it"}),
        (Annotated[int, Field(description="it", ge=1)], {"type": "integer", "description": "it"}),
        (Annotated[int, Param("mine"), Field(description="it")], {"type": "integer", "description": "mine"}),
        (Annotated[int, Field(description="it"), Param("mine")], {"type": "integer", "description": "it"}),
        (Annotated[int | None, Field(description="it")], {"type": "integer", "description": "it"}),
        (Annotated[int, "it"], {"type": "integer", "description": "it"}),
        (Annotated[int, typing_extensions.Doc("it")], {"type": "integer", "description": "it"}),
        (Annotated[int, {"a": 1}], {"type": "integer"}),
        (Annotated[Annotated[int, "inner"], {"a": 1}], {"type": "integer", "description": "inner"}),
        (Literal["a"] | Literal["b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, 2], {"type": "string", "enum": ["1", "2"]}),
        (NewType("Number", int), {"type": "integer"}),
        (typing_extensions.TypeAliasType("Alias", Annotated[int, "it"]), {"type": "integer", "description": "it"}),
    ],
    ids=name_of,
)
async def test_annotated_keeps_the_type(annotation: Any, published: dict[str, Any]) -> None:
    """S-16: type, values, completion and description, whatever else the annotation says."""
    server = ResourceServer("spelled")

    @server.resource("doc://x{?n}")
    def document(n: annotation = None) -> str:
        return "document"

    async with Client(server) as client:
        (template,) = await client.list_templates()
        assert template["_meta"]["io.github.mcp-resources/parameters"]["n"] == published
        if "enum" in published:
            assert (await client.complete("doc://x{?n}", "n", "")).values == published["enum"]


def test_two_choices_with_one_text_are_refused() -> None:
    """S-16."""
    server = ResourceServer("spelled")
    with pytest.raises(RegistrationError, match="same text in a URI"):

        @server.resource("doc://x/{n}")
        def document(n: Literal[1, "1"]) -> str:
            return "document"


def spellings(rng: random.Random, value: Any) -> str:
    """A text that Python's own conversion may read as `value`, or as another one."""
    text = str(value)
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(text) + 1)
        text = rng.choice(
            [
                text[:at] + rng.choice("0_+- .eETZ:٣７") + text[at:],
                text[:at] + text[at + 1 :],
                text.upper(),
                text.replace("T", " "),
                text.replace("-", ""),
                "{" + text + "}",
                text.replace("Z", "+00:00"),
            ]
        )
    return text


def drawn(rng: random.Random, kind: str) -> Any:
    match kind:
        case "integer":
            return rng.choice([0, 1, -1, 7, rng.randrange(-(2**53), 2**53), rng.randrange(2**100)])
        case "number":
            return struct.unpack("d", rng.randbytes(8))[0] if rng.random() < 0.5 else rng.randrange(-1000, 1000) / 8
        case "boolean":
            return rng.random() < 0.5
        case "uuid":
            return uuid.UUID(bytes=rng.randbytes(16))
        case "date":
            return datetime.date.fromordinal(rng.randrange(1, datetime.date.max.toordinal()))
    zone = datetime.timezone(datetime.timedelta(minutes=rng.choice([0, 0, 60, -90])))
    seconds = datetime.timedelta(seconds=rng.randrange(10**9), microseconds=rng.choice([0, 5, 500000]))
    return datetime.datetime(2000, 1, 1, tzinfo=zone) + seconds


PARSERS: dict[str, Any] = {
    "integer": int,
    "number": float,
    "boolean": lambda text: {"true": True, "false": False}[text.lower()],
    "uuid": uuid.UUID,
    "date": datetime.date.fromisoformat,
    "date-time": datetime.datetime.fromisoformat,
}


async def test_what_is_accepted_is_the_text_of_its_value() -> None:
    """S-16, against Python's own parsers: what the server accepts is one value's text, and each value has one."""
    rng = random.Random(20261125)
    rounds = int(os.environ.get("MCP_RESOURCES_SPELLINGS", "60"))
    for kind, annotation in TYPES.items():
        server = ResourceServer("spelled")
        given: list[Any] = []

        @server.resource("doc://x{?n}")
        def document(n: annotation = None) -> str:
            given.append(n)  # noqa: B023
            return "document"

        template = UriTemplate("doc://x{?n}")
        async with Client(server) as client:
            for _ in range(rounds):
                value = drawn(rng, kind)
                if kind == "number" and not abs(value) < float("inf"):
                    continue
                assert await outcome(client, document.expand(n=value)) == "document", value
                assert given.pop() == value
                text = spellings(rng, value)
                uri = template.expand(n=text)
                if await outcome(client, uri) == "document":
                    read = given.pop()
                    assert read == PARSERS[kind](text), text
                    assert document.expand(n=read) == uri, text
