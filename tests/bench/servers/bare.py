"""A Python that has started its event loop and waits: what the interpreter alone costs."""

import asyncio
import sys


async def main() -> None:
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())
