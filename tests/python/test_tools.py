"""Tools and prompts: schemas from annotations, results of each kind, and what a model reads when something is wrong."""

import asyncio
import base64
import enum
import json
import logging
import math
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

import pytest
from mcp_resources import (
    Audio,
    Contents,
    Context,
    CustomError,
    Elicit,
    Embedded,
    Image,
    InputRequired,
    InvalidParameterError,
    MethodResult,
    Param,
    PromptMessage,
    PromptResult,
    RegistrationError,
    Resource,
    ResourceLink,
    ResourceNotFoundError,
    ResourceServer,
    Text,
    ToolError,
    ToolResult,
    providers,
)
from mcp_resources.testing import Client, ServerError
from pydantic import BaseModel, Field, HttpUrl
from typing_extensions import TypedDict

Json = dict[str, Any]


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


@dataclass
class Point:
    x: int
    y: int = 0


class Filter(TypedDict):
    text: str
    limit: NotRequired[int]


class Report(BaseModel):
    total: float = Field(description="In euros.")
    page: HttpUrl | None = Field(default=None, alias="pageUrl")


@pytest.fixture
def server() -> ResourceServer:
    return ResourceServer("tools")


async def call(server: ResourceServer, name: str, arguments: Json | None = None, **options: Any) -> Json:
    async with Client(server, **options) as client:
        return dict(await client.request("tools/call", {"name": name, "arguments": arguments or {}}))


async def listed(server: ResourceServer, kind: str = "tools") -> list[Json]:
    async with Client(server) as client:
        found: list[Json] = (await client.request(f"{kind}/list"))[kind]
        return found


def text(result: Json) -> str:
    (block,) = result["content"]
    return str(block["text"])


