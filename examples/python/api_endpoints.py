"""An HTTP API as declared endpoints: no function is written.

api:///directory/user/{+id}   a user of the API; is polled while it is watched

python examples/python/api_endpoints.py http://127.0.0.1:8080
"""

import sys

from mcp_resources import ResourceServer, providers

BASE = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"

server = ResourceServer("api", version="1.0.0")
# The API is on this machine; others need no `private_networks`.
server.mount(providers.api({"directory": {"endpoints": {"user": f"{BASE}/users/{{id}}"}}}, private_networks=True))

if __name__ == "__main__":
    server.run()
