"""A client of the benchmark on `mcp_resources`."""

import asyncio

from load import Load
from mcp_resources import Client


async def main() -> None:
    load = Load()
    async with Client(load.server, revision=load.revision) as client:
        await load.measure(client.read)


asyncio.run(main())
