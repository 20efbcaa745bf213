"""`stdio_server.py` as a process, spoken to over pipes or whatever else stands in for them."""

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("stdio_server.py")
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
PATIENCE = 60.0


def request(id: int, method: str, params: dict[str, Any], meta: dict[str, Any] | None = None) -> bytes:
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params | {"_meta": META | (meta or {})}}
    return json.dumps(message).encode() + b"\n"


def read(id: int, uri: str, **meta: Any) -> bytes:
    return request(id, "resources/read", {"uri": uri}, meta)


def cancel(id: int) -> bytes:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
    return json.dumps(message).encode() + b"\n"


class Process:
    """A running server; what it writes to standard error is collected in a file."""

    def __init__(self, arguments: list[str], errors: Path) -> None:
        self._errors = errors
        with errors.open("wb") as sink:
            self.process = subprocess.Popen(
                [sys.executable, str(SCRIPT), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sink
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input, self.output = self.process.stdin, self.process.stdout
        self._rest = b""

    def write(self, data: bytes) -> None:
        self.input.write(data)
        self.input.flush()

    def messages(self, count: int, patience: float = PATIENCE) -> list[dict[str, Any]]:
        """The next messages."""
        found: list[dict[str, Any]] = []
        until = time.monotonic() + patience
        with selectors.DefaultSelector() as selector:
            selector.register(self.output, selectors.EVENT_READ)
            while True:
                *lines, self._rest = self._rest.split(b"\n", count - len(found))
                found += [json.loads(line) for line in lines]
                if len(found) == count:
                    return found
                if not selector.select(until - time.monotonic()):
                    raise TimeoutError(f"{len(found)} of {count} messages; {self.errors()}")
                chunk = os.read(self.output.fileno(), 1 << 20)
                if not chunk:
                    raise EOFError(f"{len(found)} of {count} messages; {self.errors()}")
                self._rest += chunk

    def answers(self, count: int) -> dict[int, dict[str, Any]]:
        """The next answers, by id."""
        return {message["id"]: message for message in self.messages(count)}

    def text(self, uri: str, **meta: Any) -> str:
        """Reads one text."""
        self.write(read(0, uri, **meta))
        (answer,) = self.messages(1)
        return str(answer["result"]["contents"][0]["text"])

    def value(self, uri: str) -> dict[str, Any]:
        return dict(json.loads(self.text(uri)))

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self, patience: float = PATIENCE) -> tuple[int, bytes]:
        """Closes the input: the exit status, and what was left of the output."""
        if not self.input.closed:
            self.input.close()
        rest = self._rest + self.output.read()
        return self.process.wait(patience), rest

    def errors(self) -> str:
        return self._errors.read_text("utf-8", "replace")


@contextmanager
def running(errors: Path, *arguments: str) -> Iterator[Process]:
    process = Process(list(arguments), errors)
    try:
        yield process
    finally:
        process.process.kill()
        process.process.wait()
        with suppress(BrokenPipeError):
            process.input.close()
        process.output.close()
