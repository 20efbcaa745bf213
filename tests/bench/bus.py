#!/usr/bin/env python3
"""W20: several processes of a server on a bus: how late a change is, what it costs, and rates that all count together.

    .venv/bin/python tests/bench/bus.py [--python PYTHON] [--quick] [--rounds N] [--output FILE]

Prints the figures, and appends them to FILE as the driver writes its rounds, for `tests/bench/report`. PYTHON has the
package that is measured; default: this one. The brokers run on this machine, on loopback. One that is not installed has
a row that says so.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

import brokers
from listeners import Watcher, modern, modern_headers
from ports import HOST
from replicas import Replica, replicas

BUSES = ("redis", "nats", "unix")
COST = 100_000
"""Calls of `notify_updated` for its cost."""
RATE = 10_000
"""Changes a second under load."""
RATES: dict[str, Any] = {"read": {"per_second": 1_000_000, "burst": 1_000_000}}
Figures = dict[str, float]


@dataclass(frozen=True)
class Size:
    """How long a run is."""

    changes: int
    listeners: int
    seconds: int
    idle: int
    reads: int


FULL = Size(changes=500, listeners=1_000, seconds=5, idle=5, reads=5_000)
QUICK = Size(changes=50, listeners=50, seconds=1, idle=1, reads=200)


class CountingReader(asyncio.Protocol):
    """A listen whose notifications are counted, and not read: thousands of them must not be the load."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.told = 0
        self.begun = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self.told += data.count(b"resources/updated")
        if not self.begun.done() and b"subscriptions/acknowledged" in data:
            self.begun.set_result(None)


