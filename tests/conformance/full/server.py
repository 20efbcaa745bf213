"""The second fixture server: resources, and by hand the tools and prompts that the official suite knows by name.

It shows that the extension door, progress, logs, rounds of input and questions to the client hold under the whole
suite. What it has stands in `methods.json`, for every language; here is how that is done.
"""

import asyncio
import base64
import json
import re
import sys
from pathlib import Path
from typing import Any

from mcp_resources import (
    AskFailedError,
    Context,
    CustomError,
    Elicit,
    InputRequired,
    ListRoots,
    Resource,
    ResourceServer,
    Sample,
)

Members = dict[str, Any]
METHODS: Members = json.loads(Path(__file__).with_name("methods.json").read_text("utf-8"))
HINT: Members = {"ttlMs": 60_000, "cacheScope": "public"}
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
MODERN = "2026-07-28"

server = ResourceServer("conformance-full", version="1.0.0", logging=True)


@server.method("tools/list", capability=("tools", {"listChanged": True}), lists="tools")
async def list_tools(params: Members, ctx: Context) -> Members:
    return {"tools": listed("tools"), **hint(ctx)}


@server.method("tools/call", name_param="name")
async def call_tool(params: Members, ctx: Context) -> Members | InputRequired:
    return await perform("tools", params, ctx)


@server.method("prompts/list", capability=("prompts", {"listChanged": True}), lists="prompts")
async def list_prompts(params: Members, ctx: Context) -> Members:
    return {"prompts": listed("prompts"), **hint(ctx)}


@server.method("prompts/get", name_param="name")
async def get_prompt(params: Members, ctx: Context) -> Members | InputRequired:
    return await perform("prompts", params, ctx)


@server.method("completion/complete")
async def complete_prompt(params: Members) -> Members:
    return {"completion": {"values": [], "total": 0, "hasMore": False}}


def hint(ctx: Context) -> Members:
    """The caching hints, which lists have since 2026-07-28."""
    return HINT if ctx.revision == MODERN else {}


def listed(kind: str) -> list[Members]:
    """Those that have a description."""
    named = ({"name": name, **entry} for name, entry in METHODS[kind].items() if "description" in entry)
    return [{member: value for member, value in entry.items() if member != "steps"} for entry in named]


async def perform(kind: str, params: Members, ctx: Context) -> Members | InputRequired:
    """Takes the steps of a tool or prompt until one answers."""
    entry = METHODS[kind].get(params.get("name", ""))
    if entry is None:
        raise CustomError(-32602, f"Unknown: {params.get('name')}")
    inputs = {key: dict(response.value) for key, response in ctx.inputs.items()}
    scope: Members = {"arguments": params.get("arguments") or {}, "meta": dict(ctx.meta or {})}
    scope |= {"inputs": inputs, "state": ctx.state}
    for step in entry["steps"]:
        if holds(step.get("when", {}), scope):
            answer = await take(step, scope, ctx)
            if answer is not None:
                return answer
    raise CustomError(-32603, "no step has answered")


def holds(when: Members, scope: Members) -> bool:
    """Whether a step is to be taken."""
    declared = scope["meta"].get(CAPABILITIES, {})
    has_inputs = all(key in scope["inputs"] for key in when.get("inputs", ()))
    return (
        has_inputs
        and scope["state"] == when.get("state", scope["state"])
        and {*when.get("declared", ())} <= {*declared}
    )


async def take(step: Members, scope: Members, ctx: Context) -> Members | InputRequired | None:
    """What a step answers, if it does."""
    match step:
        case {"log": line}:
            ctx.log.info(line)
        case {"progress": [done, total, *message]}:
            ctx.progress(done, total, *message)
        case {"wait": milliseconds}:
            await asyncio.sleep(milliseconds / 1000)
        case {"notify": lists}:
            server.notify_list_changed(lists)
        case {"ask": [method, params]}:
            try:
                scope["result"] = dict(await ctx.ask(method, filled(params, scope)))
            except AskFailedError as error:
                return {"content": [{"type": "text", "text": str(error)}]}
        case {"require": asks}:
            requests = {key: asked(ask) for key, ask in asks.items()}
            return InputRequired(requests, state=filled(step.get("state"), scope))
        case {"answer": result}:
            return dict(filled(result, scope))
    return None


def asked(ask: Members) -> Elicit | Sample | ListRoots:
    match ask:
        case {"form": form}:
            return Elicit(form["message"], form["schema"])
        case {"sampling": params}:
            return Sample(params)
    return ListRoots()


def filled(value: Any, scope: Members) -> Any:
    """`value`, its `{path.to.member}` filled in: texts as they are, anything else as JSON."""
    match value:
        case dict():
            return {name: filled(member, scope) for name, member in value.items()}
        case list():
            return [filled(item, scope) for item in value]
        case str():
            return re.sub(r"\{([\w.]+)\}", lambda found: text(found[1].split("."), scope), value)
    return value


def text(path: list[str], scope: Any) -> str:
    for name in path:
        scope = scope.get(name) if isinstance(scope, dict) else None
    return scope if isinstance(scope, str) else json.dumps(scope)


for entry in METHODS["resources"]:
    about = Resource(entry["uri"], name=entry["name"], description=entry["description"], mime_type=entry["mimeType"])
    if "text" in entry:
        server.add_resource(about, text=entry["text"])
    else:
        server.add_resource(about, bytes=base64.b64decode(entry["blob"]))


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> Members:
    """One of many."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


if __name__ == "__main__":
    if sys.argv[1:2] != ["--http"] or len(sys.argv) != 3:
        sys.exit("usage: server.py --http PORT")
    server.run("http", port=int(sys.argv[2]), polling=(200, 100))
