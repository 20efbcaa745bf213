"""A conformance server as a process, spoken to over its pipes.

Knows nothing of any language: a server is what `tests/conformance/run-server LANGUAGE --stdio` starts.
"""

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from socket import SHUT_WR, socketpair
from socket import socket as Socket
from typing import Any, TypeAlias

from vectors import MODERN, ROOT, check_message

RUN_SERVER = ROOT / "tests" / "conformance" / "run-server"
"""Exit codes: there is no server in this language, or it was not built."""
PATIENCE = 30.0

Message: TypeAlias = dict[str, Any]
Process: TypeAlias = "subprocess.Popen[bytes]"


def refused_at_start(program: Path, *words: str, at: Path | None = None) -> str:
    """What `serve` writes to stderr when it cannot serve these words: it ends with status 2, though stdin is open."""
    pipe = subprocess.PIPE
    command = [program, "serve", *words]
    with subprocess.Popen(command, cwd=at, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.wait(60) == 2
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read() == ""
        return process.stderr.read()


class Server:
    """A running server. Every line that it writes must be a message, and valid under its revision's schema."""

    def __init__(self, command: list[str], *, socket: bool = False) -> None:
        self.process, self._input, self._output = (_on_socket if socket else _on_pipes)(command)
        self.negotiated: str | None = None
        self.asked: dict[str, Message] = {}
        self.lines: list[bytes] = []
        self.errors = b""
        self._messages: queue.Queue[Message | BaseException | None] = queue.Queue()
        self._kept: list[Message] = []
        self._reading = threading.Event()
        self._reading.set()
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._read, self._drain)]
        for thread in self._threads:
            thread.start()

    def write(self, data: bytes) -> None:
        """Writes bytes as they are."""
        self._input.write(data)
        self._input.flush()

    def send(self, message: object) -> None:
        """Writes one message."""
        if isinstance(message, dict) and "id" in message and "method" in message:
            self.asked[json.dumps(message["id"])] = message
        self.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def request(self, id: object, method: str, params: Message | None = None) -> None:
        """Sends a legacy request."""
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        self.send(message if params is None else message | {"params": params})

    def modern(
        self, id: object, method: str, params: Message | None = None, capabilities: Message | None = None
    ) -> None:
        """Sends a modern request."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": capabilities or {},
        }
        given = dict(params or {})
        self.request(id, method, given | {"_meta": meta | given.get("_meta", {})})

    def initialize(self, revision: str = "2025-11-25", capabilities: Message | None = None) -> Message:
        """Shakes hands."""
        info = {"name": "test", "version": "1"}
        params = {"protocolVersion": revision, "capabilities": capabilities or {}, "clientInfo": info}
        self.request("initialize", "initialize", params)
        result = self.response("initialize")["result"]
        self.negotiated = result["protocolVersion"]
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return dict(result)

    def next(self, timeout: float = PATIENCE) -> Message | None:
        """The next message, or `None` at the end of the output."""
        if self._kept:
            return self._kept.pop(0)
        message = self._messages.get(timeout=timeout)
        if isinstance(message, BaseException):
            raise message
        return message

    def response(self, id: object) -> Message:
        """The response with this id. Other messages are kept for `next`."""
        passed: list[Message] = []
        try:
            while True:
                message = self.next()
                assert message is not None, f"the output ended: {self.errors!r}"
                if message.get("id") == id and type(message.get("id")) is type(id) and "method" not in message:
                    return message
                passed.append(message)
        finally:
            self._kept[:0] = passed

    def ask(self, id: object, method: str, params: Message | None = None) -> Message:
        """Sends a modern request and takes its response."""
        self.modern(id, method, params)
        return self.response(id)

    def silent(self, seconds: float) -> bool:
        """Whether nothing comes for so long."""
        if self._kept:
            return False
        try:
            self._kept.append(self.next(seconds) or {})
        except queue.Empty:
            return True
        return False

    def pause(self, paused: bool) -> None:
        """Stops to read the output, or goes on."""
        if paused:
            self._reading.clear()
        else:
            self._reading.set()

    def end_input(self) -> None:
        """Closes the server's input."""
        self._input.close()

    def wait(self, timeout: float = PATIENCE) -> int:
        """Waits for the exit; its code."""
        code = self.process.wait(timeout)
        for thread in self._threads:
            thread.join(timeout)
        return code

    def rest(self) -> list[Message]:
        """The messages up to the end of the output."""
        messages = []
        while (message := self.next()) is not None:
            messages.append(message)
        return messages

    def memory(self) -> int:
        """Resident bytes of the process and those it started."""
        return sum(_resident(pid) for pid in _family(self.process.pid))

    def _read(self) -> None:
        for line in iter(self._output.readline, b""):
            self._reading.wait()
            try:
                self._messages.put(self._take(line))
            except BaseException as error:
                self._messages.put(error)
        self._messages.put(None)

    def _take(self, line: bytes) -> Message:
        """R-001, R-145, R-146: a line is one message in UTF-8."""
        self.lines.append(line if len(line) < 4096 else line[:4096])
        message = json.loads(line.decode("utf-8"))
        assert isinstance(message, dict), line
        assert line.endswith(b"\n"), line
        assert message["jsonrpc"] == "2.0", line
        asked = self.asked.get(json.dumps(message["id"])) if "id" in message else None
        if "id" in message and message["id"] is None:
            assert self.negotiated in ("2024-11-05", "2025-03-26", "2025-06-18"), "R-010"
        else:
            check_message(message, asked, self.negotiated)
        return message

    def _drain(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors += line


@contextmanager
def running(command: list[str], *, socket: bool = False) -> Iterator[Server]:
    """A server, ended at the latest with the block. With `socket` its standard input and output are one."""
    server = Server(command, socket=socket)
    try:
        yield server
    finally:
        server.pause(False)
        if server.process.poll() is None:
            server.process.kill()
        server.wait()
        for stream in (server._input, server._output, server.process.stderr):
            with suppress(OSError):
                if stream is not None:
                    stream.close()


def _on_pipes(command: list[str]) -> tuple[Process, Any, Any]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return process, process.stdin, process.stdout


def _on_socket(command: list[str]) -> tuple[Process, Any, Any]:
    ours, theirs = socketpair()
    with theirs:
        process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=subprocess.PIPE)
    return process, _Half(ours), ours.makefile("rb")


