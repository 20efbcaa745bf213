"""A configuration file on FastMCP (`fastmcp`), as its documentation would have it written: `fastmcp_settings.py FILE`.

Each read takes the file as it is then; only what stands in `ALLOWED` is served.
"""

import json
import sys
from pathlib import Path

from fastmcp import FastMCP

ALLOWED = ("server",)

file = Path(sys.argv[1])
server = FastMCP("settings")


@server.resource("config:///demo/{key*}", mime_type="application/json")
def key(key: str) -> str:
    found = json.loads(file.read_text("utf-8"))
    first, *rest = key.split("/")
    if first not in ALLOWED:
        raise ValueError("no such key")
    for name in (first, *rest):
        found = found[name]
    return json.dumps(found)


server.run(show_banner=False)
