"""A server of FastMCP with a tool, a prompt, a lifespan and tokens. Two lines add resources to it.

It serves stdio or, with a port as the argument, HTTP with the tokens `ada` and `bob`; bob may not see the second order.
"""

import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastmcp import FastMCP
from fastmcp.server.auth.providers.jwt import StaticTokenVerifier
from mcp_resources import Policy, ResourceNotFoundError, ResourceServer

ROWS = [("1", "tea"), ("2", "mate")]
database = sqlite3.connect(":memory:", check_same_thread=False)


@asynccontextmanager
async def lifespan(_: object) -> AsyncIterator[None]:
    """Fills the database before the first request."""
    with database:
        database.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, name TEXT)")
        database.executemany("INSERT OR IGNORE INTO orders VALUES (?, ?)", ROWS)
    yield


TOKENS: dict[str, dict[str, object]] = {name: {"client_id": name, "scopes": []} for name in ("ada", "bob")}

port = int(sys.argv[1]) if len(sys.argv) > 1 else None
auth = None if port is None else StaticTokenVerifier(tokens=TOKENS)
app = FastMCP("shop", lifespan=lifespan, auth=auth)


@app.tool()
def rename(id: str, name: str) -> str:
    """Changes the name of an order."""
    with database:
        database.execute("UPDATE orders SET name = ? WHERE id = ?", (name, id))
    resources.notify_updated(f"shop://orders/{id}")
    return f"Order {id} is {name} now."


@app.prompt()
def recommend(taste: str) -> str:
    """Asks for a recommendation."""
    return f"Which of the orders is for somebody who likes {taste}?"


guard: Policy = {"principals": {"bob": {"deny": "shop://orders/2"}}}
resources = ResourceServer("shop", guard=guard).attach(app)


@resources.resource("shop://orders/{id}")
def order(id: str) -> dict[str, str]:
    found = database.execute("SELECT id, name FROM orders WHERE id = ?", (id,)).fetchone()
    if found is None:
        raise ResourceNotFoundError
    return dict(zip(("id", "name"), found, strict=True))


@order.list
def orders() -> list[str]:
    return [id for (id,) in database.execute("SELECT id FROM orders ORDER BY id")]


if port is None:
    app.run(show_banner=False)
else:
    app.run("http", port=port, show_banner=False)
