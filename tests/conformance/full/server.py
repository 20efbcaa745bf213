"""The second fixture server: resources, and by hand the tools and prompts that the official suite knows by name.

It shows that the extension door, progress, logs, rounds of input and questions to the client hold under the whole
suite. The first server stays without them.
"""

import sys
from typing import Any

import tools
from mcp_resources import Context, CustomError, InputRequired, Resource, ResourceServer
from tools import IMAGE, PNG, Members, embedded

server = ResourceServer("conformance-full", version="1.0.0", logging=True)
HINT: Members = {"ttlMs": 60_000, "cacheScope": "public"}


@server.method("tools/list", capability=("tools", {"listChanged": True}), lists="tools")
async def list_tools(params: dict[str, Any], ctx: Context) -> Members:
    return {"tools": tools.listed(), **hint(ctx)}


@server.method("tools/call", name_param="name")
async def call_tool(params: dict[str, Any], ctx: Context) -> Members | InputRequired:
    if params.get("name") == "test_trigger_tool_change":
        server.notify_list_changed("tools")
        return tools.texts("Mutation triggered")
    if params.get("name") == "test_trigger_prompt_change":
        server.notify_list_changed("prompts")
        return tools.texts("Mutation triggered")
    return await tools.call(params, ctx)


def argument(name: str) -> Members:
    return {"name": name, "description": f"The {name}", "required": True}


PROMPTS: dict[str, tuple[str, list[Members]]] = {
    "test_simple_prompt": ("Without arguments", []),
    "test_prompt_with_arguments": ("With arguments", [argument("arg1"), argument("arg2")]),
    "test_prompt_with_embedded_resource": ("With a resource", [argument("resourceUri")]),
    "test_prompt_with_image": ("With an image", []),
    "test_input_required_result_prompt": ("Asks for its context", []),
}


@server.method("prompts/list", capability=("prompts", {"listChanged": True}), lists="prompts")
async def list_prompts(params: dict[str, Any], ctx: Context) -> Members:
    prompts = [
        {"name": name, "description": description, "arguments": arguments}
        for name, (description, arguments) in PROMPTS.items()
    ]
    return {"prompts": prompts, **hint(ctx)}


@server.method("prompts/get", name_param="name")
async def get_prompt(params: dict[str, Any], ctx: Context) -> Members | InputRequired:
    given = params.get("arguments") or {}
    match params.get("name"):
        case "test_simple_prompt":
            return says("This is a simple prompt for testing.")
        case "test_prompt_with_arguments":
            return says(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")
        case "test_prompt_with_embedded_resource":
            text = "Embedded resource content for testing."
            return says(embedded(given.get("resourceUri", ""), "text/plain", text), "Please process it.")
        case "test_prompt_with_image":
            return says(IMAGE, "Please analyze the image above.")
        case "test_input_required_result_prompt":
            answer = ctx.inputs.get("user_context")
            if answer is None:
                question = tools.form("What context should the prompt use?", context={"type": "string"})
                return InputRequired({"user_context": question})
            return says(f"Prompt with context: {answer.content.get('context')}")
        case name:
            raise CustomError(-32602, f"Unknown prompt: {name}")


@server.method("completion/complete")
async def complete_prompt(params: dict[str, Any]) -> Members:
    return {"completion": {"values": [], "total": 0, "hasMore": False}}


def hint(ctx: Context) -> Members:
    """The caching hints, which lists have since 2026-07-28."""
    return HINT if ctx.revision == "2026-07-28" else {}


def says(*contents: str | Members) -> Members:
    content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in contents]
    return {"messages": [{"role": "user", "content": one} for one in content]}


server.add_resource(
    Resource("test://static-text", name="static-text", description="A text", mime_type="text/plain"),
    text="This is the content of the static text resource.",
)
server.add_resource(
    Resource("test://static-binary", name="static-binary", description="An image", mime_type="image/png"), bytes=PNG
)
server.add_resource(
    Resource("test://watched-resource", name="watched-resource", description="May change", mime_type="text/plain"),
    text="watched",
)


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> Members:
    """One of many."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


if __name__ == "__main__":
    if sys.argv[1:2] != ["--http"] or len(sys.argv) != 3:
        sys.exit("usage: server.py --http PORT")
    server.run("http", port=int(sys.argv[2]), polling=(200, 100))
