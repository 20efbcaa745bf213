"""The tools that the official suite calls by name, behind the extension door."""

import asyncio
import base64
import json
import struct
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from mcp_resources import AskFailed, Context, CustomError, Elicit, InputRequired, ListRoots, Sample

Members: TypeAlias = Mapping[str, object]
Tool: TypeAlias = Callable[[dict[str, Any], Context], Awaitable["Members | InputRequired"]]

CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
ANYTHING: Members = {"type": "object", "properties": {}}
TOOLS: dict[str, tuple[str, Members, Tool]] = {}
PAUSE = 0.05


def chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


PNG = b"\x89PNG\r\n\x1a\n" + b"".join(
    (
        chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)),
        chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")),
        chunk(b"IEND", b""),
    )
)
WAV = b"RIFF" + struct.pack("<I", 36) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
WAV += b"data" + struct.pack("<I", 0)
IMAGE = {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": base64.b64encode(WAV).decode(), "mimeType": "audio/wav"}


def tool(description: str, schema: Members = ANYTHING, name: str = "") -> Callable[[Tool], Tool]:
    """A tool, called as its function is, after `test_`."""

    def register(function: Tool) -> Tool:
        TOOLS[name or f"test_{getattr(function, '__name__', '')}"] = (description, schema, function)
        return function

    return register


def embedded(uri: str, mime_type: str, text: str) -> Members:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": text}}


def texts(*lines: str) -> Members:
    return {"content": [{"type": "text", "text": line} for line in lines]}


def form(message: str, **properties: Members) -> Elicit:
    return Elicit(message, {"type": "object", "properties": properties, "required": [*properties]})


def takes(name: str, description: str) -> Members:
    return {"type": "object", "properties": {name: {"type": "string", "description": description}}, "required": [name]}


@tool("A text")
async def simple_text(arguments: dict[str, Any], ctx: Context) -> Members:
    return texts("This is a simple text response for testing.")


@tool("An image")
async def image_content(arguments: dict[str, Any], ctx: Context) -> Members:
    return {"content": [IMAGE]}


@tool("A sound")
async def audio_content(arguments: dict[str, Any], ctx: Context) -> Members:
    return {"content": [AUDIO]}


@tool("A resource")
async def embedded_resource(arguments: dict[str, Any], ctx: Context) -> Members:
    return {"content": [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]}


@tool("Several kinds of content")
async def multiple_content_types(arguments: dict[str, Any], ctx: Context) -> Members:
    data = embedded("test://mixed-content-resource", "application/json", json.dumps({"test": "data", "value": 123}))
    return {"content": [{"type": "text", "text": "Multiple content types test:"}, IMAGE, data]}


@tool("Logs while it works")
async def tool_with_logging(arguments: dict[str, Any], ctx: Context) -> Members:
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        ctx.log.info(line)
        await asyncio.sleep(PAUSE)
    return texts("Tool with logging executed successfully")


@tool("Reports its progress")
async def tool_with_progress(arguments: dict[str, Any], ctx: Context) -> Members:
    for step in (0, 50, 100):
        ctx.progress(step, 100, f"Completed step {step} of 100")
        await asyncio.sleep(PAUSE)
    return texts(str((ctx.meta or {}).get("progressToken", "none")))


@tool("Fails")
async def error_handling(arguments: dict[str, Any], ctx: Context) -> Members:
    return {**texts("This tool intentionally returns an error for testing"), "isError": True}


@tool("Takes its time, while the stream is broken off")
async def reconnection(arguments: dict[str, Any], ctx: Context) -> Members:
    await asyncio.sleep(0.5)
    return texts("Reconnection test completed successfully.")


async def asked(ctx: Context, method: str, params: Members) -> dict[str, Any] | str:
    """The client's result, or why there is none."""
    try:
        return dict(await ctx.ask(method, params))
    except AskFailed as error:
        return str(error)


@tool("Asks the client's model", takes("prompt", "What to ask"))
async def sampling(arguments: dict[str, Any], ctx: Context) -> Members:
    messages = [{"role": "user", "content": {"type": "text", "text": arguments["prompt"]}}]
    result = await asked(ctx, "sampling/createMessage", {"messages": messages, "maxTokens": 100})
    return texts(result if isinstance(result, str) else f"LLM response: {result['content']['text']}")


async def elicited(ctx: Context, message: str, schema: Members, prefix: str) -> Members:
    result = await asked(ctx, "elicitation/create", {"message": message, "requestedSchema": schema})
    if isinstance(result, str):
        return texts(result)
    return texts(f"{prefix}: action={result['action']}, content={json.dumps(result.get('content', {}))}")


@tool("Asks the user", takes("message", "What the user reads"))
async def elicitation(arguments: dict[str, Any], ctx: Context) -> Members:
    return await elicited(ctx, arguments["message"], takes("response", "User's response"), "User response")


@tool("Asks the user, with defaults")
async def elicitation_sep1034_defaults(arguments: dict[str, Any], ctx: Context) -> Members:
    properties = {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "description": "Verification status", "default": True},
    }
    schema = {"type": "object", "properties": properties, "required": []}
    return await elicited(ctx, "Please look over these", schema, "Elicitation completed")


