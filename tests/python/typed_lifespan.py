"""The types of `Context`, for mypy: `Context[State]` says what `lifespan` is. Nothing here runs by itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, assert_type

from mcp_resources import Context, ResourceServer


class Pool:
    """What handlers share."""

    def fetch(self, id: int) -> str:
        return f"row {id}"


@asynccontextmanager
async def lifespan(server: ResourceServer) -> AsyncIterator[Pool]:
    yield Pool()


server = ResourceServer("typed", lifespan=lifespan)


@server.resource("row://{id}")
def row(id: int, ctx: Context[Pool]) -> str:
    assert_type(ctx.lifespan, Pool)
    return ctx.lifespan.fetch(id)


@row.complete("id")
def complete(value: str, ctx: "Context[Pool] | None" = None) -> list[str]:
    return [] if ctx is None else [ctx.lifespan.fetch(1)]


@server.tool
async def first(request: Context[Pool]) -> str:
    return request.lifespan.fetch(1)


def mistaken(ctx: Context[Pool]) -> object:
    return ctx.lifespan.fetsh(7)  # type: ignore[attr-defined]


def plain(ctx: Context) -> None:
    assert_type(ctx.lifespan, Any)


def narrows(ctx: Context[Pool]) -> Context[object]:
    return ctx
