"""Redis and NATS of a test's own: started on a port of this machine, and stopped by their process.

Each proves that it is the one that the test has started: another server at the port would not know its mark.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ports import HOST, reserved_port

PATHS = "/usr/sbin:/sbin:/usr/bin:/usr/local/bin"
REDIS = shutil.which("redis-server") or shutil.which("redis-server", path=PATHS)
NATS = shutil.which("nats-server") or shutil.which("nats-server", path=PATHS)
NO_REDIS = "redis-server is not installed"
NO_NATS = "nats-server is not installed"
"""The reasons of the tests that are left out without them; `.ci/run` installs them."""
PATIENCE = 30.0
PASSWORD = "hunter2-canary"


class Broker:
    """A running broker."""

    def __init__(self, kind: str, port: int, folder: Path, words: Sequence[str] = ()) -> None:
        self.kind, self.port, self.folder = kind, port, folder
        self._words = [*words]
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"{self.kind}://{HOST}:{self.port}"

    def start(self) -> None:
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen(self._command(), stdout=log, stderr=log, cwd=self.folder)
        log.close()
        end = time.monotonic() + PATIENCE
        while True:
            with suppress(OSError, ValueError, IndexError):
                if self._own() == self.process.pid:
                    return
            text = (self.folder / "log").read_text("utf-8", "replace")
            assert self.process.poll() is None, text
            assert time.monotonic() < end, text
            time.sleep(0.02)

    def kill(self) -> None:
        """Ends it at once, without a goodbye."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(PATIENCE)
            self.process = None

    def pause(self, paused: bool) -> None:
        """Stops it: it accepts connections, and never answers. Or lets it go on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP if paused else signal.SIGCONT)

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _own(self) -> int:
        """The process that serves the port."""
        raise NotImplementedError


class Redis(Broker):
    """A server of Redis that keeps its streams on a disk, so that a restart has them; unless `words` say otherwise."""

    def _command(self) -> list[str]:
        assert REDIS is not None
        return [
            REDIS, "--port", f"{self.port}", "--bind", HOST, "--dir", f"{self.folder}",
            *("--save", "", "--appendonly", "yes", "--appendfsync", "always"), *self._words,
        ]  # fmt: skip

    def _own(self) -> int:
        text = self.run("INFO", "server")
        lines = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        return int(lines["process_id"])

    def run(self, *words: str) -> str:
        """Runs one command. The text of its answer, whatever its form is."""
        commands: list[tuple[str, ...]] = [("AUTH", PASSWORD)] if "--requirepass" in self._words else []
        with socket.create_connection((HOST, self.port), 5) as connection, connection.makefile("rb") as answers:
            for command in [*commands, words]:
                parts = [f"${len(part.encode())}\r\n{part}\r\n" for part in command]
                connection.sendall(f"*{len(parts)}\r\n{''.join(parts)}".encode())
                answer = self._answer(answers)
            return answer

    def _answer(self, answers: BinaryIO) -> str:
        head = answers.readline().decode()
        if not head:
            raise OSError("the connection has ended")
        kind, rest = head[0], head[1:].strip()
        if kind == "$":
            return "" if rest == "-1" else answers.read(int(rest) + 2).decode()[:-2]
        if kind == "*":
            return "\n".join(self._answer(answers) for _ in range(int(rest)))
        return rest


class Nats(Broker):
    """A server of NATS with JetStream in its folder."""

    def _command(self) -> list[str]:
        assert NATS is not None
        return [NATS, "-a", HOST, "-p", f"{self.port}", "-P", f"{self.folder / 'pid'}", *self._words]

    def _own(self) -> int:
        with socket.create_connection((HOST, self.port), 5) as connection, connection.makefile("rb") as lines:
            verb, _, info = lines.readline().partition(b" ")
            assert verb == b"INFO"
            assert json.loads(info)["port"] == self.port
        return int((self.folder / "pid").read_text("utf-8"))

    def request(self, subject: str, body: str = "") -> dict[str, object]:
        """Asks JetStream."""
        with socket.create_connection((HOST, self.port), 5) as connection, connection.makefile("rb") as lines:
            lines.readline()
            reply = f"_INBOX.{os.getpid()}"
            text = f'CONNECT {{"verbose":false}}\r\nSUB {reply} 1\r\nPUB {subject} {reply} {len(body)}\r\n{body}\r\n'
            connection.sendall(text.encode())
            while not (line := lines.readline().decode()).startswith("MSG "):
                assert line, "the connection has ended"
            return dict(json.loads(lines.read(int(line.split()[-1]))))


@contextmanager
def redis(folder: Path, *words: str) -> Iterator[Redis]:
    """A server of Redis with these further words."""
    folder.mkdir(exist_ok=True)
    with reserved_port() as port:
        broker = Redis("redis", port, folder, words)
        try:
            yield broker
        finally:
            broker.kill()


@contextmanager
def nats(folder: Path, *words: str, jetstream: bool = True) -> Iterator[Nats]:
    """A server of NATS with these further words."""
    folder.mkdir(exist_ok=True)
    own = ["-js", "-sd", f"{folder / 'store'}"] if jetstream else []
    with reserved_port() as port:
        broker = Nats("nats", port, folder, [*own, *words])
        try:
            yield broker
        finally:
            broker.kill()
