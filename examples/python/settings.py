"""Keys of a configuration file, and variables of the environment: no function is written, and secrets are masked.

config:///app          what is allowed of the file, as JSON
config:///app/{+key}   one key, such as config:///app/server/port; completes the keys, is watched
env:///{name}          one variable
"""

import sys
from pathlib import Path

from mcp_resources import ResourceServer, providers

FILE = Path(__file__).resolve().parent.parent / "data" / "app.json"

server = ResourceServer("settings", version="1.0.0")
server.mount(
    providers.config({"app": sys.argv[1] if len(sys.argv) > 1 else FILE}, allow=["server", "server/*", "theme/**"]),
    providers.env(allow=["TZ", "APP_*"]),
)

if __name__ == "__main__":
    server.run()