@tool("Asks the user to choose")
async def elicitation_sep1330_enums(arguments: dict[str, Any], ctx: Context) -> Members:
    def titled(*names: str) -> list[Members]:
        return [{"const": f"value{number}", "title": name} for number, name in enumerate(names, 1)]

    options = ["option1", "option2", "option3"]
    several = {"type": "array", "minItems": 1, "maxItems": 3}
    properties = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled("First Option", "Second Option", "Third Option")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
        "untitledMulti": {**several, "items": {"type": "string", "enum": options}},
        "titledMulti": {**several, "items": {"anyOf": titled("First Choice", "Second Choice", "Third Choice")}},
    }
    schema = {"type": "object", "properties": properties, "required": []}
    return await elicited(ctx, "Please choose", schema, "Elicitation completed")


SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@tool("Has a schema of every kind", SCHEMA, "json_schema_2020_12_tool")
async def json_schema(arguments: dict[str, Any], ctx: Context) -> Members:
    return texts(f"called with {json.dumps(arguments)}")


# Answers in several rounds (2026-07-28).


@tool("Needs a model")
async def missing_capability(arguments: dict[str, Any], ctx: Context) -> Members | InputRequired:
    if "sample" in ctx.inputs:
        return texts("sampled")
    return InputRequired({"sample": sample("Anything")})


def sample(text: str) -> Sample:
    return Sample({"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": 100})


@tool("Asks for a name")
async def input_required_result_elicitation(arguments: dict[str, Any], ctx: Context) -> Members | InputRequired:
    answer = ctx.inputs.get("user_name")
    if answer is None:
        return InputRequired({"user_name": form("What is your name?", name={"type": "string"})})
    return texts(f"Hello, {answer.content.get('name', answer.action)}!")


@tool("Asks a model")
async def input_required_result_sampling(arguments: dict[str, Any], ctx: Context) -> Members | InputRequired:
    answer = ctx.inputs.get("capital_question")
    if answer is None:
        return InputRequired({"capital_question": sample("What is the capital of France?")})
    return texts(f"The model said: {json.dumps(answer.value.get('content'))}")


@tool("Asks for roots")
async def input_required_result_list_roots(arguments: dict[str, Any], ctx: Context) -> Members | InputRequired:
    answer = ctx.inputs.get("roots_request")
    if answer is None:
        return InputRequired({"roots_request": ListRoots()})
    return texts(f"Found {len(answer.value.get('roots', []))} root(s)")


@tool("Keeps a state")
async def input_required_result_request_state(arguments: dict[str, Any], ctx: Context) -> Members | InputRequired:
    answer = ctx.inputs.get("confirm")
    if answer is not None and ctx.state == "asked":
        return texts("state-ok: requestState validated")
    return InputRequired({"confirm": form("Please confirm", ok={"type": "boolean"})}, state="asked")


@tool("Asks for several things")
async def input_required_result_multiple_inputs(arguments: dict[str, Any], ctx: Context) -> Members | InputRequired:
    wanted = {
        "user_name": form("What is your name?", name={"type": "string"}),
        "greeting": sample("Generate a greeting"),
        "client_roots": ListRoots(),
    }
    if wanted.keys() <= ctx.inputs.keys():
        return texts(f"Name: {ctx.inputs['user_name'].content.get('name')}")
    return InputRequired(wanted, state="several")


@tool("Asks twice")
async def input_required_result_multi_round(arguments: dict[str, Any], ctx: Context) -> Members | InputRequired:
    if "step2" in ctx.inputs and isinstance(ctx.state, dict):
        return texts(f"{ctx.state['name']} likes {ctx.inputs['step2'].content.get('color')}")
    if "step1" in ctx.inputs:
        name = ctx.inputs["step1"].content.get("name")
        return InputRequired({"step2": form("Step 2: which color?", color={"type": "string"})}, state={"name": name})
    return InputRequired({"step1": form("Step 1: what is your name?", name={"type": "string"})}, state={"round": 1})


@tool("Keeps a state that nobody may change")
async def input_required_result_tampered_state(arguments: dict[str, Any], ctx: Context) -> Members | InputRequired:
    if "confirm" in ctx.inputs and ctx.state == "sealed":
        return texts("integrity-ok: state verified")
    return InputRequired({"confirm": form("Please confirm", ok={"type": "boolean"})}, state="sealed")


@tool("Asks only what the client can answer")
async def input_required_result_capabilities(arguments: dict[str, Any], ctx: Context) -> Members | InputRequired:
    if ctx.inputs:
        return texts(f"capabilities-ok: received {', '.join(ctx.inputs)}")
    declared = (ctx.meta or {}).get(CAPABILITIES, {})
    wanted: dict[str, Elicit | Sample] = {}
    if "elicitation" in declared:
        wanted["elicit_input"] = form("Elicitation input", value={"type": "string"})
    if "sampling" in declared:
        wanted["sample_input"] = sample("Sample request")
    return InputRequired(wanted, state="capabilities") if wanted else texts("No supported capabilities declared")


@tool("Reports its progress on a stream")
async def streaming_elicitation(arguments: dict[str, Any], ctx: Context) -> Members:
    ctx.progress(50, 100)
    return texts("Streaming complete")


@tool("Logs if it is wanted")
async def logging_tool(arguments: dict[str, Any], ctx: Context) -> Members:
    ctx.log.info("Diagnostic trace logging activated")
    return texts("Logging evaluated")


def listed() -> list[Members]:
    """What `tools/list` says of them."""
    return [
        {"name": name, "description": description, "inputSchema": schema}
        for name, (description, schema, _) in TOOLS.items()
    ]


async def call(params: dict[str, Any], ctx: Context) -> Members | InputRequired:
    """`tools/call`."""
    found = TOOLS.get(params.get("name", ""))
    if found is None:
        raise CustomError(-32602, f"Unknown tool: {params.get('name')}")
    return await found[2](params.get("arguments") or {}, ctx)
