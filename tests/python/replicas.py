"""Processes of a server on a bus, each a program of its own: `replica.py`."""

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from brokers import PATIENCE
from ports import HOST, reserved_port

NAMES = "abc"


class Replica:
    """A process of the server."""

    def __init__(self, name: str, port: int, bus: str, folder: Path, *words: str, **options: Any) -> None:
        self.name, self.port, self.folder = name, port, folder
        python, guard = options.get("python", sys.executable), options.get("guard", {"deny": ["note://hidden*"]})
        path = folder / f"policy-{name}.json"
        path.write_text(json.dumps(guard))
        self._command = [python, str(Path(__file__).parent / "replica.py"), f"{port}", name, bus]
        self._command += [str(path), str(folder), *words]
        self.log = folder / f"log-{name}"
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1
            )
        wait_for(self.port, self.process, self.log)

    def tell(self, line: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def metric(self, name: str) -> float:
        text = json.loads(self.tell("metrics"))
        found = re.search(rf"^mcp_resources_bus_{name} (\S+)$", text, re.MULTILINE)
        assert found, text
        return float(found[1])

    def lines(self, word: str) -> list[str]:
        return [line for line in self.log.read_text("utf-8").splitlines() if word in line]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def wait_for(port: int, process: "subprocess.Popen[Any]", log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        assert process.poll() is None, log.read_text("utf-8")
        with suppress(OSError):
            socket.create_connection((HOST, port), 1).close()
            return
        assert time.monotonic() < end, log.read_text("utf-8")
        time.sleep(0.02)


@contextmanager
def replicas(bus: str, folder: Path, *words: str, names: str = NAMES, **options: Any) -> Iterator[list[Replica]]:
    """Processes on one bus, connected. `options`: the interpreter as `python`, the policy as `guard`."""
    with ExitStack() as stack:
        made: list[Replica] = []
        try:
            for name in names:
                replica = Replica(name, stack.enter_context(reserved_port()), bus, folder, *words, **options)
                made += [replica]  # one that does not start leaves those before it to be killed
            if bus != "none":
                for replica in made:
                    connected(replica)
            yield made
        finally:
            for replica in made:
                replica.kill()


def connected(replica: Replica, is_so: bool = True, patience: float = PATIENCE) -> None:
    end = time.monotonic() + patience
    while (replica.metric("connected") == 1) is not is_so:
        assert time.monotonic() < end, replica.log.read_text("utf-8")
        time.sleep(0.02)
