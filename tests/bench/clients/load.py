"""What the clients in Python have in common: what they are told, the load, and what they print. See `../README.md`."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable

Read = Callable[[str], Awaitable[str]]
# Longest time of warming up, in seconds.
WARM = 3.0


class Load:
    """Reads through one client. The processor time is that of all threads of this process, user and system."""

    def __init__(self) -> None:
        self.revision, self.server = os.environ["REVISION"], sys.argv[1:]
        self._window, self._warm, self._requests = (int(os.environ[name]) for name in ("WINDOW", "WARM", "REQUESTS"))
        self._seconds = float(os.environ["SECONDS"])
        self._next = 1

    async def measure(self, read: Read) -> None:
        """Warms up, measures, and prints a line."""
        await self._pump(read, self._warm, WARM)
        cpu, wall = time.process_time_ns(), time.perf_counter_ns()
        done = await self._pump(read, self._requests, self._seconds)
        cpu, wall = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
        print(json.dumps({"done": done, "cpu_ns": cpu, "wall_ns": wall}), flush=True)

    async def _pump(self, read: Read, count: int, seconds: float) -> int:
        first, end, stop = self._next, self._next + count, time.perf_counter() + seconds
        await asyncio.gather(*(self._reader(read, end, stop) for _ in range(self._window)))
        return self._next - first

    async def _reader(self, read: Read, end: int, stop: float) -> None:
        while self._next < end and time.perf_counter() < stop:
            number = self._next
            self._next += 1
            text = await read(f"bench://item/{number}")
            if text != f"item {number}":
                raise RuntimeError(f"wrong contents of item {number}: {text!r}")
