"""A cache of results: what takes long is computed once for all who ask, and kept for ten minutes.

analyze:///{topic}             computes the analysis of a topic, unless it is kept, and says where it is
wallbounce:///{analysisId}     an analysis that is kept; is listed, and watched
wallbounce:///                 all that are kept
"""

import asyncio

from mcp_resources import ResourceServer, providers

server = ResourceServer("results", version="1.0.0")
results = providers.results(scheme="wallbounce", ttl="10min")
server.mount(results)


@server.resource("analyze:///{topic}")
async def analyze(topic: str) -> str:
    async def compute() -> str:
        await asyncio.sleep(0.2)  # what takes long
        return f"{len(topic)} letters"

    await results.get_or_compute(topic, compute)
    return f"wallbounce:///{topic}"


if __name__ == "__main__":
    server.run()
