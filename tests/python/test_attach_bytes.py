"""What is not ours passes byte for byte: servers of both SDKs on pipes, with and without `attach`.

Tools, prompts, errors, progress, logs and questions of the SDK, in both eras.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from vectors import MODERN, ROOT
from wire import META

HERE = Path(__file__).parent
PYTHON = [sys.executable, str(HERE / "attached_app.py")]
SCRIPT = [os.environ.get("NODE", "node"), str(ROOT / "tests" / "node" / "attached-app.mjs")]
LEGACY = "2025-11-25"
PATIENCE = 30.0
Call = tuple[str, dict[str, Any]]

OF_PYTHON: list[Call] = [
    ("add", {"a": 2, "b": 3}),
    ("add", {"a": "two"}),
    ("steps", {"n": 2}),
    ("burn", {}),
    ("confirm", {}),
    ("absent", {}),
]
OF_SCRIPT: list[Call] = [
    ("echo", {"text": "hï\u2028"}),
    ("echo", {}),
    ("steps", {}),
    ("fail", {}),
    ("ask", {}),
    ("absent", {}),
]
SERVERS = {
    "mcp": ([*PYTHON, "mcp"], "app", OF_PYTHON),
    "fastmcp": ([*PYTHON, "fastmcp"], "app", OF_PYTHON),
    "TypeScript 2": ([*SCRIPT, "2"], "own", OF_SCRIPT),
    "TypeScript 1": ([*SCRIPT, "1"], "own", OF_SCRIPT),
}
SERVERS |= {
    f"{name}, in front": (command, "run" if name.startswith("TypeScript") else "resources", calls)
    for name, (command, _, calls) in SERVERS.items()
}
CASES = [
    (name, era)
    for name in SERVERS
    for era in (LEGACY, MODERN)
    if not (name.startswith("TypeScript 1") and era == MODERN)
]
ASKS = {"confirm", "ask"}
"""Tools that ask the client, which it can be before 2026-07-28 only."""


class Pipe:
    """A client that writes lines, and keeps those that it reads."""

    def __init__(self, command: list[str], era: str, stderr: int = subprocess.DEVNULL) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)
        self.era = era
        self.lines: list[bytes] = []

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, id: int | str, method: str, params: dict[str, Any]) -> bytes:
        """Sends a request, answers the questions that come before its answer, and keeps the lines in between."""
        meta: dict[str, Any] = {"progressToken": id}
        if self.era == MODERN:
            meta |= {META + "protocolVersion": MODERN, META + "clientCapabilities": {}, META + "logLevel": "debug"}
            meta[META + "clientInfo"] = {"name": "client", "version": "1"}
        self.send({"id": id, "method": method, "params": params | {"_meta": meta}})
        assert self.process.stdout is not None
        for line in iter(self.process.stdout.readline, b""):
            message = json.loads(line)
            if message.get("id") == id and "method" not in message:
                return line
            self.lines.append(line)
            if "id" in message and "method" in message:
                self.send({"id": message["id"], "result": {"action": "accept", "content": {"tea": "green"}}})
        raise AssertionError("the server has ended")

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


def recorded(command: list[str], era: str, calls: list[Call]) -> list[bytes]:
    pipe = Pipe(command, era)
    try:
        if era == MODERN:
            pipe.ask("hello", "server/discover", {})
        else:
            about = {"name": "client", "version": "1"}
            capabilities = {"elicitation": {}, "sampling": {}}
            params = {"protocolVersion": era, "capabilities": capabilities, "clientInfo": about}
            pipe.ask("hello", "initialize", params)
            pipe.send({"method": "notifications/initialized"})
            pipe.lines.append(pipe.ask(0, "ping", {}))
            pipe.lines.append(pipe.ask("level", "logging/setLevel", {"level": "debug"}))
        for number, method in enumerate(["tools/list", "prompts/list", "no/such"], 1):
            pipe.lines.append(pipe.ask(number, method, {}))
        for name in ("greet", "absent"):
            pipe.lines.append(pipe.ask(f"prompt {name}", "prompts/get", {"name": name, "arguments": {"name": "Ada"}}))
        for number, (name, arguments) in enumerate(calls):
            if era == LEGACY or name not in ASKS:
                pipe.lines.append(pipe.ask(f"call {number}", "tools/call", {"name": name, "arguments": arguments}))
    finally:
        pipe.close()
    # Attached, a change reaches those who subscribed, and nobody has.
    return [line for line in pipe.lines if json.loads(line).get("method") != "notifications/resources/updated"]


@pytest.mark.parametrize(("name", "era"), CASES)
def test_what_is_not_ours_passes_byte_for_byte(name: str, era: str) -> None:
    command, attached, calls = SERVERS[name]
    plain = recorded([*command, "plain"], era, calls)
    assert recorded([*command, attached], era, calls) == plain
    sent = [json.loads(line) for line in plain]
    assert any(message.get("method") == "notifications/progress" for message in sent)
    assert any("error" in message for message in sent)
    assert any(message.get("method") == "elicitation/create" for message in sent) is (era == LEGACY)
