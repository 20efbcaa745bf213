"""W14: FastMCP as a proxy of the servers in a file: `fastmcp_proxy.py FILE [--http PORT]`."""

import json
import sys
from pathlib import Path

from fastmcp.server import create_proxy

config = json.loads(Path(sys.argv[1]).read_text())
for entry in config["mcpServers"].values():
    # Keys of our gateway.
    entry.pop("resources")
    entry.pop("prefix", None)
proxy = create_proxy(config, name="bench")
if len(sys.argv) > 2:
    proxy.run("http", host="127.0.0.1", port=int(sys.argv[3]), show_banner=False, log_level="warning")
else:
    proxy.run("stdio", show_banner=False, log_level="warning")
