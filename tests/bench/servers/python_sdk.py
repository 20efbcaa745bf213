"""The fixture of the benchmark on the official Python SDK (`mcp`), as its documentation would have it written."""

import os
import sys
from pathlib import Path

from mcp.server.mcpserver import Context, MCPServer

TEXT = (Path(__file__).parent / "static.txt").read_text()
LARGE = 1 << 20
LARGE_TEXT = ("resource contents 1\n" * (LARGE // 20 + 1))[:LARGE]
LARGE_BLOB = bytes((at * 167 + 13) % 256 for at in range(256)) * (LARGE // 256)

server = MCPServer("bench", log_level="WARNING")


@server.resource("bench://static", mime_type="text/plain")
def static() -> str:
    return TEXT


def item(id: str) -> str:
    return f"item {id}"


if "ATTACH" in os.environ:
    from mcp_resources import ResourceServer

    resources = ResourceServer("bench").attach(server)
    resources.resource("bench://item/{id}", mime_type="text/plain")(item)
else:
    server.resource("bench://item/{id}", mime_type="text/plain")(item)


@server.resource("bench://aitem/{id}", mime_type="text/plain")
async def aitem(id: str) -> str:
    return f"item {id}"


@server.resource("bench://text1m", mime_type="text/plain")
def text1m() -> str:
    return LARGE_TEXT


@server.resource("bench://blob1m", mime_type="application/octet-stream")
def blob1m() -> bytes:
    return LARGE_BLOB


@server.resource("bench://sub/{n}", mime_type="text/plain")
def sub(n: str) -> str:
    return n


@server.resource("bench://touch/{n}", mime_type="text/plain")
async def touch(n: str, ctx: Context) -> str:
    await ctx.notify_resource_updated(f"bench://sub/{n}")
    return "ok"


def listed(number: int) -> None:
    @server.resource(f"bench://r/{number}", name=f"r-{number}", mime_type="text/plain")
    def resource() -> str:
        return f"resource {number}"


def template(number: int) -> None:
    @server.resource(f"bench://t{number}/{{a}}/{{b}}", name=f"t-{number}", mime_type="text/plain")
    def pair(a: str, b: str) -> str:
        return f"{a} {b}"


def echo(text: str) -> str:
    """Returns a text."""
    return text


if "TOOLS" in os.environ:
    server.tool()(echo)
    for number in range(int(os.environ["TOOLS"])):
        server.tool(name=f"t{number}")(echo)
for number in range(int(os.environ.get("STATIC", "1000"))):
    listed(number)
for number in range(int(os.environ.get("TEMPLATES", "0"))):
    template(number)

if sys.argv[1] == "--http":
    server.run("streamable-http", port=int(sys.argv[2]))
elif os.environ.get("ATTACH") == "run":
    resources.run()
else:
    server.run()
