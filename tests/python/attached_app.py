"""An application of the official SDK or of FastMCP, to which a `ResourceServer` is attached.

As a script: `attached_app.py KIND HOW [PORT]` serves it, on pipes or over HTTP, where HOW is `resources` for
`resources.run()`, `app` for `app.run()`, and `plain` for the application alone. As a module for the commands of the
SDKs: the environment variable `ATTACHED_KIND` names the kind, and `app` is the application.
"""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal, get_args

from mcp_resources import Context, ResourceServer

Kind = Literal["mcp", "fastmcp"]
KINDS: tuple[Kind, ...] = get_args(Kind)

ROWS = {"7": "tea"}


def made(kind: Kind, **options: Any) -> Any:
    """The application alone, as its author wrote it."""
    if kind == "mcp":
        from mcp.server.mcpserver import Context as TheirContext
        from mcp.server.mcpserver import MCPServer

        app: Any = MCPServer("shop", version="1.2.3", instructions="Be nice.", lifespan=lifespan, **options)
    else:
        from fastmcp import Context as TheirContext
        from fastmcp import FastMCP

        app = FastMCP("shop", version="1.2.3", instructions="Be nice.", lifespan=lifespan, **options)

    @app.tool()
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    @app.tool()
    async def steps(n: int, ctx: TheirContext) -> str:
        for step in range(n):
            await ctx.report_progress(step + 1, n)
        await ctx.info("almost") if kind == "fastmcp" else await ctx.session.send_log_message("info", "almost")
        return "done"

    @app.tool()
    def burn() -> str:
        raise ValueError("it burns")

    @app.tool()
    async def rename(id: str, name: str, ctx: TheirContext) -> str:
        """Changes a row, and tells so by the means of the SDK."""
        ROWS[id] = name
        await ctx.session.send_resource_updated(f"shop://row/{id}")
        return "renamed"

    @app.tool()
    async def confirm(ctx: TheirContext) -> str:
        """Tells a change, and asks the client."""
        await ctx.session.send_resource_updated("shop://row/7")
        answer = await ctx.session.elicit_form("Sure?", {"type": "object", "properties": {}})
        return str(answer.action)

    add_resources(app)
    return app


def add_resources(app: Any) -> None:
    """A prompt, and the resources of the application itself."""

    @app.prompt()
    def greet(name: str) -> str:
        return f"Greet {name}."

    @app.resource("own://note")
    def note() -> str:
        return "their note"

    @app.resource("own://item/{id}")
    def item(id: str) -> str:
        return f"their item {id}"

    @app.resource("own://broken")
    def broken() -> str:
        raise RuntimeError("secret")


@asynccontextmanager
async def lifespan(_: Any) -> AsyncIterator[dict[str, str]]:
    yield {"who": "the application"}


def resources_of_ours(**options: Any) -> ResourceServer:
    """Our resources, not attached yet."""
    resources = ResourceServer("ours", version="9", **options)

    @resources.resource("shop://static")
    def static() -> str:
        return "ours"

    @resources.resource("shop://who")
    def who(ctx: Context) -> str:
        return ctx.principal

    @resources.resource("shop://row/{id}")
    def row(id: str) -> dict[str, str]:
        return {"name": ROWS[id]}

    @row.complete("id")
    def ids(value: str) -> list[str]:
        return sorted(ROWS)

    return resources


def attached(kind: Kind, *, adopt: bool = True, **options: Any) -> tuple[Any, ResourceServer]:
    """The application, with our resources: two lines."""
    app = made(kind)
    resources = resources_of_ours(**options)
    resources.attach(app, adopt=adopt)
    return app, resources


def main(kind: Any, how: str, port: str = "") -> None:
    app, resources = (made(kind), None) if how == "plain" else attached(kind)
    if how == "resources":
        assert resources is not None
        resources.run("http", port=int(port)) if port else resources.run()
    elif port:
        app.run("streamable-http", port=int(port))
    else:
        app.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
elif "ATTACHED_KIND" in os.environ:
    chosen: Any = os.environ["ATTACHED_KIND"]
    app, resources = attached(chosen)
