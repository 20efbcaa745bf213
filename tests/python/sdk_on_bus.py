"""A process of a server of the official SDK on a bus, for `test_bus_languages.py`. Arguments: port, URL of the bus.

It announces each URI of its input as changed.
"""

import asyncio
import sys
import threading

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.subscriptions import ResourceUpdated
from mcp_resources import SubscriptionBus

PORT, URL = int(sys.argv[1]), sys.argv[2]
bus = SubscriptionBus(URL, name="notes", keys=[b"0f1e2d3c4b5a69788796a5b4c3d2e1f0"])
server = MCPServer("notes", log_level="WARNING", subscriptions=bus)


@server.resource("note://{id}")
def note(id: str) -> str:
    return id


def obey(loop: asyncio.AbstractEventLoop) -> None:
    for line in sys.stdin:
        asyncio.run_coroutine_threadsafe(bus.publish(ResourceUpdated(line.strip())), loop).result()


async def main() -> None:
    threading.Thread(target=obey, args=(asyncio.get_running_loop(),), daemon=True).start()
    config = uvicorn.Config(server.streamable_http_app(), port=PORT, log_level="warning")
    await uvicorn.Server(config).serve()


if __name__ == "__main__":
    asyncio.run(main())
