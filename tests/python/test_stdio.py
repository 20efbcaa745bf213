"""A real process over pipes: dispatch, back-pressure, the end, and what a handler may do to the descriptors."""

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from process import eventually
from stdio_process import SCRIPT, Process, cancel, read, request, running

LOOPS = ["asyncio", "uvloop"]
KINDS = ["def", "inline", "async", "later"]


@pytest.fixture(params=LOOPS)
def process(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Process]:
    with running(tmp_path / "errors", request.param) as process:
        yield process


def test_the_loop_is_the_one_asked_for(process: Process, request: pytest.FixtureRequest) -> None:
    assert process.value("s://state")["loop"] == request.node.callspec.params["process"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_handler_answers_in_bulk(process: Process, kind: str) -> None:
    process.write(b"".join(read(id, f"s://{kind}/{id}") for id in range(1, 501)))
    answers = process.answers(500)
    assert {id: answer["result"]["contents"][0]["text"] for id, answer in answers.items()} == {
        id: str(id) for id in range(1, 501)
    }
    assert process.end() == (0, b"")


def test_generators(process: Process) -> None:
    assert process.text("s://chunks/x") == "x" * 16_000
    process.write(read(1, "s://generated/y"))
    assert process.messages(1)[0]["result"]["contents"][0]["blob"].startswith("eXl5")


def test_input_in_single_bytes_and_without_a_last_newline(process: Process) -> None:
    """R-145."""
    line = read(1, "s://inline/a")
    for at in range(len(line)):
        process.write(line[at : at + 1])
    assert process.messages(1)[0]["id"] == 1
    process.write(read(2, "s://def/b").rstrip(b"\n"))
    status, rest = process.end()
    assert status == 0
    assert b'"id":2' in rest


def test_a_slow_handler_blocks_nobody(process: Process) -> None:
    """R-149."""
    process.text("s://def/warm")
    process.write(read(1, "s://held/x") + read(2, "s://aheld/x") + read(3, "s://def/a") + read(4, "s://async/a"))
    assert {message["id"] for message in process.messages(2)} == {3, 4}
    process.write(read(5, "s://open"))
    assert {message["id"] for message in process.messages(3)} == {1, 2, 5}


def test_slow_def_handlers_run_side_by_side(process: Process) -> None:
    process.text("s://def/warm")
    process.write(b"".join(read(id, f"s://six/{id}") for id in range(1, 7)))
    answers = process.answers(6)
    assert all("result" in answer for answer in answers.values())


def test_finished_replies_are_not_held_back_by_a_slow_one(process: Process) -> None:
    process.text("s://def/warm")
    process.write(read(1, "s://def/a") + read(2, "s://def/b") + read(3, "s://held/x"))
    assert {message["id"] for message in process.messages(2)} == {1, 2}
    process.write(read(4, "s://open"))
    assert {message["id"] for message in process.messages(2)} == {3, 4}


def test_cancelling(process: Process) -> None:
    process.write(read(1, "s://asleep/60000") + read(2, "s://sleep/200"))
    assert process.text("s://def/a") == "a"
    process.write(cancel(1) + cancel(2) + read(3, "s://sleep/60000") + cancel(3))
    assert process.text("s://def/b") == "b"
    assert eventually(lambda: "asleep ended" in process.errors())
    quiet = {"waiting": 0, "tasks": 2}
    assert eventually(lambda: process.value("s://state").items() >= quiet.items()), process.value("s://state")
    assert process.end() == (0, b"")


def test_what_is_in_flight_at_the_end_of_input_may_finish(process: Process) -> None:
    """R-150."""
    process.write(read(1, "s://asleep/200") + read(2, "s://sleep/200"))
    status, rest = process.end()
    assert status == 0
    assert (b'"id":1' in rest, b'"id":2' in rest) == (True, True)


def test_what_takes_longer_is_cancelled(process: Process) -> None:
    process.write(read(1, "s://asleep/60000") + read(2, "s://sleep/60000"))
    process.text("s://def/a")
    began = time.monotonic()
    assert process.end() == (0, b"")
    assert time.monotonic() - began < 5
    assert "asleep ended" in process.errors()


def test_a_signal_ends_listens_with_their_results(process: Process) -> None:
    """R-096, R-097."""
    process.write(request(1, "subscriptions/listen", {"notifications": {"resourceSubscriptions": ["s://watched"]}}))
    assert process.messages(1)[0]["method"].endswith("acknowledged")
    process.signal(signal.SIGTERM)
    result, cancelled = process.messages(2)
    assert (result["id"], result["result"]["resultType"]) == (1, "complete")
    assert cancelled["params"]["requestId"] == 1
    assert process.process.wait(60) == 0


def test_the_end_of_input_ends_listens_with_their_results(process: Process) -> None:
    """R-096, R-097."""
    process.write(request(1, "subscriptions/listen", {"notifications": {"resourceSubscriptions": ["s://watched"]}}))
    assert process.messages(1)[0]["method"].endswith("acknowledged")
    status, rest = process.end()
    result, cancelled = [json.loads(line) for line in rest.splitlines()]
    assert (status, result["id"], result["result"]["resultType"]) == (0, 1, "complete")
    assert cancelled["params"]["requestId"] == 1


def test_a_signal_while_idle(process: Process) -> None:
    process.text("s://def/a")
    process.signal(signal.SIGINT)
    assert process.process.wait(60) == 0
    assert "Traceback" not in process.errors()


def test_stray_output_and_processes_cannot_break_in(process: Process) -> None:
    """R-146."""
    assert process.text("s://print") == "quiet"
    assert "a stray print" in process.errors()
    assert "from a process" in process.errors()
    assert process.text("s://def/a") == "a"


def test_a_client_that_does_not_read_blocks_nothing(process: Process) -> None:
    process.write(b"".join(read(id, "s://big/x") for id in range(1, 65)))
    time.sleep(0.5)
    answers = process.answers(64)
    assert all(len(answer["result"]["contents"][0]["text"]) == 1_048_575 for answer in answers.values())
    assert process.end() == (0, b"")


def test_a_client_that_is_gone_ends_the_server(process: Process) -> None:
    process.output.close()
    process.write(read(1, "s://def/a"))
    assert process.process.wait(60) == 0
    assert "Traceback" not in process.errors()


def test_a_handler_that_holds_the_loop_is_named(process: Process) -> None:
    assert process.text("s://hold/150") == "held"
    assert process.text("s://spin/400") == "spun"
    for name in ("hold", "spin"):
        held = re.compile(f"{name}.*blocked the event loop|blocked the event loop.*{name}")
        assert eventually(lambda held=held: held.search(process.errors())), process.errors()


def test_sys_exit_in_an_inline_handler_ends_the_server_after_an_answer(process: Process) -> None:
    process.write(read(1, "s://exit"))
    assert process.messages(1)[0]["error"]["code"] == -32603
    assert process.process.wait(60) == 7


def test_a_line_that_is_too_long_is_refused_and_skipped(process: Process) -> None:
    """R-153."""
    process.write(b"x" * (5 << 20) + b"\n" + read(1, "s://def/a"))
    assert {message.get("id") for message in process.messages(2)} == {None, 1}


def test_embedded_in_another_program(tmp_path: Path) -> None:
    with running(tmp_path / "errors", "asyncio", "--embedded") as process:
        assert process.text("s://async/a") == "a"
        assert process.end() == (0, b"")
        assert "came back" in process.errors()


@pytest.mark.parametrize("loop", LOOPS)
def test_input_and_output_may_be_files(tmp_path: Path, loop: str) -> None:
    source, sink = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b"".join(read(id, f"s://{kind}/x") for id, kind in enumerate(KINDS)))
    with source.open("rb") as stdin, sink.open("wb") as stdout:
        stdout.write(b"kept\n")
        stdout.flush()
        ended = subprocess.run([sys.executable, str(SCRIPT), loop], stdin=stdin, stdout=stdout, timeout=60, check=False)
    assert ended.returncode == 0
    lines = sink.read_bytes().splitlines()
    assert lines[0] == b"kept"
    assert len(lines) == 1 + len(KINDS)


