"""What an author registers: names, details, typed parameters, and the refusals that say what is wrong."""

import asyncio
import enum
import functools
import inspect
import json
import re
import sys
import time
import types
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import mcp_resources
import pydantic
import pytest
from mcp_resources import (
    CacheHint,
    Icon,
    InvalidTemplateError,
    InvalidUriError,
    Limits,
    McpError,
    Param,
    RegistrationError,
    Resource,
    ResourceServer,
    TemplateConflictError,
    Variable,
    providers,
    testing,
)
from mcp_resources.testing import Client, ServerError

if TYPE_CHECKING:
    from mcp_resources import Context

PARAMETERS = "io.github.mcp-resources/parameters"


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


async def listed(server: ResourceServer, uri: str) -> dict[str, Any]:
    async with Client(server) as client:
        return next(item for item in await client.list_resources() if item["uri"] == uri)


async def read_text(server: ResourceServer, uri: str) -> str:
    async with Client(server) as client:
        return await client.read_text(uri)


async def refusal(server: ResourceServer, uri: str) -> ServerError:
    async with Client(server) as client:
        with pytest.raises(ServerError) as caught:
            await client.read(uri)
        return caught.value


async def test_name_and_description_come_from_the_function(server: ResourceServer) -> None:
    @server.resource("config://app")
    def app_config() -> str:
        """The configuration of
        the application.

        Not for the client.
        """  # noqa: D205
        return "x"

    item = await listed(server, "config://app")
    assert item["name"] == "app_config"
    assert item["description"] == "The configuration of the application."
    assert "mimeType" not in item


async def test_a_lambda_and_a_partial_are_named_by_the_uri(server: ResourceServer) -> None:
    server.resource("a://lambda")(lambda: "x")
    server.resource("a://partial")(functools.partial(lambda text: text, "y"))
    assert (await listed(server, "a://lambda"))["name"] == "a://lambda"
    assert (await listed(server, "a://partial"))["name"] == "a://partial"
    assert await read_text(server, "a://partial") == "y"


