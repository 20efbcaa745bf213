#!/usr/bin/env python3
"""W20: a change in one process of a server until the listener of another one hears of it, over Redis and NATS.

    .venv/bin/python tests/bench/bus.py [CHANGES]

Prints a table. Measures the package that is installed in `.venv`, with the brokers of this machine on loopback.
"""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

import brokers
from listeners import Watcher
from mcp_resources import Resource, ResourceServer
from test_bus import Replica, replicas

CHANGES = int(sys.argv[1]) if len(sys.argv) > 1 else 500
KEYS = [b"0f1e2d3c4b5a69788796a5b4c3d2e1f0"]
COST = 100_000
"""Calls of `notify_updated` for its cost."""


class TimedWatcher(Watcher):
    """Keeps when it was told of each URI."""

    heard: dict[str, float]

    def start(self) -> None:
        self.heard = {}
        super().start()

    async def settle(self) -> None:
        # What is announced when a process joins the bus.
        await asyncio.sleep(0.3)
        self.told.clear()


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] * 1_000


async def latency(own: list[Replica]) -> list[float]:
    """From the line that tells A, to the notification at B. Each URI once, so that none is coalesced."""
    uris = [f"note://{number}" for number in range(CHANGES)]
    watcher = TimedWatcher(own[1].port, uris, is_modern=True)
    watcher.start()
    await watcher.watching()
    await watcher.settle()
    times = []
    for uri in uris:
        begun = time.perf_counter()
        assert own[0].process.stdin is not None
        own[0].process.stdin.write(f"updated {uri}\n")
        while not watcher.told.get(uri):
            await asyncio.sleep(0)
        times.append(time.perf_counter() - begun)
        assert own[0].process.stdout is not None
        own[0].process.stdout.readline()
    watcher.comes_back = False
    await watcher.close()
    return times


def cpu(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def cost(bus: str | None) -> float:
    """Microseconds of a call of `notify_updated` for another URI each time, without a listener."""
    server = ResourceServer("cost", keys=KEYS, bus=bus)
    server.add_resource(Resource("note://0"), text="x")
    time.sleep(0.5)
    uris = [f"note://{number}" for number in range(1_000)]
    best = float("inf")
    for _ in range(COST // 1_000):
        begun = time.perf_counter()
        for uri in uris:
            server.notify_updated(uri)
        best = min(best, time.perf_counter() - begun)
    return best / len(uris) * 1e6


def idle(own: list[Replica]) -> float:
    """CPU of a process in ms for each second, with nothing to do."""
    before = cpu(own[1].process.pid)
    time.sleep(10)
    return (cpu(own[1].process.pid) - before) / 10 * 1_000


def main() -> None:
    without = cost(None)
    rows = []
    for kind in ("redis", "nats", "unix"):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if kind == "unix":
                rows.append(measure(kind, f"unix:{folder / 'bus'}", folder, without))
            elif getattr(brokers, kind.upper()) is not None:
                with getattr(brokers, kind)(folder / kind) as broker:
                    rows.append(measure(kind, broker.url, folder, without))
    print(f"| bus | p50 ms | p99 ms | notify_updated, µs (without a bus {without:.2f}) | idle, ms of CPU a second |")
    print("| --- | --- | --- | --- | --- |")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def measure(kind: str, url: str, folder: Path, without: float) -> list[str]:
    with replicas(url, folder, names="ab") as own:
        times = asyncio.run(latency(own))
        quiet = idle(own)
    added = cost(url)
    return [kind, f"{percentile(times, 0.5):.2f}", f"{percentile(times, 0.99):.2f}", f"{added:.2f}", f"{quiet:.1f}"]


if __name__ == "__main__":
    main()