async def test_a_schema_follows_from_annotations(server: ResourceServer) -> None:
    """S-60."""

    @server.tool(annotations={"read_only_hint": True, "title": "Searches"}, title="Search", meta={"com.example/a": 1})
    def search(
        query: Annotated[str, "What to look for."],
        size: Size,
        kind: Literal["a", "b"],
        where: Point,
        filters: list[Filter],
        ctx: Context,
        limit: Annotated[int, Field(ge=1, le=50)] = 10,
        json: Annotated[bool, Param("Whether as JSON.")] = False,
        after: str | None = None,
        missing: object = object(),
    ) -> str:
        """Searches the shop.

        In every language.
        """
        return f"{query} {size} {where} {filters} {limit} {json} {after}"

    (tool,) = await listed(server)
    assert (tool["name"], tool["title"]) == ("search", "Search")
    assert tool["description"] == "Searches the shop.\n\nIn every language."
    assert tool["annotations"] == {"readOnlyHint": True, "title": "Searches"}
    assert tool["_meta"] == {"com.example/a": 1}
    assert "outputSchema" not in tool
    schema = tool["inputSchema"]
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert schema["required"] == ["query", "size", "kind", "where", "filters"]
    own = schema["properties"]
    assert own["query"] == {"type": "string", "description": "What to look for."}
    assert own["kind"] == {"enum": ["a", "b"], "type": "string"}
    assert own["limit"] == {"default": 10, "maximum": 50, "minimum": 1, "type": "integer"}
    assert own["json"] == {"default": False, "type": "boolean", "description": "Whether as JSON."}
    assert own["after"] == {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    assert own["missing"] == {}
    assert own["size"] == {"$ref": "#/$defs/Size"}
    assert schema["$defs"]["Point"]["required"] == ["x"]
    assert "ctx" not in own
    given = {"query": "tea", "size": "large", "kind": "a", "where": {"x": "3"}, "filters": [{"text": "t"}]}
    result = await call(server, "search", given)
    assert text(result) == "tea Size.LARGE Point(x=3, y=0) [{'text': 't'}] 10 False None"
    assert "structuredContent" not in result


async def test_a_decorated_function_is_left_as_it_is(server: ResourceServer) -> None:
    @server.tool
    def bare(x: int) -> int:
        return x + 1

    @server.tool("shop.pay")
    @server.tool("shop.pay-2")
    async def pay(x: int = 1) -> int:
        return x

    class Shop:
        def open(self, day: str) -> str:
            return f"open on {day}"

    server.add_tool(Shop().open)
    assert bare(1) == 2
    assert [tool["name"] for tool in await listed(server)] == ["bare", "open", "shop.pay", "shop.pay-2"]
    assert text(await call(server, "shop.pay-2", {"x": 5})) == "5"
    assert text(await call(server, "open", {"day": "monday"})) == "open on monday"
    server.remove_tool("bare")
    server.remove_tool("bare")
    assert len(await listed(server)) == 3


async def test_results(server: ResourceServer) -> None:
    png, wav = b"\x89PNG", b"RIFF"

    @server.resource("note://{day}", mime_type="text/markdown")
    def note(day: str) -> str:
        """A note."""
        return f"# {day}"

    @server.resource("note://all")
    def everything() -> str:
        return ""

    results: dict[str, object] = {
        "nothing": None,
        "text": "hi",
        "image": Image(png),
        "sound": Audio(wav),
        "several": [Text("see", audience=["user"], priority=0.5), Audio(memoryview(wav), "audio/wav")],
        "link": note.link(day="monday"),
        "fixed": everything.link(),
        "other": ResourceLink("https://example.com/a", title="A"),
        "embedded": Embedded(Contents({"a": 1}, uri="note://x"), meta={"com.example/a": 1}),
        "contents": Embedded(Contents("x", uri="note://x", mime_type="text/plain", meta={"com.example/b": 2})),
        "mixed": ["see", Image(png)],
        "value": {"a": [1, None, "ü"]},
        "whole": ToolResult("bad", is_error=True, structured=[1], meta={"com.example/c": 3}),
        "raw": MethodResult({"content": [], "own": 1}),
        "read": Contents("as a read"),
    }

    @server.tool
    def give(which: str):  # type: ignore[no-untyped-def]
        return results[which]

    async def given(which: str) -> Json:
        result = await call(server, "give", {"which": which})
        return {name: value for name, value in result.items() if name not in ("resultType", "_meta")}

    assert await given("nothing") == {"content": []}
    assert await given("text") == {"content": [{"type": "text", "text": "hi"}]}
    assert await given("image") == {"content": [{"type": "image", "data": "iVBORw==", "mimeType": "image/png"}]}
    assert await given("sound") == {"content": [{"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}]}
    several = (await given("several"))["content"]
    assert several[0] == {"type": "text", "text": "see", "annotations": {"audience": ["user"], "priority": 0.5}}
    assert several[1] == {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
    (link,) = (await given("link"))["content"]
    assert link == {
        "type": "resource_link",
        "uri": "note://monday",
        "name": "monday",
        "description": "A note.",
        "mimeType": "text/markdown",
    }
    with pytest.raises(TypeError, match="needs a value for 'day'"):
        note.link()
    with pytest.raises(ValueError, match=r"does not accept note://\.\.: Rejected"):
        note.link(day="..")
    assert (await given("fixed"))["content"][0]["name"] == "everything"
    assert (await given("other"))["content"][0]["title"] == "A"
    assert (await given("embedded"))["content"] == [
        {
            "type": "resource",
            "resource": {"uri": "note://x", "mimeType": "application/json", "text": '{"a":1}'},
            "_meta": {"com.example/a": 1},
        }
    ]
    assert (await given("contents"))["content"][0]["resource"]["_meta"] == {"com.example/b": 2}
    assert [block["type"] for block in (await given("mixed"))["content"]] == ["text", "image"]
    assert await given("value") == {
        "content": [{"type": "text", "text": '{"a":[1,null,"ü"]}'}],
        "structuredContent": {"a": [1, None, "ü"]},
    }
    whole = await call(server, "give", {"which": "whole"})
    assert (whole["isError"], whole["structuredContent"], whole["_meta"]["com.example/c"]) == (True, [1], 3)
    assert (await given("raw"))["own"] == 1
    assert await given("read") == {"content": [{"type": "text", "text": "as a read"}]}


async def test_results_of_other_sdks(server: ResourceServer) -> None:
    """A function that moves here keeps what it returns."""
    import mcp_types as types

    png = base64.b64encode(b"png").decode()
    wire = [
        {"type": "text", "text": "a", "annotations": {"audience": ["user"]}},
        {"type": "image", "data": png, "mimeType": "image/png"},
        {"type": "resource_link", "uri": "a://b", "name": "b"},
        {"type": "resource", "resource": {"uri": "a://b", "text": "x", "mimeType": "text/plain"}},
    ]
    results: dict[str, object] = {
        "wire": {"content": wire, "isError": True, "structuredContent": {"n": 1}},
        "model": types.CallToolResult(
            content=[types.TextContent(type="text", text="a")], structured_content={"n": 1}, is_error=True
        ),
        "blocks": [types.TextContent(type="text", text="a"), Text("b")],
        "data": {"content": [], "isError": True},
    }

    @server.tool
    def give(which: str):  # type: ignore[no-untyped-def]
        return results[which]

    @server.tool
    def typed() -> list[types.TextContent]:
        return [types.TextContent(type="text", text="a")]

    @server.prompt
    def talk() -> list[object]:
        own = types.PromptMessage(role="assistant", content=types.TextContent(type="text", text="a"))
        return [own, {"role": "user", "content": {"type": "text", "text": "b"}}]

    assert (await call(server, "give", {"which": "wire"}))["content"] == wire
    for which in ("wire", "model"):
        result = await call(server, "give", {"which": which})
        assert (result["isError"], result["structuredContent"]) == (True, {"n": 1})
    assert [block["text"] for block in (await call(server, "give", {"which": "blocks"}))["content"]] == ["a", "b"]
    assert (await call(server, "give", {"which": "data"}))["structuredContent"] == results["data"]
    assert "outputSchema" not in (await listed(server))[1]
    assert text(await call(server, "typed")) == "a"
    async with Client(server) as client:
        messages = (await client.request("prompts/get", {"name": "talk"}))["messages"]
    assert [(one["role"], one["content"]["text"]) for one in messages] == [("assistant", "a"), ("user", "b")]


async def test_structured_results(server: ResourceServer) -> None:
    @server.tool
    def report(total: float, url: str | None = None) -> Report:
        return Report(total=total, pageUrl=url)  # type: ignore[arg-type]

    @server.tool
    async def as_dict() -> Report:
        return {"total": 3}  # type: ignore[return-value]

    @server.tool
    def numbers() -> list[int]:
        return (1, 2)  # type: ignore[return-value]

    @server.tool
    def maybe(is_text: bool) -> str | Point | None:
        return "x" if is_text else None

    @server.tool
    def linked() -> list[ResourceLink]:
        return []

    @server.tool
    def anything() -> list[object]:
        return [1]

    schemas = {tool["name"]: tool.get("outputSchema") for tool in await listed(server)}
    assert schemas["report"]["required"] == ["total"]
    assert schemas["report"]["properties"]["total"] == {"description": "In euros.", "type": "number"}
    assert "pageUrl" in schemas["report"]["properties"]
    assert schemas["numbers"] == {"items": {"type": "integer"}, "type": "array"}
    assert schemas["linked"] is None
    assert schemas["anything"] is None
    assert (await call(server, "anything"))["structuredContent"] == [1]
    result = await call(server, "report", {"total": 2, "url": "https://example.com/"})
    assert result["structuredContent"] == {"total": 2.0, "pageUrl": "https://example.com/"}
    assert json.loads(text(result)) == result["structuredContent"]
    assert (await call(server, "as_dict"))["structuredContent"] == {"total": 3.0, "pageUrl": None}
    assert (await call(server, "numbers"))["structuredContent"] == [1, 2]
    legacy = await call(server, "numbers", revision="2025-06-18")
    assert legacy["structuredContent"] == {"result": [1, 2]}
    assert "structuredContent" not in await call(server, "numbers", revision="2025-03-26")
    given = await call(server, "maybe", {"is_text": True})
    assert (text(given), given["structuredContent"]) == ("x", "x")
    assert (await call(server, "maybe", {"is_text": False}))["structuredContent"] is None


async def test_a_model_reads_what_is_wrong(server: ResourceServer, caplog: pytest.LogCaptureFixture) -> None:
    @server.tool
    def pay(number: int, euros: Annotated[float, Field(gt=0)] = 1.0) -> str:
        if number == 1:
            raise ToolError("There is no order 1.")
        if number == 2:
            raise OSError("the disk is on fire")
        if number == 3:
            raise ResourceNotFoundError
        if number == 4:
            raise InvalidParameterError("number", "an order of today")
        raise CustomError(4711, "No more tea")

    async def said(arguments: Json) -> str:
        result = await call(server, "pay", arguments)
        assert result["isError"] is True
        return text(result)

    place = "Invalid arguments for pay: "
    assert await said({}) == f"{place}number: it is required"
    wrong = "Input should be a valid integer, unable to parse string as an integer"
    assert await said({"number": "x"}) == f"{place}number: {wrong}"
    both = f"{place}euros: Input should be greater than 0; other: there is no such argument"
    assert await said({"number": 1, "euros": 0, "other": 1}) == both
    assert await said({"number": 1}) == "There is no order 1."
    with caplog.at_level(logging.ERROR):
        assert await said({"number": 2}) == "The tool pay failed"
    assert "the disk is on fire" in caplog.text
    assert await said({"number": 3}) == "Resource not found"
    assert await said({"number": 4}) == f"{place}number: expected an order of today"
    for arguments, code in (({"number": 5}, 4711), ([1], -32602)):
        with pytest.raises(ServerError) as caught:
            await call(server, "pay", arguments)  # type: ignore[arg-type]
        assert caught.value.code == code
    with pytest.raises(ServerError, match="Unknown tool: none"):
        await call(server, "none")


async def test_many_faults_are_bounded(server: ResourceServer) -> None:
    @server.tool
    def add(numbers: list[int]) -> int:
        return sum(numbers)

    said = text(await call(server, "add", {"numbers": ["x"] * 10}))
    assert said.endswith("; and 2 more")
    said = text(await call(server, "add", {"numbers": ["x"] * 100_000}))
    assert said == "Invalid arguments for add: arguments: 100000 values do not fit their types"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (math.nan, "the result is nan, which JSON does not have"),
        ({"a": [math.inf]}, "the result.a[0] is inf, which JSON does not have"),
        ({"a": b"x"}, "the result.a is b'x'"),
        (b"x", "bytes have no content of their own"),
        ([Image(b""), 7], "item 1 of the list is 7, expected a text, Image"),
        (object, "which has no JSON form"),
        ("cycle", "contains itself"),
    ],
    ids=str,
)
@pytest.mark.parametrize("annotated", [True, False])
async def test_a_result_without_a_json_form_fails(
    server: ResourceServer, caplog: pytest.LogCaptureFixture, value: object, why: str, annotated: bool
) -> None:
    if value == "cycle":
        value = {}
        value["a"] = value

    def give():  # type: ignore[no-untyped-def]
        return value

    if annotated:
        give.__annotations__["return"] = float if isinstance(value, float) else dict[str, Any] | list[Any]
        why = "" if isinstance(value, type) or why == "contains itself" else why
    server.tool(give)
    with caplog.at_level(logging.ERROR):
        result = await call(server, "give")
    assert (text(result), result["isError"]) == ("The tool give failed", True)
    errors = [str(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert len(errors) == 1
    assert why in errors[0]


def refused(register: Any) -> str:
    with pytest.raises((RegistrationError, TypeError)) as caught:
        register()
    return str(caught.value)


def test_a_wrong_parameter_is_refused(server: ResourceServer) -> None:
    """Each message names the function and the parameter."""

    class Foo:
        def method(self, x: int) -> str:
            return ""

    def positional(x: int, /) -> str:
        return ""

    def rest(*args: int) -> str:
        return ""

    def named(**more: int) -> str:
        return ""

    def classed(x: Foo) -> str:
        return ""

    def returning() -> Foo:
        return Foo()

    def header(x: Annotated[str, Field(json_schema_extra={"x-mcp-header": "X"})]) -> str:
        return ""

    def ruled(x: Annotated[str, Param(values=["a"])]) -> str:
        return ""

    place = f"{__name__}.test_a_wrong_parameter_is_refused.<locals>."
    own = "the arguments of a tool have names of their own"
    assert refused(lambda: server.tool(positional)) == (
        f"{place}positional: parameter 'x' can be passed by position alone; {own}"
    )
    assert refused(lambda: server.tool(rest)) == f"{place}rest: parameter 'args' is *args; {own}"
    assert refused(lambda: server.tool(named)) == f"{place}named: parameter 'more' is **more; {own}"
    assert refused(lambda: server.tool(Foo.method)).startswith(
        f"{place}Foo.method: parameter 'self' makes this a method"
    )
    said = refused(lambda: server.tool(classed))
    assert said.startswith(f"{place}classed: parameter 'x' has an annotation without a JSON form: Unable to generate")
    said = refused(lambda: server.tool(returning))
    assert said.startswith(f"{place}returning: its return annotation has no JSON form: Unable to generate")
    assert "x-mcp-header" in refused(lambda: server.tool(header))
    assert "header" in refused(lambda: server.tool(header))
    assert "use Literal[…]" in refused(lambda: server.tool(ruled))
    assert refused(lambda: server.prompt(rest)).endswith("the arguments of a prompt have names of their own")

    def listing(x: list[str]) -> str:
        return ""

    assert refused(lambda: server.prompt(listing)).endswith(
        "is annotated as a list; the arguments of a prompt are texts"
    )


def test_a_wrong_registration_is_refused(server: ResourceServer) -> None:
    def pay(x: int) -> str:
        return ""

    server.tool(pay)
    assert refused(lambda: server.tool(pay)).endswith(
        f"for {__name__}.{pay.__qualname__}; remove that one first, or pass replace=True"
    )
    server.add_tool(pay, replace=True)
    assert "a b" in refused(lambda: server.tool("a b")(pay))
    assert refused(lambda: server.tool("x", titel="T")(pay)) == 'unexpected option "titel"; did you mean "title"?'
    assert "read_only" in refused(lambda: server.tool("x", annotations={"read_only": True})(pay))
    assert refused(lambda: server.tool(7)(pay)) == 'tool takes a name, got 7; write @server.tool("…")'
    assert refused(lambda: server.tool()(lambda: "")).endswith('has no name of its own; write server.tool("…")')
    assert refused(lambda: server.tool("x", inline=1)(pay)) == "inline is 1, expected True or False"
    assert refused(lambda: server.add_tool(pay, "x", input_schema="{}")) == "input_schema is '{}', expected a dict"
    assert "object" in refused(lambda: server.add_tool(pay, "x", input_schema={"type": "array"}))
    for word in ("tools/list", "tools/call", "prompts/list", "prompts/get"):
        said = refused(lambda word=word: server.method(word)(pay))
        assert ("tool" if "tools" in word else "prompt") in said
    assert refused(lambda: Image("x")) == "Image takes bytes, got 'x'; read a file with Path(…).read_bytes()"
    assert refused(lambda: ToolResult(7)) == "ToolResult takes a text or blocks such as Image, got 7"
    assert (
        refused(lambda: PromptMessage({}))
        == "the content of PromptMessage is {}, expected a text, Image, Audio, ResourceLink or Embedded"
    )


def test_pydantic_is_imported_at_the_first_tool() -> None:
    """A server without tools needs none, and starts as fast as before."""
    program = """
import sys
import mcp_resources
from mcp_resources import ResourceServer
assert not {"mcp_resources.tools", "mcp_resources.blocks"} & sys.modules.keys()
assert mcp_resources.Image
server = ResourceServer("x")
server.add_tool(lambda arguments: "", "raw", input_schema={"type": "object"})
server.prompt("greet")(lambda name: name)
assert "pydantic" not in sys.modules
sys.modules["pydantic"] = None
try:
    server.tool("typed")(lambda x: x)
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "a tool needs pydantic for the schema of its arguments: pip install 'mcp-resources[tools]'\n"


async def test_context_progress_log_and_input(server: ResourceServer) -> None:
    @server.tool
    async def work(ctx: Context, steps: int = 2) -> str:
        ctx.progress(1, steps)
        return f"{ctx.uri} {ctx.principal!r}"

    @server.tool
    def confirm(ctx: Context) -> str | InputRequired:
        if "ok" not in ctx.inputs:
            return InputRequired({"ok": Elicit("Sure?", {"type": "object", "properties": {}})}, state={"n": 1})
        return f"{ctx.inputs['ok'].action} {ctx.state}"

    async with Client(server) as client:
        result = await client.request("tools/call", {"name": "work"}, meta={"progressToken": 1})
        assert text(result) == "None ''"
        assert (await client.notification()).params["progress"] == 1
    async with Client(server, capabilities={"elicitation": {}}) as client:
        asked = await client.request("tools/call", {"name": "confirm"})
        again = {"inputResponses": {"ok": {"action": "accept"}}, "requestState": asked["requestState"]}
        result = await client.request("tools/call", {"name": "confirm", **again})
        assert text(result) == "accept {'n': 1}"


async def test_threads_and_cancellation(server: ResourceServer) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    @server.tool
    def blocking() -> str:
        return threading.current_thread().name

    @server.tool(inline=True)
    def inline() -> str:
        return threading.current_thread().name

    @server.tool
    async def endless() -> str:
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()
        return ""

    here = threading.current_thread().name
    assert text(await call(server, "blocking")) != here
    assert text(await call(server, "inline")) == here
    async with Client(server) as client:
        task = asyncio.create_task(client.request("tools/call", {"name": "endless"}))
        await started.wait()
        task.cancel()
        await ended.wait()


async def test_prompts(server: ResourceServer) -> None:
    @server.prompt(title="Greeting")
    def greet(
        name: Annotated[str, "Whom to greet."],
        tone: Literal["friendly", "formal"] = "friendly",
        times: int | None = None,
    ) -> str:
        """Greets a person."""
        return f"Greet {name}, {tone}, {times!r}."

    @greet.complete("name")
    def complete_name(value: str, chosen: dict[str, str]) -> list[str]:
        return [f"{value}a", *chosen]

    @server.prompt
    async def talk(ctx: Context) -> list[str | PromptMessage]:
        return ["Hi.", PromptMessage(Image(b"x"), "assistant"), PromptMessage("Bye.")]

    @server.prompt("a talk")
    def whole() -> PromptResult:
        return PromptResult(["Hi."], description="A talk.", meta={"com.example/a": 1})

    async def got(prompt: str, /, **arguments: str) -> Json:
        async with Client(server) as client:
            return dict(await client.request("prompts/get", {"name": prompt, "arguments": arguments}))

    prompts = {prompt["name"]: prompt for prompt in await listed(server, "prompts")}
    assert prompts["greet"] == {
        "name": "greet",
        "title": "Greeting",
        "description": "Greets a person.",
        "arguments": [
            {"name": "name", "description": "Whom to greet.", "required": True},
            {"name": "tone"},
            {"name": "times"},
        ],
    }
    assert greet("Ada") == "Greet Ada, friendly, None."
    (message,) = (await got("greet", name="Ada", times="3"))["messages"]
    assert message == {"role": "user", "content": {"type": "text", "text": "Greet Ada, friendly, 3."}}
    messages = (await got("talk"))["messages"]
    assert [(one["role"], one["content"]["type"]) for one in messages] == [
        ("user", "text"),
        ("assistant", "image"),
        ("user", "text"),
    ]
    result = await got("a talk")
    assert (result["description"], result["_meta"]["com.example/a"]) == ("A talk.", 1)
    for arguments, why in (
        ({"name": "Ada", "tone": "rude"}, "tone"),
        ({"name": "Ada", "times": "x"}, "times"),
        ({"name": "Ada", "other": "x"}, 'other: "x" was refused: there is no such argument'),
        ({}, "the argument name is missing"),
    ):
        with pytest.raises(ServerError, match=why) as caught:
            await got("greet", **arguments)
        assert caught.value.code == -32602
    async with Client(server) as client:
        ask = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": "Ad"}}
        chosen = {"context": {"arguments": {"tone": "formal"}}}
        result = await client.request("completion/complete", ask | chosen)
        assert result["completion"]["values"] == ["Ada", "tone"]
        ask["argument"] = {"name": "tone", "value": "fo"}
        assert (await client.request("completion/complete", ask))["completion"]["values"] == ["formal"]
    assert refused(lambda: greet.complete("nam")) == 'the prompt greet: unexpected argument "nam"; did you mean "name"?'
    greet.remove()
    server.remove_prompt("talk")
    assert [prompt["name"] for prompt in await listed(server, "prompts")] == ["a talk"]


async def test_changes_while_it_serves(server: ResourceServer) -> None:
    def one() -> str:
        return "1"

    server.add_resource(Resource("a://b"), text="x")
    async with Client(server) as client:
        with pytest.raises(ServerError):
            await client.request("tools/call", {"name": "one"})
        server.add_tool(one)
        assert text(await client.request("tools/call", {"name": "one"})) == "1"
        with server.batch():
            server.remove_tool("one")
            server.add_tool(one, "two")
        assert [tool["name"] for tool in (await client.request("tools/list"))["tools"]] == ["two"]


async def test_resources_as_tools() -> None:
    server = ResourceServer("notes", expose_as_tools=True)

    @server.resource("note://{day}")
    def note(day: str) -> str:
        return f"# {day}"

    @note.list
    def days() -> list[str]:
        return ["monday"]

    names = [tool["name"] for tool in await listed(server)]
    assert names == ["list_resources", "read_resource"]
    assert "note://monday" in text(await call(server, "list_resources"))
    assert text(await call(server, "read_resource", {"uri": "note://monday"})) == "# monday"


async def test_a_template_as_a_tool(server: ResourceServer) -> None:
    @server.resource("book://{shelf}/pages{?q}", tool="search_pages")
    def pages(shelf: Literal["a", "b"], q: Annotated[str, "What to look for."] = "") -> str:
        """Searches a shelf."""
        return f"{q} in {shelf}"

    @server.resource("day://{day}", tool=True)
    def day(day: int) -> str:
        return f"day {day}"

    tools = {tool["name"]: tool for tool in await listed(server)}
    assert sorted(tools) == ["day", "search_pages"]
    assert tools["search_pages"]["description"] == "Searches a shelf."
    assert tools["search_pages"]["inputSchema"]["properties"]["shelf"]["enum"] == ["a", "b"]
    assert text(await call(server, "search_pages", {"shelf": "a", "q": "tea"})) == "tea in a"
    assert text(await call(server, "day", {"day": 3})) == "day 3"
    said = refused(lambda: server.add_tool(lambda arguments: "", "day", input_schema={"type": "object"}))
    assert "day" in said
    assert "is for templates" in refused(lambda: server.resource("a://b", tool=True)(lambda: ""))


async def test_tools_of_a_source(tmp_path: Path) -> None:
    """S-64: a mounted source has its tools where resources are tools, or where its option asks for them."""
    (tmp_path / "refunds.md").write_text("# Refunds\n\nMoney back.\n", "utf-8")
    for exposed, chosen, names in (
        (True, {}, ["docs_search"]),
        (True, {"tools": False}, []),
        (False, {}, None),
        (False, {"tools": True}, ["docs_search"]),
        (False, {"tools": ["docs_search"]}, ["docs_search"]),
    ):
        server = ResourceServer("handbook", expose_as_tools=exposed)
        server.mount(providers.docs({"handbook": tmp_path}, **chosen))  # type: ignore[arg-type]
        if names is None:
            with pytest.raises(ServerError, match="tools/list"):
                await listed(server)
            continue
        own = [tool["name"] for tool in await listed(server)]
        assert [name for name in own if not name.endswith(("_resources", "_resource"))] == names
        if names:
            assert "refunds.md" in text(await call(server, "docs_search", {"q": "money"}))


async def test_a_page(server: ResourceServer) -> None:
    """S-63: a tool names its page, which must be registered before."""
    with pytest.raises(RegistrationError, match="register the page first"):
        server.add_tool(lambda: "", "order", ui="ui://shop/order")
    page = server.ui("ui://shop/order", html="<p>", csp={"connect_domains": ("https://a.example",)}, title="Order")

    @server.tool(ui=page, ui_visibility=["app"])
    def order() -> str:
        return "paid"

    (tool,) = await listed(server)
    assert tool["_meta"]["ui"] == {"resourceUri": page, "visibility": ["app"]}
    async with Client(server) as client:
        (contents,) = (await client.request("resources/read", {"uri": page}))["contents"]
    assert contents["mimeType"] == "text/html;profile=mcp-app"
    assert contents["_meta"]["ui"] == {"csp": {"connectDomains": ["https://a.example"]}}
    with pytest.raises(RegistrationError, match="registered already"):
        server.ui(page, html="<p>")
    server.ui(page, html="<b>", replace=True)
    redacting = ResourceServer("x", redact=lambda uri, contents: contents)
    redacting.ui(page, html="<p>", prefers_border=False)
    async with Client(redacting) as client:
        (contents,) = (await client.request("resources/read", {"uri": page}))["contents"]
    assert (contents["text"], contents["_meta"]["ui"]) == ("<p>", {"prefersBorder": False})


def test_links_are_checked(server: ResourceServer) -> None:
    """S-60: a link names the variable that is wrong, and leads to what is registered."""

    @server.resource("note://{number}/{kind}")
    def note(number: int, kind: Literal["a", "b"]) -> str:
        return ""

    assert note.link(number=7, kind="a").uri == "note://7/a"
    with pytest.raises(ValueError, match='the variable number is "x", expected an integer'):
        note.link(number="x", kind="a")
    with pytest.raises(ValueError, match='the variable kind is "c", expected one of: a, b'):
        note.link(number=7, kind="c")
    note.remove()
    with pytest.raises(ValueError, match="is not registered now"):
        note.link(number=7, kind="a")


async def test_a_schema_by_hand(server: ResourceServer) -> None:
    schema = {"type": "object", "properties": {"b": {"type": "integer"}, "a": {}}, "x-own": 1}

    def forward(arguments: Json, ctx: Context) -> str:
        return json.dumps(arguments)

    server.add_tool(forward, input_schema=schema, output_schema={"type": "array"}, description="")
    (tool,) = await listed(server)
    assert (tool["inputSchema"], tool["outputSchema"]) == (schema, {"type": "array"})
    assert text(await call(server, "forward", {"x": [1, None]})) == '{"x": [1, null]}'


async def test_an_encoder(server: ResourceServer) -> None:
    class Money:
        def __init__(self, cents: int) -> None:
            self.cents = cents

    encoded = ResourceServer("x", encoder=lambda value: value.cents if isinstance(value, Money) else NotImplemented)

    def price():  # type: ignore[no-untyped-def]
        return {"price": Money(5)}

    encoded.add_tool(price)
    assert (await call(encoded, "price"))["structuredContent"] == {"price": 5}
    encoded.add_tool(lambda: "x", "plain")
    assert text(await call(encoded, "plain")) == "x"