class _Half:
    """The writing half of a socket: closing it is the end of input for the other side."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self.write = socket.sendall

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Ends the input."""
        with suppress(OSError):
            self._socket.shutdown(SHUT_WR)
        self._socket.close()


def command(language: str) -> list[str]:
    """The command of the conformance server of a language."""
    return [str(RUN_SERVER), language, "--stdio"]


@cache
def build(language: str) -> None:
    """Starts the server of a language once, so that a later start does not wait for a compiler.

    Raises:
        RuntimeError: it does not start. A test that needs it fails: it is not left out.
    """
    ended = subprocess.run(command(language), stdin=subprocess.DEVNULL, capture_output=True, timeout=900, check=False)
    if ended.returncode:
        raise RuntimeError(f"{language}: exit status {ended.returncode}: {ended.stderr.decode().strip()}")


def eventually(holds: Any, seconds: float = PATIENCE) -> bool:
    """Whether it holds within the time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def thread_names(pid: int) -> list[str]:
    """The names of a process's threads. A thread that ends meanwhile is left out."""
    names = []
    for comm in Path(f"/proc/{pid}/task").glob("*/comm"):
        with suppress(FileNotFoundError, ProcessLookupError):
            names.append(comm.read_text().rstrip("\n"))
    return names


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(member for child in children for member in _family(int(child)))]


def _resident(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
