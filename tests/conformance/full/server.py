"""The second fixture server: resources, and the tools and prompts that the official suite knows by name.

It shows that tools, prompts, progress, logs, rounds of input and questions to the client hold under the whole suite.
What it has stands in `methods.json`, for every language; here is how that is done.
"""

import asyncio
import base64
import json
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mcp_resources import (
    AskFailedError,
    CacheHint,
    Context,
    CustomError,
    Elicit,
    InputRequired,
    ListRoots,
    MethodResult,
    Resource,
    ResourceServer,
    Sample,
)

Members = dict[str, Any]
METHODS: Members = json.loads(Path(__file__).with_name("methods.json").read_text("utf-8"))
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"

server = ResourceServer("conformance-full", version="1.0.0", logging=True, list_cache=CacheHint(60_000, "public"))


def performing(kind: str, name: str) -> Callable[..., Awaitable[MethodResult | InputRequired]]:
    """The function of a tool or prompt: takes its steps."""

    async def call(arguments: Members, ctx: Context) -> MethodResult | InputRequired:
        answer = await perform(METHODS[kind][name]["steps"], arguments, ctx)
        return answer if isinstance(answer, InputRequired) else MethodResult(answer)

    return call


async def perform(steps: list[Members], arguments: Members, ctx: Context) -> Members | InputRequired:
    """Takes the steps of a tool or prompt until one answers."""
    inputs = {key: dict(response.value) for key, response in ctx.inputs.items()}
    scope: Members = {"arguments": arguments, "meta": dict(ctx.meta or {})}
    scope |= {"inputs": inputs, "state": ctx.state}
    for step in steps:
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


def no_values(value: str) -> list[str]:
    """Completes an argument with nothing."""
    return []


for name, entry in METHODS["tools"].items():
    function = performing("tools", name)
    server.add_tool(function, name, description=entry["description"], input_schema=entry["inputSchema"])

for name, entry in METHODS["prompts"].items():
    arguments = entry.get("arguments", [])
    prompt = server.add_prompt(performing("prompts", name), name, description=entry["description"], arguments=arguments)
    for argument in arguments:
        prompt.complete(argument["name"])(no_values)

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
