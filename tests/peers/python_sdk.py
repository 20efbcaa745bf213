"""The fixture of the peers on the official Python SDK's `MCPServer`, as its documentation would have it written."""

import sys
from typing import Any

import anyio
from listening import serve
from mcp.server.mcpserver import MCPServer
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp_types import Completion

WORDS = ("alpha", "beta", "gamma")
count = 0
bus = InMemorySubscriptionBus()
server = MCPServer("peer", version="1.0.0", log_level="WARNING", subscriptions=bus)


@server.resource("peer://static", name="static", mime_type="text/plain")
def static() -> str:
    return "static text"


@server.resource("peer://blob", name="blob", mime_type="application/octet-stream")
def blob() -> bytes:
    return bytes(range(256))


@server.resource("peer://json", name="json", mime_type="application/json")
def json() -> dict[str, Any]:
    return {"a": 1, "b": [True, None]}


@server.resource("peer://counter", name="counter", mime_type="text/plain")
def counter() -> str:
    return str(count)


# A resource without variables is given no context, so the bus that the context would publish on is kept here.
@server.resource("peer://touch", name="touch", mime_type="text/plain")
async def touch() -> str:
    global count
    count += 1
    await bus.publish(ResourceUpdated(uri="peer://counter"))
    return "touched"


@server.resource("peer://slow", name="slow", mime_type="text/plain")
async def slow() -> str:
    global count
    count += 1
    await anyio.sleep(30)
    return "slow"


@server.resource("peer://item/{id}", name="item", mime_type="text/plain")
def item(id: str) -> str:
    return f"item {id}"


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> Completion:
    return Completion(values=[word for word in WORDS if word.startswith(argument.value)])


def listed(number: int) -> None:
    @server.resource(f"peer://r/{number}", name=f"r-{number}", mime_type="text/plain")
    def resource() -> str:
        return f"resource {number}"


for number in range(250):
    listed(number)

if sys.argv[1] == "http":
    serve(server.streamable_http_app(), int(sys.argv[2]))
else:
    server.run()
