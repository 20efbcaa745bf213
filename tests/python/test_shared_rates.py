"""Rates that all processes of a server count together, in Redis."""

import asyncio
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import brokers
import pytest
from brokers import NO_REDIS, PATIENCE, REDIS
from listeners import ask, eventually
from mcp_resources import RegistrationError, ResourceServer
from ports import HOST
from replicas import Replica, replicas

KEYS = [b"0f1e2d3c4b5a69788796a5b4c3d2e1f0"]
with_redis = pytest.mark.skipif(REDIS is None, reason=NO_REDIS)
BURST, PER_SECOND = 20, 4


def rates(shared: bool = True) -> dict[str, Any]:
    return {"rate": {"read": {"per_second": PER_SECOND, "burst": BURST}, "shared": shared}}


async def accepted(own: Sequence[Replica], seconds: float, token: str | None = None) -> int:
    """Sends reads to all processes in turn for some time; the number that were not refused."""
    count, sent, end = 0, 0, time.monotonic() + seconds
    # On a busy machine, too, more than all buckets hold.
    while time.monotonic() < end or sent < seconds * 4 * BURST:
        for replica in own:
            _, answer = await ask(replica.port, "resources/read", {"uri": "note://1"}, "note://1", token)
            assert "result" in answer or "retry" in str(answer).lower(), answer
            count += "result" in answer
            sent += 1
        await asyncio.sleep(0.01)
    return count


def run(work: Any) -> Any:
    return asyncio.run(asyncio.wait_for(work, 4 * PATIENCE))


@with_redis
@pytest.mark.parametrize("shared", [True, False])
def test_two_processes_have_one_bucket(shared: bool, tmp_path: Path) -> None:
    """A client that sends to both gets what one process alone would give; without `shared` twice as much."""
    with (
        brokers.redis(tmp_path / "redis") as bus,
        replicas(bus.url, tmp_path, names="ab", guard=rates(shared)) as own,
    ):
        begun = time.monotonic()
        count = run(accepted(own, 2))
        allowed = BURST + PER_SECOND * (time.monotonic() - begun)
        if not shared:
            assert count >= 2 * BURST
            assert bus.run("KEYS", "*:rate:*") == ""
            return
        # What is accepted before the other process knows is too much: a few, unless the machine is busy.
        assert BURST <= count <= allowed + BURST // 2
        # A key has neither the name nor the address of a client, and it expires.
        keys = bus.run("KEYS", "*:rate:*").splitlines()
        assert [re.fullmatch("mcp-resources:notes:rate:[0-9a-f]{32}", key) is not None for key in keys] == [True]
        assert 0 < int(bus.run("PTTL", keys[0])) <= (BURST + 4) / PER_SECOND * 1_000


@with_redis
def test_principals_are_counted_apart(tmp_path: Path) -> None:
    with (
        brokers.redis(tmp_path / "redis") as bus,
        replicas(bus.url, tmp_path, "tokens", names="ab", guard=rates()) as own,
    ):
        assert run(accepted(own, 1, "ada")) >= BURST
        assert run(accepted(own, 0.3, "ada")) <= 6
        assert run(accepted(own, 0.5, "eve")) >= BURST
        assert len(bus.run("KEYS", "*:rate:*").splitlines()) == 2


@with_redis
def test_without_redis_each_process_counts_for_itself(tmp_path: Path) -> None:
    """It never waits for Redis, says so once, and shares again when Redis is back."""

    async def away(own: Sequence[Replica]) -> None:
        assert await accepted(own, 1) >= BURST
        await eventually(lambda: all(replica.lines("shared rates") for replica in own), "nothing in the log")
        # Each has its own bucket now, which is emptied by its own clients alone.
        await asyncio.sleep(BURST / PER_SECOND)
        begun = time.monotonic()
        assert await accepted(own, 1) >= 2 * (BURST - 4)
        assert time.monotonic() - begun < 5

    async def back(own: Sequence[Replica]) -> None:
        async def shares() -> bool:
            await accepted(own, 0.1)
            return all(replica.lines("are back") for replica in own)

        end = time.monotonic() + PATIENCE
        while not await shares():
            assert time.monotonic() < end, own[0].log.read_text("utf-8")
            await asyncio.sleep(0.5)

    with (
        brokers.redis(tmp_path / "redis") as bus,
        replicas(bus.url, tmp_path, names="ab", guard=rates()) as own,
    ):
        bus.kill()
        run(away(own))
        bus.start()
        run(back(own))
        for replica in own:
            lines = replica.lines("shared rates")
            assert len(lines) == 2, lines
            assert "each process counts for itself" in lines[0]


@with_redis
def test_what_stands_in_redis_is_not_trusted(tmp_path: Path) -> None:
    """Other types, no numbers, and a time in the far future: no request fails, and no wait is endless."""
    with (
        brokers.redis(tmp_path / "redis") as bus,
        replicas(bus.url, tmp_path, names="ab", guard=rates()) as own,
    ):
        run(accepted(own, 0.2))
        (key,) = bus.run("KEYS", "*:rate:*").splitlines()
        for command in (("SET", key, "x"), ("SET", key, "nan"), ("RPUSH", key, "1"), ("SET", key, "1e300")):
            bus.run("DEL", key)
            bus.run(*command)
            time.sleep(1.2 / PER_SECOND)
            run(accepted(own, 0.2))
            assert all(not replica.lines("shared rates") for replica in own), own[0].lines("shared rates")
        # At most 64 buckets.
        assert int(bus.run("PTTL", key)) <= 64 * BURST / PER_SECOND * 1_000 + 1_000


@with_redis
def test_a_redis_without_room_is_said_once(tmp_path: Path) -> None:
    """`maxmemory` with `noeviction`: a script must not write. Each process counts for itself."""
    with (
        brokers.redis(tmp_path / "redis") as bus,
        replicas(bus.url, tmp_path, names="ab", guard=rates()) as own,
    ):
        run(accepted(own, 0.2))
        bus.run("CONFIG", "SET", "maxmemory", "1")
        run(accepted(own, 3))
        for replica in own:
            assert len(replica.lines("shared rates")) == 1, replica.lines("shared rates")
            assert "maxmemory" in replica.lines("shared rates")[0]


@pytest.mark.parametrize("bus", [None, "unix:notes.bus", f"nats://{HOST}:1"])
def test_shared_rates_need_redis(bus: str | None) -> None:
    """The sentence names what is needed, when the first resource is registered."""
    server = ResourceServer("notes", guard=rates(), keys=KEYS, bus=bus)
    with pytest.raises(RegistrationError, match=r"rate\.shared: it needs a bus on Redis"):
        server.resource("note://1")(lambda: "one")


def test_serve_refuses_shared_rates_without_redis(program: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "serve.yaml").write_text(
        "providers: [{files: {roots: docs}}]\nguard: {rate: {read: {per_second: 5}, shared: true}}\n"
    )
    words = [str(program), "serve", "--config", str(tmp_path / "serve.yaml"), "--http", "0"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2, done.stderr
    assert "rate.shared: it needs a bus on Redis" in done.stderr
