"""A table in SQLite on FastMCP (`fastmcp`), as its documentation would have it written: `fastmcp_database.py FILE`."""

import json
import sqlite3
import sys

from fastmcp import FastMCP

server = FastMCP("shop")
shop = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, check_same_thread=False)
shop.row_factory = sqlite3.Row


@server.resource("db:///shop/items{?after,rows}", mime_type="application/json")
def items(after: int = 0, rows: int = 100) -> str:
    found = shop.execute("SELECT * FROM items WHERE id > ? ORDER BY id LIMIT ?", (after, rows)).fetchall()
    page: dict[str, object] = {"rows": [dict(row) for row in found]}
    if len(found) == rows:
        page["next"] = f"db:///shop/items?after={found[-1]['id']}&rows={rows}"
    return json.dumps(page)


server.run(show_banner=False)
