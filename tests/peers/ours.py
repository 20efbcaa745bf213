"""The fixture of the peers on this package."""

import asyncio
import sys
from typing import Any
from urllib.parse import urlsplit

from mcp_resources import Resource, ResourceServer

WORDS = ("alpha", "beta", "gamma")
count = 0
server = ResourceServer("peer", version="1.0.0", limits={"page": 100})
server.add_resource(Resource("peer://static", name="static", mime_type="text/plain"), text="static text")


@server.resource("peer://blob", name="blob", mime_type="application/octet-stream")
def blob() -> bytes:
    return bytes(range(256))


@server.resource("peer://json", name="json", mime_type="application/json")
def json() -> dict[str, Any]:
    return {"a": 1, "b": [True, None]}


@server.resource("peer://counter", name="counter", mime_type="text/plain")
def counter() -> str:
    return str(count)


@server.resource("peer://touch", name="touch", mime_type="text/plain")
def touch() -> str:
    global count
    count += 1
    server.notify_updated("peer://counter")
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


@item.complete("id")
def ids(value: str) -> list[str]:
    return [word for word in WORDS if word.startswith(value)]


for number in range(250):
    about = Resource(f"peer://r/{number}", name=f"r-{number}", mime_type="text/plain")
    server.add_resource(about, text=f"resource {number}")


def started(url: str) -> None:
    """Says which port it is."""
    print("listening", urlsplit(url).port, flush=True)


if sys.argv[1] == "http":
    asyncio.run(server.serve_http(port=int(sys.argv[2]), started=started))
else:
    server.run()
