"""`SubscriptionBus`: the bus of our servers, as the official SDK for Python takes one."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from listeners import eventually
from mcp.server.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.server.subscriptions import SubscriptionBus as Interface
from mcp_resources import RegistrationError, ResourceServer, SubscriptionBus

KEYS = [b"0f1e2d3c4b5a69788796a5b4c3d2e1f0"]


def buses(folder: Path, count: int = 2) -> list[SubscriptionBus]:
    return [SubscriptionBus(f"unix:{folder / 'notes.bus'}", name="notes", keys=KEYS) for _ in range(count)]


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await asyncio.wait_for(work(), 60)

    asyncio.run(main())


async def joined(own: Sequence[SubscriptionBus]) -> None:
    """Waits until each hears of each."""
    heard: list[tuple[int, str]] = []
    ends = [
        bus.subscribe(lambda event, at=at: heard.append((at, getattr(event, "uri", "")))) for at, bus in enumerate(own)
    ]

    def all_heard() -> bool:
        return all((at, f"join://{other}") in heard for at in range(len(own)) for other in range(len(own)))

    while not all_heard():
        for at, bus in enumerate(own):
            await bus.publish(ResourceUpdated(f"join://{at}"))
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.3)
    for end in ends:
        end()


def test_events_reach_the_listeners_of_all_processes(tmp_path: Path) -> None:
    """Each kind, once: those of this process too, also while the bus has not joined."""

    async def work() -> None:
        own: list[Interface] = [*buses(tmp_path)]
        early: list[ServerEvent] = []
        own[0].subscribe(early.append)
        await own[0].publish(ToolsListChanged())
        assert ToolsListChanged() in early  # beside what is announced when it joins
        await joined(own)  # type: ignore[arg-type]
        heard: list[list[ServerEvent]] = [[], []]
        ends = [bus.subscribe(heard[at].append) for at, bus in enumerate(own)]
        events = [ResourceUpdated("note://1"), ResourcesListChanged(), ToolsListChanged(), PromptsListChanged()]
        for event in events:
            await own[0].publish(event)
        assert heard[0] == events
        await eventually(lambda: len(heard[1]) == 4, f"{heard[1]}")
        assert set(heard[1]) == set(events)
        ends[1]()
        ends[1]()
        await own[0].publish(ResourceUpdated("note://2"))
        await asyncio.sleep(0.3)
        assert len(heard[1]) == 4
        for bus in own:
            bus.close()  # type: ignore[attr-defined]
        await own[0].publish(ResourceUpdated("note://3"))
        assert heard[0][-1] == ResourceUpdated("note://3")

    run(work)


def test_a_listener_that_fails_stops_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fails(event: ServerEvent) -> None:
        raise RuntimeError("canary")

    async def work() -> None:
        own = buses(tmp_path)
        await joined(own)
        heard: list[ServerEvent] = []
        for bus in own:
            bus.subscribe(fails)
        own[1].subscribe(heard.append)
        await own[0].publish(ResourceUpdated("note://1"))
        await eventually(lambda: heard == [ResourceUpdated("note://1")], f"{heard}")
        assert "canary" in caplog.text
        for bus in own:
            bus.close()

    run(work)


def test_many_events_leave_the_loop_time(tmp_path: Path) -> None:
    """Thousands at once come in steps, between which other tasks run."""

    async def work() -> None:
        own = buses(tmp_path)
        await joined(own)
        threads, steps, heard = set(), 0, 0

        def count(event: ServerEvent) -> None:
            nonlocal heard
            heard += 1
            threads.add(threading.get_ident())

        own[1].subscribe(count)
        for number in range(5_000):
            await own[0].publish(ResourceUpdated(f"note://{number}"))
        while heard < 5_000:
            await asyncio.sleep(0)
            steps += 1
        assert steps > 5
        assert threads == {threading.get_ident()}
        for bus in own:
            bus.close()

    run(work)


def test_our_server_and_the_sdks_hear_of_each_other(tmp_path: Path) -> None:
    """A change for one client alone stays with our server."""

    async def work() -> None:
        url = f"unix:{tmp_path / 'notes.bus'}"
        server = ResourceServer("notes", keys=KEYS, bus=url, metrics=True)
        server.resource("note://{id}")(lambda id: id)
        (bus,) = buses(tmp_path, 1)
        heard: list[ServerEvent] = []
        bus.subscribe(heard.append)
        while ResourceUpdated("note://join") not in heard:
            server.notify_updated("note://join")
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)
        heard.clear()
        server.notify_updated("note://ada", principal="ada")
        server.notify_list_changed()
        server.notify_updated("note://1")
        await eventually(lambda: len(heard) == 2, f"{heard}")
        assert set(heard) == {ResourceUpdated("note://1"), ResourcesListChanged()}

        def received() -> str:
            lines = (server.metrics_text() or "").splitlines()
            return next(line for line in lines if line.startswith("mcp_resources_bus_received_total "))

        before = received()
        await bus.publish(ResourceUpdated("note://1"))
        await eventually(lambda: received() != before, before)
        bus.close()

    run(work)


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"url": "redis://me:hunter2@localhost", "keys": []}, "keys"),
        ({"url": "kafka://me:hunter2@localhost", "keys": KEYS}, "redis://HOST:PORT/DB"),
        ({"url": "redis://localhost", "keys": [b"short"]}, "16 bytes"),
    ]
    for options, said in wrong:
        with pytest.raises(RegistrationError) as error:
            SubscriptionBus(name="notes", **options)
        assert said in str(error.value)
        assert "hunter2" not in str(error.value)
    (bus,) = buses(tmp_path, 1)
    with pytest.raises(RuntimeError, match="no event loop"):
        bus.subscribe(print)

    async def work() -> None:
        with pytest.raises(TypeError, match="is no event of the SDK"):
            await bus.publish("note://1")

    run(work)
    bus.close()
