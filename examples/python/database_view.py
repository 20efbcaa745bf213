"""A database view: what a query returns, as JSON.

db://analytics/daily_summary        one row for each day
db://analytics/daily_summary/{day}  one day; listed, and completes the days that exist
"""

import sqlite3
from pathlib import Path
from typing import Any

from mcp_resources import Resource, ResourceNotFoundError, ResourceServer

SCRIPT = Path(__file__).resolve().parent.parent / "data" / "analytics.sql"
SUMMARY = "SELECT day, count(*) AS orders, round(sum(revenue), 2) AS revenue FROM orders"
URI = "db://analytics/daily_summary"

server = ResourceServer("analytics", version="1.0.0")
database = sqlite3.connect(":memory:", check_same_thread=False)  # handlers run on worker threads
database.row_factory = sqlite3.Row
database.executescript(SCRIPT.read_text("utf-8"))


@server.resource(URI, mime_type="application/json")
def daily_summary() -> list[dict[str, Any]]:
    """Orders and revenue of each day."""
    return [dict(row) for row in database.execute(f"{SUMMARY} GROUP BY day ORDER BY day")]


@server.resource(URI + "/{day}", mime_type="application/json")
def day_summary(day: str) -> dict[str, Any]:
    """Orders and revenue of one day."""
    row = database.execute(f"{SUMMARY} WHERE day = ? GROUP BY day", [day]).fetchone()
    if row is None:
        raise ResourceNotFoundError
    return dict(row)


@day_summary.complete("day")
def days(value: str) -> list[str]:
    return [row["day"] for row in daily_summary() if row["day"].startswith(value)]


@day_summary.list
def all_days() -> list[Resource]:
    return [Resource(f"{URI}/{day}", name=day) for day in days("")]


if __name__ == "__main__":
    server.run()
