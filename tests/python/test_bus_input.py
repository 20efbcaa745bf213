"""A bus without room, a silent one, one that strangers use, floods: serving goes on, and the log has one line."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import brokers
import pytest
from brokers import NATS, NO_NATS, NO_REDIS, PATIENCE, REDIS
from listeners import Watcher, ask, eventually
from ports import HOST, reserved_port
from replicas import Replica, connected, replicas

with_redis = pytest.mark.skipif(REDIS is None, reason=NO_REDIS)
with_nats = pytest.mark.skipif(NATS is None, reason=NO_NATS)
KINDS = [pytest.param("redis", marks=with_redis), pytest.param("nats", marks=with_nats)]


def run(work: Any) -> Any:
    return asyncio.run(asyncio.wait_for(work, 10 * PATIENCE))


async def serves(replica: Replica) -> None:
    """It answers, and its own listener hears of its changes."""
    status, answer = await ask(replica.port, "resources/read", {"uri": "note://1"}, "note://1")
    assert status == 200, answer
    watcher = Watcher(replica.port, ["note://own"], is_modern=True)
    watcher.start()
    await watcher.watching()
    await asyncio.sleep(0.2)
    watcher.told.clear()
    await asyncio.to_thread(replica.tell, "updated note://own")
    await eventually(lambda: bool(watcher.told.get("note://own")), "not told")
    watcher.comes_back = False
    await watcher.close()


async def hears(teller: Replica, hearer: Replica, uri: str) -> None:
    """A change in one reaches the listener of the other."""
    watcher = Watcher(hearer.port, [uri], is_modern=True)
    watcher.start()
    await watcher.watching()
    await asyncio.sleep(0.3)
    watcher.told.clear()
    await asyncio.to_thread(teller.tell, f"updated {uri}")
    await eventually(lambda: bool(watcher.told.get(uri)), f"not told of {uri}")
    watcher.comes_back = False
    await watcher.close()


def said_once(own: list[Replica], word: str) -> None:
    for replica in own:
        lines = replica.lines("cannot be used")
        assert len(lines) == 1, lines
        assert word in lines[0]


@with_redis
def test_redis_without_room(tmp_path: Path) -> None:
    """`maxmemory` with `noeviction`: an entry is refused. What waits is sent when there is room again."""
    with brokers.redis(tmp_path / "redis") as bus, replicas(bus.url, tmp_path, names="ab") as own:
        run(hears(own[0], own[1], "note://1"))
        bus.run("CONFIG", "SET", "maxmemory", "1")
        own[0].tell("updated note://2")
        connected(own[0], False)
        run(serves(own[0]))
        time.sleep(2)
        said_once(own[:1], "maxmemory")
        bus.run("CONFIG", "SET", "maxmemory", "0")
        connected(own[0])
        run(hears(own[0], own[1], "note://3"))
        assert len(own[0].lines("is back")) == 1
        assert all(replica.metric("lost_total") == 0 for replica in own)


@with_nats
def test_nats_without_room(tmp_path: Path) -> None:
    """JetStream with less room on its disk than a stream wants: the stream cannot be made, and the log says so once."""
    folder = tmp_path / "nats"
    folder.mkdir()
    config = folder / "server.conf"
    config.write_text(f'jetstream {{ store_dir: "{folder / "small"}", max_file_store: 1MB, max_memory_store: 1MB }}\n')
    with brokers.nats(folder, "-c", str(config), jetstream=False) as bus, reserved_port() as port:
        own = Replica("a", port, bus.url, tmp_path)
        try:
            run(serves(own))
            time.sleep(3)
            assert len(own.lines("cannot be used")) == 1, own.lines("bus")
            assert own.metric("connected") == 0
        finally:
            own.kill()


class Deaf:
    """A server that accepts connections, reads what it gets, and never answers."""

    def __init__(self) -> None:
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self._taken: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._taken += [connection]

    def close(self) -> None:
        for connection in [self._listener, *self._taken]:
            connection.close()


@contextmanager
def deaf() -> Iterator[Deaf]:
    made = Deaf()
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("scheme", ["redis", "nats"])
def test_a_bus_that_accepts_and_never_answers(scheme: str, tmp_path: Path) -> None:
    with deaf() as bus, reserved_port() as port:
        own = Replica("a", port, f"{scheme}://{HOST}:{bus.port}", tmp_path)
        try:
            run(serves(own))
            end = time.monotonic() + PATIENCE
            while not own.lines("cannot be used"):
                assert time.monotonic() < end
                time.sleep(0.1)
            time.sleep(3)
            assert len(own.lines("cannot be used")) == 1
            run(serves(own))
        finally:
            own.kill()


@with_redis
def test_a_bus_that_stops_answering(tmp_path: Path) -> None:
    """A Redis that is stopped under its connections, and goes on later: one line each, and nothing is lost."""
    with brokers.redis(tmp_path / "redis") as bus, replicas(bus.url, tmp_path, names="ab") as own:
        run(hears(own[0], own[1], "note://1"))
        bus.pause(True)
        try:
            own[0].tell("updated note://2")
            connected(own[0], False)
            run(serves(own[0]))
        finally:
            bus.pause(False)
        for replica in own:
            connected(replica)
        run(hears(own[0], own[1], "note://3"))
        said_once(own[:1], "")


@pytest.mark.parametrize("kind", KINDS)
def test_two_servers_of_different_names_on_one_broker(kind: str, tmp_path: Path) -> None:
    """Same broker, same keys, another name: neither hears of the other, and both work."""
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    with (
        getattr(brokers, kind)(tmp_path / kind) as bus,
        replicas(bus.url, tmp_path / "x", names="ab") as notes,
        replicas(bus.url, tmp_path / "y", "name=shop", names="cd") as shop,
    ):
        run(hears(notes[0], notes[1], "note://1"))
        run(hears(shop[0], shop[1], "note://2"))
        assert notes[1].metric("received_total") == 1
        assert shop[1].metric("received_total") == 1
        assert all(replica.metric("ignored_total") == 0 for replica in notes + shop)


@with_redis
def test_a_stranger_on_the_stream_of_another_server(tmp_path: Path) -> None:
    """Messages of a server with another name, copied onto the stream of ours, are not opened."""
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    with (
        brokers.redis(tmp_path / "redis") as bus,
        replicas(bus.url, tmp_path / "x", names="ab") as notes,
        replicas(bus.url, tmp_path / "y", "name=shop", names="cd") as shop,
    ):
        run(hears(shop[0], shop[1], "note://1"))
        copied = bus.run("XREVRANGE", "mcp-resources:shop", "+", "-", "COUNT", "1").splitlines()[-1]
        bus.run("XADD", "mcp-resources:notes", "*", "message", copied)
        run(hears(notes[0], notes[1], "note://2"))
        assert [replica.metric("ignored_total") for replica in notes] == [1, 1]
        assert notes[1].metric("received_total") == 1


@with_redis
def test_old_messages_that_are_appended_again(tmp_path: Path) -> None:
    """The whole stream, appended once more by somebody who may write: no change is applied twice."""
    with brokers.redis(tmp_path / "redis") as bus, replicas(bus.url, tmp_path, names="ab") as own:
        for number in range(20):
            own[0].tell(f"updated note://{number}")
            time.sleep(0.02)
        end = time.monotonic() + PATIENCE
        while own[1].metric("received_total") < 20:
            assert time.monotonic() < end
            time.sleep(0.05)
        key = "mcp-resources:notes"
        lines = bus.run("XRANGE", key, "-", "+").splitlines()
        messages = [line for line in lines if line.startswith("v1.")]
        assert messages
        for message in messages:
            bus.run("XADD", key, "*", "message", message)
        run(hears(own[0], own[1], "note://after"))
        assert own[1].metric("ignored_total") == len(messages)
        assert own[1].metric("received_total") == 21
        assert own[1].metric("lost_total") == 0


@pytest.mark.parametrize("kind", [*KINDS, "nobody"])
def test_a_hundred_thousand_changes_at_once(kind: str, tmp_path: Path) -> None:
    """Different URIs as fast as a process announces them, with a bus and without: memory stays."""

    def resident(replica: Replica) -> int:
        text = Path(f"/proc/{replica.process.pid}/status").read_text("utf-8")
        return int(text.partition("VmRSS:")[2].split()[0])

    def flood(own: list[Replica]) -> None:
        before = resident(own[0])
        for _ in range(3):
            own[0].tell("flood 100000")
        assert resident(own[0]) - before < 64_000, "KiB"
        run(serves(own[0]))

    if kind == "nobody":
        with reserved_port() as away, reserved_port() as port:
            alone = Replica("a", port, f"redis://{HOST}:{away}", tmp_path)
            try:
                flood([alone])
                said_once([alone], "refused")
            finally:
                alone.kill()
        return
    with getattr(brokers, kind)(tmp_path / kind) as bus, replicas(bus.url, tmp_path, names="ab") as own:
        flood(own)
        run(hears(own[0], own[1], "note://after"))
        assert all(len(replica.lines("cannot be used")) == 0 for replica in own)
