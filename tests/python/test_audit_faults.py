"""The audit log when its process is killed, and when its disk is full."""

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
from process import Server, eventually, running
from test_audit import SCHEMA

PROGRAM = """
import sys
from mcp_resources import Resource, ResourceServer

server = ResourceServer("audited", version="1", audit=sys.argv[1])
server.add_resource(Resource("audit://text"), text="text")
server.run()
"""
LIMIT = 16 * 1024
"""How large a file may get, in bytes. To the process that is a disk without room."""


def command(log: Path) -> list[str]:
    return [sys.executable, "-c", PROGRAM, str(log)]


def read(server: Server, number: int) -> None:
    server.modern(number, "resources/read", {"uri": "audit://text"})
    assert server.response(number)["result"]["contents"][0]["text"] == "text"


def entry(line: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line)
    jsonschema.validate(found, SCHEMA)
    return found


def test_a_process_that_is_killed_leaves_whole_lines(tmp_path: Path) -> None:
    """S-19: what was written stays readable, and the next process goes on behind it."""
    log = tmp_path / "audit.jsonl"
    with running(command(log)) as server:
        for number in range(200):
            read(server, number)
        assert eventually(lambda: log.exists() and log.read_bytes().count(b"\n") > 10)
        server.process.kill()
        server.process.wait()
    *whole, torn = log.read_bytes().split(b"\n")
    assert len([entry(line) for line in whole]) > 10
    with running(command(log)) as server:
        read(server, 1)
        server.end_input()
        assert server.wait() == 0
    lines = log.read_bytes().split(b"\n")
    assert lines[: len(whole)] == whole
    # At most the one line that was being written is lost; the next one does not follow it on the same line.
    assert [entry(line)["uri"] for line in lines[len(whole) + bool(torn) : -1]] == ["audit://text"]


def test_a_full_disk_stops_the_log_and_not_the_server(tmp_path: Path) -> None:
    """S-19: requests are answered, the failure is reported, and no line is cut in the middle of the log."""
    log = tmp_path / "audit.jsonl"
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({LIMIT}, {LIMIT}))\n"
    with running([sys.executable, "-c", limited + PROGRAM, str(log)]) as server:
        for number in range(400):
            read(server, number)
        assert eventually(lambda: b"the audit log cannot be written" in server.errors), server.errors
        read(server, 400)
        server.end_input()
        assert server.wait() == 0
    data = log.read_bytes()
    assert 0 < len(data) <= LIMIT
    assert data.endswith(b"\n")
    for line in data.splitlines():
        entry(line)


def test_a_log_that_is_rotated_loses_nothing(tmp_path: Path) -> None:
    """S-19: after a move the next record makes a new file; the two have every request."""
    log, old = tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.1"
    with running(command(log)) as server:
        for number in range(100):
            read(server, number)
            if number == 50:
                assert eventually(lambda: log.exists() and log.stat().st_size > 0)
                log.rename(old)
        server.end_input()
        assert server.wait() == 0
    assert log.stat().st_mode & 0o777 == 0o600
    uris = [entry(line)["uri"] for path in (old, log) for line in path.read_bytes().splitlines()]
    assert uris.count("audit://text") == 100
