"""A server of the official SDK with a tool, a prompt, a lifespan and tokens. Two lines add resources to it.

It serves stdio or, with a port as the argument, HTTP with the tokens `ada` and `bob`; bob may not see the second order.
"""

import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
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


class Tokens:
    """Knows two tokens, which are also the names of their owners."""

    async def verify_token(self, token: str) -> AccessToken | None:
        """The owner of a token."""
        known = AccessToken(token=token, client_id="example", subject=token, scopes=[])
        return known if token in {"ada", "bob"} else None


port = int(sys.argv[1]) if len(sys.argv) > 1 else None
if port is None:
    app = MCPServer("shop", lifespan=lifespan)
else:
    url = f"http://127.0.0.1:{port}"
    auth = AuthSettings(issuer_url=url, resource_server_url=f"{url}/mcp")  # type: ignore[arg-type]
    app = MCPServer("shop", lifespan=lifespan, token_verifier=Tokens(), auth=auth)


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
    app.run()
else:
    app.run("streamable-http", port=port)
