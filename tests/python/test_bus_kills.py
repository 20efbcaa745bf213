"""Kills at random: processes of the server, their bus, its log. Afterwards every client hears of every change.

The short form is a part of `make test`; `MCP_RESOURCES_BUS=long`, as in `make soak`, has 40 kills and 120 clients.
"""

import asyncio
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import brokers
import pytest
from brokers import NATS, NO_NATS, NO_REDIS, PATIENCE, REDIS
from listeners import Watcher, eventually
from replicas import Replica, connected, replicas

IS_LONG = os.environ.get("MCP_RESOURCES_BUS") == "long"
KILLS, CLIENTS = (40, 120) if IS_LONG else (4, 12)
KINDS = [
    pytest.param("redis", marks=pytest.mark.skipif(REDIS is None, reason=NO_REDIS)),
    pytest.param("nats", marks=pytest.mark.skipif(NATS is None, reason=NO_NATS)),
    "unix",
]
URIS = [f"note://{number}" for number in range(8)]


def restarted(replica: Replica) -> None:
    replica.kill()
    replica.start()
    connected(replica)


def cut(bus: Any, own: list[Replica], is_trimmed: bool) -> None:
    """Kills a broker, changes something meanwhile, and starts it again, perhaps without its log."""
    bus.kill()
    for replica in own:
        connected(replica, False)
    for at, uri in enumerate(URIS):
        own[at % len(own)].tell(f"updated {uri}")
    if is_trimmed:
        for name in ("appendonlydir", "store"):
            shutil.rmtree(bus.folder / name, ignore_errors=True)
    bus.start()
    for replica in own:
        connected(replica)


def paused(bus: Any, seconds: float) -> None:
    bus.pause(True)
    time.sleep(seconds)
    bus.pause(False)


def deeds(kind: str, bus: Any, own: list[Replica], chosen: random.Random) -> list[Callable[[], None]]:
    """What may happen."""
    found: list[Callable[[], None]] = [lambda: restarted(chosen.choice(own))] * 2
    if kind != "unix":
        found += [lambda: cut(bus, own, False), lambda: cut(bus, own, True), lambda: paused(bus, chosen.uniform(0, 2))]
    return found


async def work(kind: str, bus: Any, own: list[Replica]) -> None:
    chosen = random.Random(7)
    watchers = [Watcher(own[at % 3].port, URIS, is_modern=at % 3 != 2) for at in range(CLIENTS)]
    for watcher in watchers:
        watcher.start()
    await asyncio.gather(*(watcher.watching() for watcher in watchers))
    happens = deeds(kind, bus, own, chosen)
    for number in range(KILLS):
        deed = happens[number % len(happens)] if number < len(happens) else chosen.choice(happens)
        begun = {watcher: watcher.begun for watcher in watchers}
        before = {replica.name: replica.process.pid for replica in own}
        await asyncio.to_thread(deed)
        for replica in own:
            await asyncio.to_thread(connected, replica)
        lost = {replica.port for replica in own if before[replica.name] != replica.process.pid}
        await asyncio.gather(*(w.watching(begun[w] + 1) for w in watchers if w.port in lost))
        await asyncio.sleep(0.3)
        for watcher in watchers:
            watcher.told.clear()
        for at, uri in enumerate(URIS):
            await asyncio.to_thread(own[(at + number) % 3].tell, f"updated {uri}")
        await eventually(lambda: all(set(URIS) <= set(w.told) for w in watchers), f"missed after kill {number}")
    for watcher in watchers:
        watcher.comes_back = False
    await asyncio.gather(*(watcher.close() for watcher in watchers))


@pytest.mark.parametrize("kind", KINDS)
def test_after_each_kill_everybody_hears_of_everything(kind: str, tmp_path: Path) -> None:
    if kind == "unix":
        with replicas(f"unix:{tmp_path / 'notes.bus'}", tmp_path) as own:
            asyncio.run(asyncio.wait_for(work(kind, None, own), KILLS * PATIENCE))
        return
    with getattr(brokers, kind)(tmp_path / kind) as bus, replicas(bus.url, tmp_path) as own:
        asyncio.run(asyncio.wait_for(work(kind, bus, own), KILLS * PATIENCE))
