"""A gateway as a process, for tests: in front of stubs and of the servers of `tests/peers`."""

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, Self

import httpx2
from process import Server
from vectors import MODERN, check_message

STUB = str(Path(__file__).with_name("stub_upstream.py"))
PATIENCE = 30.0


def stub(name: str, *, entry: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """The entry of a stub in an `mcpServers` file; all of its resources are allowed unless `entry` says otherwise."""
    words = [STUB, json.dumps({"name": name, **spec})]
    return {"command": sys.executable, "args": words, "resources": "*", **(entry or {})}


def configured(folder: Path, servers: dict[str, Any], agents: dict[str, Any] | None = None, **more: Any) -> Path:
    """A file with these servers and agents, and with `more` members."""
    file = folder / "team.json"
    file.write_text(json.dumps({"mcpServers": servers} | ({} if agents is None else {"agents": agents}) | more))
    return file


def asked(log: Path, method: str | None = None) -> list[dict[str, Any]]:
    """What a stub was asked so far."""
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return [line for line in lines if method in (None, line["method"])]


class Start(Protocol):
    """The fixture `gateway`."""

    def __call__(
        self, servers: dict[str, Any], agents: dict[str, Any] | None = None, *words: str, **more: Any
    ) -> AbstractContextManager[Server]:
        """A gateway over stdio of these servers: `words` of its command line, and `more` members of its file."""
        ...


class Gateway:
    """A gateway over HTTP."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.said: list[str] = []
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        end = time.monotonic() + PATIENCE
        while not (found := [line for line in self.said if "serving at " in line]):
            assert process.poll() is None, self.said
            assert time.monotonic() < end, self.said
            time.sleep(0.01)
        self.url = found[0].rpartition(" ")[2]

    def _read(self) -> None:
        assert self.process.stderr is not None
        with suppress(ValueError):  # closed by the end of the block
            for line in self.process.stderr:
                self.said.append(line.rstrip("\n"))


@contextmanager
def over_http(program: Path, file: Path, *words: str) -> Iterator[Gateway]:
    """A gateway at a free port, ended by SIGTERM with status 0."""
    command = [program, "gateway", "--config", file, "--http", "0", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield Gateway(process)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
            assert process.stdout is not None
            assert process.stdout.read() == ""


def noting(command: list[str], note: Path) -> list[str]:
    """A command that writes its process' number into a file, and starts."""
    return ["sh", "-c", f"echo $$ >> {shlex.quote(str(note))}; exec {shlex.join(command)}"]


def is_there(pid: int) -> bool:
    """Whether a process runs: one that has ended, but was not waited for, does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def messages_of(answered: httpx2.Response) -> list[dict[str, Any]]:
    """The messages of a response: its body, or its events."""
    text = answered.text
    if answered.headers["content-type"].startswith("text/event-stream"):
        data = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
        return [json.loads(line) for line in data]
    return [json.loads(text)]


class Agent:
    """A modern client over HTTP with a token. Every message that it gets is checked against the schema."""

    def __init__(self, url: str, token: str | None) -> None:
        self.url, self.token = url, token

    def request(
        self,
        id: object,
        method: str,
        params: dict[str, Any] | None = None,
        capabilities: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The arguments of `httpx2.post` for a request."""
        given = params or {}
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": capabilities or {},
            **given.get("_meta", {}),
        }
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": method,
        }
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        if (name := given.get("uri") or given.get("name")) is not None:
            headers["Mcp-Name"] = name
        body = {"jsonrpc": "2.0", "id": id, "method": method, "params": given | {"_meta": meta}}
        return {"url": self.url, "json": body, "headers": headers, "timeout": 30}

    def ask(
        self,
        id: object,
        method: str,
        params: dict[str, Any] | None = None,
        capabilities: dict[str, Any] | None = None,
    ) -> Any:
        request = self.request(id, method, params, capabilities)
        answered = httpx2.post(**request)
        if answered.status_code in (401, 403):
            return answered.status_code
        messages = messages_of(answered)
        for message in messages:
            check_message(message, request["json"], None)
        return messages[-1]


class LegacyAgent:
    """A session of 2025-11-25 over HTTP with a token. Every message that it gets is checked against the schema."""

    def __init__(self, url: str, token: str, capabilities: dict[str, Any] | None = None) -> None:
        self.capabilities = capabilities or {}
        self.http = httpx2.Client(
            base_url=url,
            headers={"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {token}"},
            timeout=30,
        )

    def __enter__(self) -> Self:
        info = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": self.capabilities, "clientInfo": info}
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        answered = self.http.post("", json=body)
        check_message(messages_of(answered)[-1], body, "2025-11-25")
        self.http.headers["Mcp-Session-Id"] = answered.headers["mcp-session-id"]
        self.http.headers["MCP-Protocol-Version"] = "2025-11-25"
        self.http.post("", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def converse(self, id: object, tool: str, about: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Calls a tool that asks one question, and accepts with `about`. The question and the answer to the call."""
        params = {"name": tool, "arguments": {"about": about}}
        body = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
        heard: list[dict[str, Any]] = []
        with self.http.stream("POST", "", json=body) as answered:
            for line in answered.iter_lines():
                if line.startswith("data: {"):
                    heard.append(json.loads(line.removeprefix("data: ")))
                    if "method" in heard[-1]:
                        result = {"action": "accept", "content": {"said": about}}
                        self.http.post("", json={"jsonrpc": "2.0", "id": heard[-1]["id"], "result": result})
        asks, done = heard
        return asks, done

    def ask(self, id: object, method: str, params: dict[str, Any] | None = None) -> Any:
        body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}
        messages = messages_of(self.http.post("", json=body))
        for message in messages:
            check_message(message, body, "2025-11-25")
        return messages[-1]
