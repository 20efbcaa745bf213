"""A client of the benchmark on the official Python SDK."""

import asyncio

from load import Load
from mcp import Client
from mcp.client.stdio import StdioServerParameters


async def main() -> None:
    load = Load()
    program, *arguments = load.server
    mode = load.revision if load.revision >= "2026" else "legacy"
    async with Client(StdioServerParameters(command=program, args=arguments), mode=mode) as client:

        async def read(uri: str) -> str:
            return (await client.read_resource(uri)).contents[0].text

        await load.measure(read)


asyncio.run(main())
