"""A configuration file: the whole of it, and each section by name.

config://app            the file, as JSON
config://app/{section}  one section; completes the names that exist
"""

import json
from pathlib import Path
from typing import Any

from mcp_resources import ResourceNotFoundError, ResourceServer

FILE = Path(__file__).resolve().parent.parent / "data" / "app.json"

server = ResourceServer("config", version="1.0.0")


@server.resource("config://app", mime_type="application/json")
def app() -> dict[str, Any]:
    """The application's configuration."""
    return dict(json.loads(FILE.read_text("utf-8")))


@server.resource("config://app/{section}", mime_type="application/json")
def section(section: str) -> dict[str, Any]:
    """One section of it."""
    try:
        return dict(app()[section])
    except KeyError:
        raise ResourceNotFoundError from None


@section.complete("section")
def sections(value: str) -> list[str]:
    return [name for name in app() if name.startswith(value)]


if __name__ == "__main__":
    server.run()
