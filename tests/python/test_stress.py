"""Answers off the loop without a stall, a deadlock or unbounded memory, on both event loops."""

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stdio_process import Process, cancel, read, request, running

MIB = 1 << 20
LONGEST_HOLD = 10.0
"""Generous: the machine may be busy. A deadlock or a wait for a client would be longer."""


@pytest.fixture(params=["asyncio", "uvloop"])
def process(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Process]:
    with running(tmp_path / "errors", request.param, "--switch", "--embedded") as process:
        process.value("s://longest")
        yield process
        assert "Traceback" not in process.errors()


def settled(process: Process) -> dict[str, Any]:
    """The server's state once nothing but the question is at work, and that the loop was never held for long."""
    assert process.value("s://longest")["seconds"] < LONGEST_HOLD
    until = time.monotonic() + 10
    while True:
        state = process.value("s://state")
        if state["waiting"] == 0 and state["tasks"] <= 3:
            return state
        assert time.monotonic() < until, state
        time.sleep(0.02)


@pytest.mark.parametrize("kind", ["big", "bytes"])
def test_64_in_flight_with_a_mebibyte_each(process: Process, kind: str) -> None:
    before = process.value("s://state")["peak"]
    for round in range(4):
        process.write(b"".join(read(round * 64 + id, f"s://{kind}/{id}") for id in range(1, 65)))
        answers = process.answers(64)
        assert set(answers) == {round * 64 + id for id in range(1, 65)}
    state = settled(process)
    # 64 answers may wait at once when the client is slower than the handlers, but no more than that.
    assert state["peak"] - before < 64 * 3 * MIB
    assert process.end() == (0, b"")


def test_handlers_that_change_the_server(process: Process) -> None:
    listen = request(
        9_000,
        "subscriptions/listen",
        {"notifications": {"resourceSubscriptions": ["s://watched"], "resourcesListChanged": True}},
    )
    process.write(listen)
    process.messages(1)
    process.write(b"".join(read(id, f"s://change/{id}", progressToken=id) for id in range(1, 401)))
    answered, updated = set(), 0
    while len(answered) < 400:
        (message,) = process.messages(1)
        if "id" in message:
            assert "result" in message, message
            answered.add(message["id"])
        else:
            updated += message["method"].endswith("updated")
    assert updated > 0
    process.write(cancel(9_000))
    drain(process)
    settled(process)


def test_a_flood_of_reads_and_cancels_against_sleeping_handlers(process: Process) -> None:
    choice = random.Random(4711)
    kinds = ["s://sleep/2", "s://asleep/2", "s://def/x", "s://async/x", "s://later/x", "s://inline/x"]
    expected = set()
    for start in range(0, 5_000, 100):
        lines = b""
        for id in range(start + 1, start + 101):
            lines += read(id, choice.choice(kinds))
            if choice.random() < 0.7:
                lines += cancel(id)
            else:
                expected.add(id)
        process.write(lines)
    answered: set[int] = set()
    while not expected <= answered:
        (message,) = process.messages(1)
        answered.add(message["id"])
        # A full table is told, never waited for.
        assert "result" in message or "in flight" in message["error"]["message"]
    drain(process)
    state = settled(process)
    assert state["threads"] < 45


def test_a_client_that_never_reads(process: Process) -> None:
    before = process.value("s://state")["peak"]
    stop = threading.Event()

    def write() -> None:
        id = 0
        while not stop.is_set():
            id += 1
            try:
                process.write(read(id, f"s://{('def', 'async', 'inline', 'big')[id % 4]}/{id}"))
            except (BrokenPipeError, ValueError):
                return

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    time.sleep(2)
    # The server has stopped reading: the writer is stuck, and what waits is bounded.
    peak = peak_of(process)
    assert peak - before < 400 * MIB
    time.sleep(1)
    assert peak_of(process) - peak < 8 * MIB
    stop.set()
    process.process.kill()
    writer.join(10)
    assert not writer.is_alive()


def peak_of(process: Process) -> int:
    status = Path(f"/proc/{process.process.pid}/status").read_text("utf-8")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def drain(process: Process) -> None:
    """Reads what is left of answers, up to one that is asked for now."""
    process.write(read(0, "s://inline/marker"))
    while True:
        (message,) = process.messages(1)
        if message.get("id") == 0:
            return


def test_long_conversations_keep_nothing(process: Process) -> None:
    for kind in ("def", "async", "later", "inline"):
        process.write(b"".join(read(id, f"s://{kind}/{id}") for id in range(1, 1_001)))
        process.answers(1_000)
    first = settled(process)
    for _ in range(10):
        process.write(b"".join(read(id, f"s://{k}/{id}") for id, k in enumerate(["def", "later"] * 500, 1)))
        process.answers(1_000)
    last = settled(process)
    assert last["peak"] - first["peak"] < 16 * MIB