def request(port: int, uri: str) -> bytes:
    method = "subscriptions/listen"
    body = json.dumps(modern(method, {"notifications": {"resourceSubscriptions": [uri]}})).encode()
    lines = [
        "POST /mcp HTTP/1.1", f"Host: localhost:{port}", "Accept: application/json, text/event-stream",
        "Content-Type: application/json", f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in modern_headers(method)), "", "",
    ]  # fmt: skip
    return "\r\n".join(lines).encode() + body


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def cpu(replica: Replica) -> float:
    """Seconds of the processor that a process has used."""
    words = Path(f"/proc/{replica.process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


async def latency(own: list[Replica], size: Size) -> list[float]:
    """From the line that tells A, to the notification at B, in seconds. Each URI once, so that none is coalesced."""
    uris = [f"note://{number}" for number in range(size.changes)]
    watcher = Watcher(own[1].port, uris, is_modern=True)
    watcher.start()
    await watcher.watching()
    # What is announced when a process joins the bus.
    await asyncio.sleep(0.3)
    watcher.told.clear()
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


def idle(own: list[Replica], size: Size) -> float:
    """CPU of a process in ms for each second, with nothing to do."""
    before = cpu(own[1])
    time.sleep(size.idle)
    return (cpu(own[1]) - before) / size.idle * 1_000


async def load(own: list[Replica], size: Size) -> Figures:
    """Changes in one of three processes: each listener of each process has one URI, and all URIs change in turn."""
    loop = asyncio.get_running_loop()
    readers: list[CountingReader] = []
    for replica in own:
        for number in range(size.listeners):
            send = request(replica.port, f"note://{number}")
            _, reader = await loop.create_connection(lambda send=send: CountingReader(send), HOST, replica.port)  # type: ignore[misc]
            readers.append(reader)
    await asyncio.gather(*(reader.begun for reader in readers))
    await asyncio.sleep(0.5)
    for reader in readers:
        reader.told = 0
    before = [cpu(replica) for replica in own]
    rate = await asyncio.to_thread(own[0].tell, f"load {RATE} {size.seconds} {size.listeners}")
    await asyncio.sleep(0.5)
    used = [cpu(replica) - start for replica, start in zip(own, before, strict=True)]
    figures = {
        "changes_s": float(rate),
        "teller_percent": used[0] / size.seconds * 100,
        "hearer_percent": sum(used[1:]) / 2 / size.seconds * 100,
        "told_s": sum(reader.told for reader in readers) / len(own) / size.seconds,
        "silent": float(sum(reader.told == 0 for reader in readers)),
    }
    for reader in readers:
        reader.transport.close()
    return figures


async def reads(own: list[Replica], size: Size) -> float:
    """CPU µs of a read on a kept connection, one after the other, by turns of two processes."""
    before = sum(cpu(replica) for replica in own)
    for replica in own:
        stream, writer = await asyncio.open_connection(HOST, replica.port)
        body = json.dumps(modern("resources/read", {"uri": "note://1"})).encode()
        head = [
            "POST /mcp HTTP/1.1", f"Host: localhost:{replica.port}", "Accept: application/json, text/event-stream",
            "Content-Type: application/json", f"Content-Length: {len(body)}",
            *(f"{name}: {value}" for name, value in modern_headers("resources/read", "note://1")), "", "",
        ]  # fmt: skip
        message = "\r\n".join(head).encode() + body
        for _ in range(size.reads):
            writer.write(message)
            answer = await stream.readuntil(b"\r\n\r\n")
            length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await stream.readexactly(length)
        writer.close()
    return (sum(cpu(replica) for replica in own) - before) / (size.reads * len(own)) * 1e6


@contextmanager
def bus(kind: str, folder: Path) -> Iterator[str]:
    """The URL of a bus that is there."""
    if kind == "unix":
        yield f"unix:{folder / 'bus'}"
    elif kind == "none":
        yield "none"
    else:
        with getattr(brokers, kind)(folder / kind) as broker:
            yield broker.url


def missing(kind: str) -> str | None:
    reasons = {"redis": (brokers.REDIS, brokers.NO_REDIS), "nats": (brokers.NATS, brokers.NO_NATS)}
    found, reason = reasons.get(kind, (kind, ""))
    return reason if found is None else None


def measured(kind: str, measure: Callable[[str, Path], Figures], rounds: int) -> dict[str, Any]:
    """A row: the rounds of one bus, or why there are none."""
    if reason := missing(kind):
        return {"server": kind, "rounds": [], "missing": reason}
    found = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as name, bus(kind, Path(name)) as url:
            found.append(measure(url, Path(name)))
        print(f"{kind}: {found[-1]}", file=sys.stderr)
    return {"server": kind, "rounds": found}


def tables(size: Size, python: str, rounds: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    def change(url: str, folder: Path) -> Figures:
        figures: Figures = {}
        with replicas(url, folder, names="ab", python=python) as own:
            if url != "none":
                times = asyncio.run(latency(own, size))
                figures |= {"p50_us": percentile(times, 0.5) * 1e6, "p99_us": percentile(times, 0.99) * 1e6}
            figures |= {"idle_ms": idle(own, size), "call_us": float(own[0].tell(f"cost {COST}"))}
        return figures

    def loaded(url: str, folder: Path) -> Figures:
        with replicas(url, folder, names="abc", python=python) as own:
            return asyncio.run(load(own, size))

    def rated(shared: bool, is_limited: bool = True) -> Callable[[str, Path], Figures]:
        guard = {"rate": RATES | {"shared": shared}} if is_limited else {}

        def measure(url: str, folder: Path) -> Figures:
            with replicas(url, folder, names="ab", python=python, guard=guard) as own:
                asyncio.run(reads(own, size))
                return {"cpu_us": asyncio.run(reads(own, size))}

        return measure

    yield "W20", [measured(kind, change, rounds) for kind in ("none", *BUSES)]
    yield "W20-load", [measured(kind, loaded, rounds) for kind in BUSES]
    named = [("without rates", False, False), ("rates of each process", False, True), ("shared rates", True, True)]
    rows = [(name, measured("redis", rated(shared, limited), rounds)) for name, shared, limited in named]
    yield "W20-rates", [row | {"server": name} for name, row in rows]


def machine() -> str:
    """As the driver says it."""
    model = next(
        (
            line.partition(": ")[2]
            for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines()
            if "model name" in line
        ),
        "unknown processor",
    )
    release = os.uname().release.partition("-")[0]
    return f"{model.strip()}, {os.cpu_count()} cores, Linux {release}"


def put(workload: str, rows: list[dict[str, Any]], output: Path | None, *, is_quick: bool) -> None:
    """Prints a table, and adds its line to the file of rounds."""
    table = {
        "workload": workload,
        "modern": True,
        "time": int(time.time()),
        "machine": machine(),
        "quick": is_quick,
        "rows": rows,
    }
    print(json.dumps(table))
    if output:
        with output.open("a") as file:
            file.write(json.dumps(table) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="the interpreter with the package that is measured")
    parser.add_argument("--quick", action="store_true", help="a short run that shows that it works")
    parser.add_argument("--rounds", type=int, default=1, help="rounds of each row")
    parser.add_argument("--output", type=Path, help="a file of rounds, which gets a line for each table")
    options = parser.parse_args()
    for workload, rows in tables(QUICK if options.quick else FULL, options.python, options.rounds):
        put(workload, rows, options.output, is_quick=options.quick)


if __name__ == "__main__":
    main()