async def test_every_detail_is_listed(server: ResourceServer) -> None:
    details = {
        "name": "n",
        "title": "T",
        "description": "D",
        "mime_type": "text/markdown",
        "size": 3,
        "icons": [Icon("https://example.com/i.png", mime_type="image/png", sizes=["48x48"], theme="dark")],
        "audience": ["user"],
        "priority": 0.5,
        "last_modified": datetime.fromisoformat("2025-01-12T15:00:58+00:00"),
        "meta": {"com.example/tag": [1, {"a": None}]},
        "ttl_ms": 60_000,
        "cache_scope": "public",
    }
    server.resource("a://all", **details)(lambda: "abc")  # type: ignore[arg-type]
    item = await listed(server, "a://all")
    assert item == {
        "uri": "a://all",
        "name": "n",
        "title": "T",
        "description": "D",
        "mimeType": "text/markdown",
        "size": 3,
        "icons": [{"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}],
        "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2025-01-12T15:00:58+00:00"},
        "_meta": {"com.example/tag": [1, {"a": None}]},
    }
    async with Client(server) as client:
        result = await client.request("read", {"uri": "a://all"})
    assert (result["ttlMs"], result["cacheScope"]) == (60_000, "public")


async def test_the_function_is_still_a_function(server: ResourceServer) -> None:
    @server.resource("a://{x}")
    async def twice(x: str) -> str:
        """Doc."""
        return x * 2

    assert await twice("a") == "aa"
    assert await twice(x="b") == "bb"
    assert twice.__doc__ == "Doc."
    assert get_type_hints(twice.__wrapped__)["x"] is str


ROUND_TRIPS: list[tuple[Any, str, object]] = [
    (str, "a%20b", "a b"),
    (int, "-12", -12),
    (float, "1500.5", 1500.5),
    (bool, "true", True),
    (bool, "false", False),
    (Color, "blue", Color.BLUE),
    (Literal["a", 2], "2", 2),
    (uuid.UUID, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", uuid.UUID("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")),
    (date, "2025-02-28", date(2025, 2, 28)),
    (datetime, "2025-02-28T01:02:03Z", datetime.fromisoformat("2025-02-28T01:02:03+00:00")),
    (int | None, "7", 7),
    (Annotated[str, Param("a word", pattern="[a-z]+")], "abc", "abc"),
    (Any, "x", "x"),
]


@pytest.mark.parametrize(("annotation", "text", "value"), ROUND_TRIPS)
async def test_values_are_typed_by_annotation(
    server: ResourceServer, annotation: object, text: str, value: object
) -> None:
    got: list[object] = []

    def handler(x: Any) -> str:
        got.append(x)
        return "ok"

    handler.__annotations__["x"] = annotation
    server.resource("a://h/{x}")(handler)
    assert await read_text(server, f"a://h/{text}") == "ok"
    assert got == [value]
    assert type(got[0]) is type(value)


@pytest.mark.parametrize(
    ("annotation", "text", "expected"),
    [
        (int, "x", "an integer"),
        (int, "1_000", "an integer"),
        (float, "nan", "a number"),
        (bool, "True", "true or false"),
        (Color, "green", "one of: red, blue"),
        (date, "2025-02-29", "a date, YYYY-MM-DD"),
        (Annotated[str, Param(pattern="[a-z]+")], "A1", "a text matching [a-z]+"),
    ],
)
async def test_a_bad_value_names_its_parameter(
    server: ResourceServer, annotation: object, text: str, expected: str
) -> None:
    def handler(x: Any) -> str:
        raise AssertionError

    handler.__annotations__["x"] = annotation
    server.resource("a://h/{x}")(handler)
    error = await refusal(server, f"a://h/{text}")
    assert (error.code, error.kind, error.data["parameter"]) == (-32602, "invalid_parameter", "x")
    assert expected in error.message


async def test_pydantic_types_are_checked_by_pydantic(server: ResourceServer) -> None:

    @server.resource("a://h/{port}{?tags*}")
    def handler(
        port: Annotated[int, pydantic.Field(gt=0, lt=65536)],
        tags: Annotated[list[int], pydantic.Field(max_length=2)],
    ) -> str:
        return f"{port!r} {tags!r}"

    assert await read_text(server, "a://h/80?tags=1&tags=2") == "80 [1, 2]"
    error = await refusal(server, "a://h/0?tags=1")
    assert (error.kind, error.data["parameter"]) == ("invalid_parameter", "port")
    assert "greater than 0" in error.message
    assert (await refusal(server, "a://h/1?tags=1&tags=2&tags=3")).data["parameter"] == "tags"


async def test_lists_maps_and_defaults(server: ResourceServer) -> None:
    @server.resource("a://h{/path*}{?ids,page,map*}", vars={"map": Variable("map")})
    def handler(path: list[str], ids: list[int], map: dict[str, float], page: int = 1) -> str:
        return json.dumps([path, ids, map, page])

    async def read(uri: str) -> list[object]:
        return list(json.loads(await read_text(server, uri)))

    assert await read("a://h") == [[], [], {}, 1]
    assert await read("a://h/a/b?ids=1,2&page=3&z=1.5") == [["a", "b"], [1, 2], {"z": 1.5}, 3]


async def test_rest_keyword_only_and_defaulted_parameters(server: ResourceServer) -> None:
    @server.resource("a://r/{x}{?y,z}")
    def rest(x: str, note: str = "n", *, y: int | None, **others: str) -> str:
        return json.dumps([x, note, y, others])

    assert json.loads(await read_text(server, "a://r/1?z=3")) == ["1", "n", None, {"z": "3"}]
    assert json.loads(await read_text(server, "a://r/1?y=2")) == ["1", "n", 2, {}]


async def test_parameters_are_published_and_complete(server: ResourceServer) -> None:
    """S-16."""

    @server.resource("a://h/{color}{?days,since}", parameters={"since": Param("YYYY-MM-DD", type="date")})
    def handler(color: Color, days: Annotated[int, Param("How many")] = 3, since: str = "2025-01-01") -> str:
        return "x"

    async with Client(server) as client:
        (template,) = await client.list_templates()
        parameters = template["_meta"][PARAMETERS]
        assert parameters["color"]["enum"] == ["red", "blue"]
        assert parameters["days"] == {"type": "integer", "description": "How many"}
        assert parameters["since"]["format"] == "date"
        assert (await client.complete("a://h/{color}{?days,since}", "color", "b")).values == ["blue"]


async def test_annotations_may_be_texts_of_local_names(server: ResourceServer) -> None:
    class Size(enum.Enum):
        SMALL = "s"

    sizes: list[Size] = []

    def make() -> Callable[..., str]:
        local = Size

        def handler(size: "local", ctx: "Context") -> str:
            sizes.append(local(size))
            return ctx.revision

        return handler

    server.resource("a://h/{size}")(make())
    assert await read_text(server, "a://h/s") == "2026-07-28"
    assert sizes == [Size.SMALL]


@pytest.mark.parametrize(
    ("uri", "function", "message"),
    [
        ("a://{x}", lambda: "", "no parameter takes the variable 'x' of a://{x}"),
        ("a://{x}", lambda x, y: "", "parameter 'y' is no variable of a://{x}"),
        ("a://b", lambda y: "", "parameter 'y' is no variable of this resource"),
        ("a://h{?x}", lambda x: "", "parameter 'x' needs a default"),
    ],
)
def test_parameters_and_variables_must_agree(
    server: ResourceServer, uri: str, function: Callable[..., str], message: str
) -> None:
    with pytest.raises(RegistrationError, match=message.replace("{", r"\{")):
        server.resource(uri)(function)


def test_unusable_annotations_are_refused(server: ResourceServer) -> None:
    def scalar(path: str) -> str:
        return path

    def unknown(x: "Nowhere") -> str:  # type: ignore[name-defined] # noqa: F821
        return ""

    def unsuited(x: asyncio.AbstractEventLoop) -> str:
        return ""

    with pytest.raises(RegistrationError, match="the variable is a list"):
        server.resource("a://h{/path*}")(scalar)
    with pytest.raises(RegistrationError, match="'Nowhere' cannot be evaluated"):
        server.resource("a://h/{x}")(unknown)
    with pytest.raises(RegistrationError, match="is not a type of a variable"):
        server.resource("a://h/{x}")(unsuited)


def test_refusals_are_one_tree_and_say_where(server: ResourceServer) -> None:
    server.resource("a://h/{x}")(lambda x: "")
    with pytest.raises(InvalidTemplateError) as invalid:
        server.resource("a://{x")(lambda x: "")
    assert (invalid.value.template, invalid.value.offset) == ("a://{x", 4)
    with pytest.raises(TemplateConflictError) as conflict:
        server.resource("a://h/{y}")(lambda y: "")
    assert {conflict.value.template, conflict.value.other} == {"a://h/{x}", "a://h/{y}"}
    with pytest.raises(InvalidUriError):
        server.resource("no uri")(lambda: "")
    for error in (InvalidTemplateError, TemplateConflictError, RegistrationError, InvalidUriError):
        assert issubclass(error, McpError)
        assert issubclass(error, ValueError)


@pytest.mark.parametrize(
    ("details", "message"),
    [
        ({"priority": 2}, "priority"),
        ({"audience": ["nobody"]}, "user or assistant"),
        ({"last_modified": "yesterday"}, "lastModified"),
        ({"mime_type": "text"}, "mimeType"),
        ({"cache_scope": "all"}, "public or private"),
        ({"meta": {"progressToken": 1}}, "reserved"),
        ({"vars": {}}, "for templates"),
        ({"colour": "red"}, 'unexpected option "colour"'),
        ({"parameters": {"x": Param()}}, "no variable"),
    ],
)
def test_bad_details_are_refused(server: ResourceServer, details: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        server.resource("a://b", **details)(lambda: "")


async def test_a_refused_registration_leaves_nothing_behind(server: ResourceServer) -> None:
    server.resource("a://b")(lambda: "first")
    with pytest.raises(RegistrationError, match="registered already"):
        server.resource("A://b")(lambda: "second")
    assert server._core.handlers == 1
    assert await read_text(server, "a://b") == "first"


async def test_a_batch_is_all_or_nothing(server: ResourceServer) -> None:
    def twice() -> None:
        with server.batch():
            server.resource("a://b")(lambda: "")
            server.resource("a://b")(lambda: "")

    with pytest.raises(RegistrationError):
        twice()
    assert server._core.handlers == 0
    with server.batch():
        for number in range(50):
            handler = server.resource(f"a://{number}/{{x}}")(lambda x: x)
            handler.complete("x")(lambda value: [value + "!"])
    async with Client(server) as client:
        assert len(await client.list_templates()) == 50
        assert (await client.complete("a://49/{x}", "x", "a")).values == ["a!"]


async def test_constants_and_removal(server: ResourceServer) -> None:
    server.add_resource(Resource("a://text", mime_type="text/csv"), text="a,b")
    server.add_resource(Resource("a://data"), bytes=bytearray(b"\x00\xff"))
    server.add_resource(Resource("a://read"), read=lambda: {"a": 1})
    with pytest.raises(TypeError, match="one of"):
        server.add_resource(Resource("a://none"))  # type: ignore[call-overload]
    async with Client(server) as client:
        assert [(c.body, c.mime_type) for c in await client.read("a://text")] == [("a,b", "text/csv")]
        assert [c.body for c in await client.read("a://data")] == [b"\x00\xff"]
        assert [(c.body, c.mime_type) for c in await client.read("a://read")] == [('{"a":1}', "application/json")]
        for uri in ("a://text", "A://data", "a://read", "a://never"):
            server.remove_resource(uri)
        assert await client.list_resources() == []
        assert server._core.handlers == 0


def test_server_options_are_read(server: ResourceServer) -> None:
    del server
    with pytest.raises(TypeError, match="unexpected option"):
        ResourceServer("x", version="1", colour="red")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected limit"):
        ResourceServer("x", version="1", limits={"patience": 1})  # type: ignore[typeddict-unknown-key]
    with pytest.raises(ValueError, match="is no revision"):
        ResourceServer("x", version="1", revisions=["2020-01-01"])
    with pytest.raises(ValueError, match="at least 16 bytes"):
        ResourceServer("x", version="1", keys=[b"short"])
    with pytest.raises(ValueError, match="public or private"):
        ResourceServer("x", version="1", list_cache=CacheHint(1, "all"))  # type: ignore[arg-type]


async def test_server_options_reach_the_client() -> None:
    server = ResourceServer(
        "x",
        version="2",
        title="T",
        description="D",
        website_url="https://example.com",
        icons=[Icon("https://example.com/i.png")],
        instructions="Read.",
        subscribe=False,
        list_changed=False,
        logging=True,
        completions=True,
        list_cache=CacheHint(5, "public"),
        extensions={"com.example/feature": {"on": True}},
        server_info_in_results=True,
    )
    async with Client(server) as client:
        info = client.server_info
        assert info["capabilities"] == {
            "resources": {},
            "completions": {},
            "logging": {},
            "extensions": {"com.example/feature": {"on": True}},
        }
        assert info["instructions"] == "Read."
        about = info["_meta"]["io.modelcontextprotocol/serverInfo"]
        assert (about["version"], about["title"], about["description"]) == ("2", "T", "D")
        result = await client.request("list")
        assert (result["ttlMs"], result["cacheScope"]) == (5, "public")


def test_limits_are_those_of_the_core() -> None:
    source = (Path(__file__).parents[2] / "core/engine/src/limits.rs").read_text("utf-8").partition("\nlimits! {")[2]
    fields = re.findall(r"^    pub (\w+): ", source, re.MULTILINE)
    assert sorted(Limits.__annotations__) == sorted(fields)
    every = Limits(**dict.fromkeys(fields, 1_000))  # type: ignore[typeddict-item]
    ResourceServer("x", version="1", limits=every).add_resource(Resource("a://b"), text="")


@dataclass
class Callable_:
    prefix: str

    async def __call__(self, x: str) -> str:
        return self.prefix + x


class Methods:
    def text(self, x: str) -> str:
        return "m" + x


async def test_methods_and_callable_objects_are_handlers(server: ResourceServer) -> None:
    server.resource("a://object/{x}")(Callable_("c"))
    server.resource("a://method/{x}")(Methods().text)
    assert await read_text(server, "a://object/1") == "c1"
    assert await read_text(server, "a://method/1") == "m1"


PEP_563 = """
from __future__ import annotations
import dataclasses, functools, typing


@dataclasses.dataclass
class Note:
    day: int
    tag: typing.Optional[str] = None


class Plain:
    def __init__(self, day: int) -> None:
        self.day = day

    def model_dump_json(self) -> str:
        return str(self.day + 1)


class Pair(typing.NamedTuple):
    day: int


class Call:
    def __call__(self, day: int) -> str:
        return f"{day + 1}"
"""


@pytest.mark.parametrize(
    ("make", "body"),
    [
        (lambda names: names["Note"], '{"day":7,"tag":null}'),
        (lambda names: names["Plain"], "8"),
        (lambda names: names["Pair"], "[7]"),
        (lambda names: names["Call"](), "8"),
        (lambda names: functools.partial(names["Note"]), '{"day":7,"tag":null}'),
    ],
)
async def test_annotations_of_a_class_may_be_texts(server: ResourceServer, make: Any, body: str) -> None:
    names: dict[str, Any] = {"__name__": "pep_563"}
    module = types.ModuleType("pep_563")
    sys.modules["pep_563"] = module
    try:
        exec(PEP_563, module.__dict__)
        names = module.__dict__
        server.resource("note://{day}")(make(names))
        async with Client(server) as client:
            assert await client.read_text("note://7") == body
            with pytest.raises(ServerError):
                await client.read_text("note://x")
    finally:
        del sys.modules["pep_563"]


@pytest.mark.parametrize("function", [dict, time.time, functools.partial(time.time), int])
def test_a_builtin_without_a_signature_is_refused_with_advice(server: ResourceServer, function: Any) -> None:
    try:
        inspect.signature(function)
    except ValueError:
        with pytest.raises(RegistrationError, match="does not know its parameters; register a function"):
            server.resource("a://b")(function)
    else:
        server.resource("a://b")(function)


def test_a_type_of_an_enclosing_function_is_said_to_be_out_of_reach(server: ResourceServer) -> None:
    names: dict[str, Any] = {"server": server}
    exec(
        "def register():\n"
        "    import enum\n"
        "    class Color(enum.Enum):\n        RED = 'red'\n"
        "    @server.resource('color://{color}')\n"
        "    def color(color: 'Color') -> str: return ''\n",
        names,
    )
    with pytest.raises(RegistrationError, match="or move it out of the function to the module"):
        names["register"]()


def test_a_module_offers_its_own_names() -> None:
    for module in (mcp_resources, providers, testing):
        assert dir(module) == sorted(module.__all__)
        assert not {"os", "asyncio", "inspect", "checks", "Callable"} & {*dir(module)}
