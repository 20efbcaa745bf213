"""The fixture of the peers on the official Python SDK's low-level `Server`: pages, and subscriptions in both eras."""

import base64
import sys
from typing import Any, TypeAlias

import anyio
import mcp_types as types
from listening import serve
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

Asked: TypeAlias = ServerRequestContext[Any]

COUNTER = "peer://counter"
PAGE = 100
PLAIN = "text/plain"
WORDS = ("alpha", "beta", "gamma")
FIXED = {
    "static": PLAIN,
    "blob": "application/octet-stream",
    "json": "application/json",
    "counter": PLAIN,
    "touch": PLAIN,
    "slow": PLAIN,
}
LISTED = [types.Resource(uri=f"peer://{name}", name=name, mime_type=mime_type) for name, mime_type in FIXED.items()]
LISTED += [types.Resource(uri=f"peer://r/{n}", name=f"r-{n}", mime_type=PLAIN) for n in range(250)]
BLOB = base64.b64encode(bytes(range(256))).decode()
TEXTS = {resource.uri: f"resource {resource.uri[9:]}" for resource in LISTED if resource.uri.startswith("peer://r/")}

bus = InMemorySubscriptionBus()
watchers: list[ServerSession] = []
count = 0


async def list_resources(ctx: Asked, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    start = int((params and params.cursor) or 0)
    end = start + PAGE
    return types.ListResourcesResult(resources=LISTED[start:end], next_cursor=str(end) if end < len(LISTED) else None)


async def list_templates(ctx: Asked, params: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
    item = types.ResourceTemplate(uri_template="peer://item/{id}", name="item", mime_type=PLAIN)
    return types.ListResourceTemplatesResult(resource_templates=[item])


async def read(ctx: Asked, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = params.uri
    if uri == "peer://blob":
        blob = types.BlobResourceContents(uri=uri, mime_type=FIXED["blob"], blob=BLOB)
        return types.ReadResourceResult(contents=[blob])
    mime_type = FIXED.get(uri.removeprefix("peer://"), PLAIN)
    contents = types.TextResourceContents(uri=uri, mime_type=mime_type, text=await text(uri))
    return types.ReadResourceResult(contents=[contents])


async def text(uri: str) -> str:
    global count
    match uri.removeprefix("peer://").partition("/"):
        case "static", "", _:
            return "static text"
        case "json", "", _:
            return '{"a":1,"b":[true,null]}'
        case "counter", "", _:
            return str(count)
        case "touch", "", _:
            await touch()
            return "touched"
        case "slow", "", _:
            count += 1
            await anyio.sleep(30)
            return "slow"
        case "item", _, id:
            return f"item {id}"
    if uri in TEXTS:
        return TEXTS[uri]
    raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown resource: {uri}", data={"uri": uri})


async def touch() -> None:
    global count
    count += 1
    await bus.publish(ResourceUpdated(uri=COUNTER))
    for session in watchers:
        await session.send_resource_updated(COUNTER)


async def subscribe(ctx: Asked, params: types.SubscribeRequestParams) -> types.EmptyResult:
    if params.uri == COUNTER:
        watchers.append(ctx.session)
    return types.EmptyResult()


async def unsubscribe(ctx: Asked, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    watchers.clear()
    return types.EmptyResult()


async def complete(ctx: Asked, params: types.CompleteRequestParams) -> types.CompleteResult:
    values = [word for word in WORDS if word.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values))


server: Server[Any] = Server(
    "peer",
    version="1.0.0",
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=unsubscribe,
    on_subscriptions_listen=ListenHandler(bus),
    on_completion=complete,
)


async def on_pipes() -> None:
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if sys.argv[1] == "http":
    serve(server.streamable_http_app(), int(sys.argv[2]))
else:
    anyio.run(on_pipes)
