"""Answers of an HTTP API, under a scheme of our own, so that clients ask this server and not the API.

api://users/{id}  GET <base>/users/<id>

    python examples/python/http_api.py http://127.0.0.1:8080      (or API_BASE_URL in the environment)
"""

import os
import sys
from urllib.error import HTTPError
from urllib.request import urlopen

from mcp_resources import ResourceNotFoundError, ResourceServer

BASE = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("API_BASE_URL", "http://127.0.0.1:8080")

server = ResourceServer("api", version="1.0.0")


@server.resource("api://users/{id}", mime_type="application/json", ttl_ms=5_000)
def user(id: int) -> str:
    """A user of the API."""
    try:
        with urlopen(f"{BASE}/users/{id}", timeout=5) as response:
            return str(response.read(), "utf-8")
    except HTTPError as error:
        if error.code == 404:
            raise ResourceNotFoundError from None
        raise  # logged here; the client hears that the read failed, and no more


if __name__ == "__main__":
    server.run()
