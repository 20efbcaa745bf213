"""The benchmark's fixture server in Python (tests/bench/README.md)."""

import os
import sys
from pathlib import Path

from mcp_resources import Limits, Resource, ResourceServer

MIB = 1 << 20
STATIC = (Path(__file__).parent / "static.txt").read_text("utf-8")
LINE = "resource contents 1\n"
TEXT = (LINE * (MIB // len(LINE) + 1))[:MIB]
BLOB = bytes((167 * i + 13) % 256 for i in range(256)) * (MIB // 256)

limits = Limits(page=1000, templates=100_000, sessions=20_000)
limits["sessions_per_client"] = limits["connections_per_client"] = 20_000
server = ResourceServer("bench-python", version="1.0.0", limits=limits)


@server.resource("bench://static", mime_type="text/plain")
def static() -> str:
    return STATIC


@server.resource("bench://inline", mime_type="text/plain", inline=True)
def inline() -> str:
    return STATIC


@server.resource("bench://item/{id}", mime_type="text/plain")
def item(id: str) -> str:
    return f"item {id}"


@server.resource("bench://iitem/{id}", mime_type="text/plain", inline=True)
def inline_item(id: str) -> str:
    return f"item {id}"


@server.resource("bench://aitem/{id}", mime_type="text/plain")
async def async_item(id: str) -> str:
    return f"item {id}"


@server.resource("bench://text1m", mime_type="text/plain")
def text() -> str:
    return TEXT


@server.resource("bench://blob1m", mime_type="application/octet-stream")
def blob() -> bytes:
    return BLOB


@server.resource("bench://sub/{n}", mime_type="text/plain")
def sub(n: str) -> str:
    return n


@server.resource("bench://touch/{n}", mime_type="text/plain", inline=True)
def touch(n: str) -> str:
    server.notify_updated(f"bench://sub/{n}")
    return "ok"


def pair(a: str, b: str) -> str:
    return f"{a} {b}"


def echo(text: str) -> str:
    """Returns a text."""
    return text


if "TOOLS" in os.environ:
    server.add_tool(echo)
    for number in range(int(os.environ["TOOLS"])):
        server.add_tool(echo, f"t{number}")

server.add_resource(Resource("bench://const", mime_type="text/plain"), text=STATIC)
with server.batch():
    for number in range(int(os.environ.get("STATIC", "1000"))):
        server.add_resource(Resource(f"bench://r/{number}", mime_type="text/plain"), text=f"r {number}")
    for number in range(int(os.environ.get("TEMPLATES", "0"))):
        server.resource(f"bench://t{number}/{{a}}/{{b}}", mime_type="text/plain")(pair)

if __name__ == "__main__":
    if sys.argv[1] == "--http":
        server.run("http", port=int(sys.argv[2]))
    else:
        server.run()
