"""The fixture of the peers on FastMCP (`fastmcp`), as its documentation would have it written.

FastMCP has no subscriptions in either era.
"""

import asyncio
import sys
from typing import Any

from fastmcp import FastMCP
from listening import serve

WORDS = ("alpha", "beta", "gamma")
count = 0
server: FastMCP[Any] = FastMCP("peer", version="1.0.0", list_page_size=100)


@server.resource("peer://static", name="static", mime_type="text/plain")
def static() -> str:
    return "static text"


@server.resource("peer://blob", name="blob", mime_type="application/octet-stream")
def blob() -> bytes:
    return bytes(range(256))


@server.resource("peer://json", name="json", mime_type="application/json")
def json() -> str:
    return '{"a":1,"b":[true,null]}'


@server.resource("peer://counter", name="counter", mime_type="text/plain")
def counter() -> str:
    return str(count)


@server.resource("peer://touch", name="touch", mime_type="text/plain")
def touch() -> str:
    global count
    count += 1
    return "touched"


@server.resource("peer://slow", name="slow", mime_type="text/plain")
async def slow() -> str:
    global count
    count += 1
    await asyncio.sleep(30)
    return "slow"


@server.resource("peer://item/{id}", name="item", mime_type="text/plain")
def item(id: str) -> str:
    return f"item {id}"


@server.completion
def complete(ref: Any, argument: Any, context: Any) -> list[str]:
    return [word for word in WORDS if word.startswith(argument.value)]


def listed(number: int) -> None:
    @server.resource(f"peer://r/{number}", name=f"r-{number}", mime_type="text/plain")
    def resource() -> str:
        return f"resource {number}"


for number in range(250):
    listed(number)

if sys.argv[1] == "http":
    serve(server.http_app(), int(sys.argv[2]))
else:
    server.run(show_banner=False)
