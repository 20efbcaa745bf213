"""The server of the client's tests. As a program: `shop.py stdio`, or `shop.py http`, which prints its URL first."""

import asyncio
import os
import re
import sys

from mcp_resources import (
    Completion,
    Contents,
    Context,
    Elicit,
    InputRequired,
    Limits,
    Resource,
    ResourceServer,
)

MODERN = "2026-07-28"
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def shop() -> ResourceServer:
    """Three entries on a page; what changes, comes, goes and asks does so when a certain resource is read."""
    server = ResourceServer("shop", version="1", limits=Limits(page=3, coalesce=0, progress_interval=0), metrics=True)
    state = {"count": 1}
    for number in range(7):
        server.add_resource(Resource(f"shop://secret/{number}", title=f"Secret {number}"), text="secret")
    server.add_resource(Resource("shop://logo", mime_type="image/png"), bytes=b"\x89PNG\0")
    server.add_resource(Resource("file:///project/config.json"), text="{}")
    server.add_resource(Resource("file:///project/src/a.ts"), text="a")

    @server.resource("shop://both")
    def both() -> list[Contents]:
        return [Contents("a", uri="shop://both/a", meta={"n": 1}), Contents(b"b", uri="shop://both/b")]

    @server.resource("shop://listed/{id}")
    async def listed(id: str) -> str:
        return id

    @listed.list
    async def all_listed(ctx: Context) -> list[Resource]:
        ctx.progress(1, None, "listing")
        return [Resource("shop://listed/1")]

    @server.resource("shop://item/{id}", description="An item", mime_type="text/plain")
    async def item(id: str) -> str:
        return f"item {id}"

    @item.complete("id")
    def ids(value: str) -> Completion:
        return Completion([id for id in ("alpha", "beta") if id.startswith(value)], total=5)

    _counter(server, state)
    _slow(server)
    _curious(server)
    return server


def _counter(server: ResourceServer, state: dict[str, int]) -> None:
    async def counter() -> str:
        return str(state["count"])

    server.add_resource(Resource("shop://counter"), read=counter)

    @server.resource("shop://set/{count}")
    async def change(count: int) -> str:
        state["count"] = count
        server.notify_updated("shop://counter")
        return "set"

    @server.resource("shop://drop")
    async def drop() -> str:
        server.remove_resource("shop://counter")
        return "dropped"

    @server.resource("shop://restore")
    async def restore() -> str:
        server.add_resource(Resource("shop://counter"), read=counter)
        return "restored"

    @server.resource("shop://watched")
    async def watched() -> str:
        found = re.search(r"^mcp_resources_watched_uris (\d+)$", server.metrics_text() or "", re.MULTILINE)
        assert found is not None
        return found[1]

    @server.resource("shop://process")
    async def process() -> str:
        return str(os.getpid())


def _slow(server: ResourceServer) -> None:
    begun: list[str] = []
    cancelled: list[str] = []

    @server.resource("shop://slow/{id}")
    async def slow(id: str) -> str:
        begun.append(id)
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.append(id)
        return "slow"

    @server.resource("shop://begun")
    async def what_has_begun() -> str:
        return ",".join(begun)

    @server.resource("shop://cancelled")
    async def what_was_cancelled() -> str:
        return ",".join(cancelled)

    @server.resource("shop://steps")
    async def steps(ctx: Context) -> str:
        for step in range(3):
            ctx.progress(step, 3, f"step {step}")
        return "done"


def _curious(server: ResourceServer) -> None:
    @server.resource("shop://greeting")
    async def greeting(ctx: Context) -> str | InputRequired:
        if ctx.revision != MODERN:
            asked = {"message": "Your name?", "requestedSchema": FORM}
            answer = await ctx.ask("elicitation/create", asked)
            return f"Hello, {answer['content']['name']}"
        if "name" not in ctx.inputs:
            return InputRequired({"name": Elicit("Your name?", FORM)})
        return f"Hello, {ctx.inputs['name'].content['name']}"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        shop().run()
    else:
        asyncio.run(shop().serve_http(port=0, started=lambda url: print(url, flush=True)))