def test_a_loop_that_cannot_wait_for_descriptors(tmp_path: Path) -> None:
    with running(tmp_path / "errors", "without-readers") as process:
        for _ in range(3):
            process.write(b"".join(read(id, f"s://later/{id}") for id in range(1, 1_001)))
            assert len(process.answers(1_000)) == 1_000
        assert process.end() == (0, b"")


WITH_AUTH = """
from mcp_resources import Auth, Resource, ResourceServer, StaticTokens, Verified
server = ResourceServer("x")
server.add_resource(Resource("a://open"), text="open")
server.add_resource(Resource("a://scoped", scopes=["read"]), text="scoped")
tokens = StaticTokens({"token": Verified("ada", ["read"])})
auth = Auth("https://api.example.com/mcp", ["https://login.example.com"], tokens, required_scopes=["read"])
app = server.asgi(auth=auth)
server.run()
"""


def test_a_pipe_asks_for_no_token_and_gives_no_scopes() -> None:
    """R-195: an endpoint that asks for tokens has no effect on standard input and output of the same server."""
    lines = b"".join(read(1, f"a://{name}") for name in ("open", "scoped", "absent"))
    ended = subprocess.run([sys.executable, "-c", WITH_AUTH], input=lines, capture_output=True, timeout=60, check=True)
    opened, scoped, absent = map(json.loads, ended.stdout.splitlines())
    assert opened["result"]["contents"][0]["text"] == "open"
    assert "error" in scoped
    assert json.loads(json.dumps(scoped).replace("scoped", "absent")) == absent


def test_no_input_at_all(tmp_path: Path) -> None:
    del tmp_path
    ended = subprocess.run(
        [sys.executable, str(SCRIPT)], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, b"")


@pytest.mark.parametrize("loop", LOOPS)
def test_a_socket_as_other_runtimes_give_it(loop: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, subprocess.Popen([sys.executable, str(SCRIPT), loop], stdin=theirs, stdout=theirs) as process:
        theirs.close()
        ours.sendall(read(1, "s://big/x") + read(2, "s://async/a"))
        ours.shutdown(socket.SHUT_WR)
        received = b""
        while chunk := ours.recv(1 << 16):
            received += chunk
        assert received.count(b"\n") == 2
        assert process.wait(60) == 0


def test_a_terminal_keeps_its_flags() -> None:
    """The flag that output never blocks would belong to the terminal, and so to the shell."""
    controller, terminal = pty.openpty()
    before = os.get_blocking(terminal)
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT)], stdin=terminal, stdout=terminal, stderr=subprocess.DEVNULL
    )
    os.write(controller, read(1, "s://def/a"))
    received = b""
    while b'"text":"a"' not in received:
        received += os.read(controller, 1 << 16)
    assert os.get_blocking(terminal) == before
    process.terminate()
    assert process.wait(60) == 0
    os.close(controller)
    os.close(terminal)
