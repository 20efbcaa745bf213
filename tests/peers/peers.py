"""Servers written with other SDKs, and with ours, that all serve the same fixture. Our client is tested against them.

`PEERS` says how to start each server, which eras it serves, and what it lacks with the reason. `ensure` installs or
builds what is missing; from a shell, run `.venv/bin/python tests/peers/peers.py [NAME…]`.

The fixture, each resource with a name and a MIME type:

- `peer://static`: the text "static text"; `peer://json`: `{"a": 1, "b": [true, null]}`; `peer://blob`: bytes 0 to 255
- `peer://counter`: a number; reading `peer://touch` increments it and notifies its subscribers
- `peer://slow`: increments the number, and answers after 30 s
- `peer://r/0` to `peer://r/249`: "resource 0" and so on
- the template `peer://item/{id}`: "item ID"; `id` is completed with alpha, beta and gamma
- `peer://none` does not exist: each SDK answers with its own error
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
FASTMCP = TARGET / "peers" / "fastmcp"
RMCP = TARGET / "rmcp"
NODE = os.environ.get("NODE", "node")

LEGACY: Literal["2025-11-25"] = "2025-11-25"
MODERN: Literal["2026-07-28"] = "2026-07-28"
Era: TypeAlias = Literal["2025-11-25", "2026-07-28"]
Transport: TypeAlias = Literal["stdio", "http"]

UNSERVED = "MCPServer answers resources/subscribe with -32601; only the low-level Server can serve it"
NO_UPDATES = "FastMCP has no API for updates; it answers subscribe and listen with -32601"
STATELESS = "legacy HTTP has no session and no GET stream: subscribe is accepted, but nothing can be pushed"


@dataclass(frozen=True)
class Peer:
    """One server and what a client can expect from it."""

    name: str
    program: tuple[str, ...]
    """The command line, without the transport."""
    eras: tuple[Era, ...] = (LEGACY, MODERN)
    """The eras that it serves, over both transports."""
    not_found: tuple[int, ...] = (-32602,)
    """The error code for a missing resource: one for each of `eras`, or a single one for all of them."""
    pages: bool = True
    """Whether `resources/list` is paged, 100 to a page. Otherwise one page has everything."""
    no_updates: dict[tuple[Era, Transport], str] = field(default_factory=dict)
    """The eras and transports in which no update of `peer://counter` is ever sent, with the reason."""

    def stdio(self) -> list[str]:
        """The command line that serves standard input and output."""
        return [*self.program, "stdio"]

    def http(self, port: int = 0) -> list[str]:
        """The command line that serves HTTP at `/mcp`. The server prints `listening PORT` once it accepts connections.

        Args:
            port: the port; 0 is any free one.
        """
        return [*self.program, "http", str(port)]

    def missing_code(self, era: Era) -> int:
        """The error code for a missing resource in this era."""
        return self.not_found[self.eras.index(era) % len(self.not_found)]


def _everywhere(reason: str, *eras: Era) -> dict[tuple[Era, Transport], str]:
    transports: tuple[Transport, ...] = ("stdio", "http")
    return {(era, transport): reason for era in eras for transport in transports}


def _here(program: str, file: str) -> tuple[str, ...]:
    return (program, str(HERE / file))


PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "python-sdk",
            _here(sys.executable, "python_sdk.py"),
            pages=False,
            no_updates=_everywhere(UNSERVED, LEGACY),
        ),
        Peer("python-sdk-low", _here(sys.executable, "python_sdk_low.py")),
        Peer(
            "fastmcp",
            _here(str(FASTMCP / "bin" / "python"), "fastmcp_server.py"),
            no_updates=_everywhere(NO_UPDATES, LEGACY, MODERN),
        ),
        Peer("ts-sdk", _here(NODE, "ts_sdk.mjs"), pages=False, no_updates={(LEGACY, "http"): STATELESS}),
        Peer("ts-sdk-1", _here(NODE, "ts_sdk_1.mjs"), eras=(LEGACY,), pages=False),
        Peer("rmcp", (str(RMCP / "debug" / "rmcp-server"),), not_found=(-32002, -32602)),
        Peer("ours-python", _here(sys.executable, "ours.py"), not_found=(-32002, -32602)),
        Peer("ours-node", _here(NODE, "ours.mjs"), not_found=(-32002, -32602)),
    )
}


def ensure(*names: str) -> None:
    """Installs or builds what `make setup` does not: FastMCP and the server on rmcp. Quick when they are there.

    Safe to call from several processes at once.

    Args:
        names: the peers to prepare. Default: all of them.

    Raises:
        KeyError: there is no such peer.
        subprocess.CalledProcessError: pip or cargo failed; their output is on standard error.
    """
    for name in names or PEERS:
        prepare = {"fastmcp": _install_fastmcp, "rmcp": _build_rmcp}.get(PEERS[name].name)
        if prepare is not None:
            prepare()


def _install_fastmcp() -> None:
    requirements = (HERE / "fastmcp.txt").read_text()
    environment("fastmcp", *(line for line in requirements.splitlines() if not line.startswith("#")))


def environment(name: str, *requirements: str) -> Path:
    """Makes the environment `name` below `target/peers` for Python, if it is not there.

    Safe to call from several processes at once.

    Returns:
        its interpreter.

    Raises:
        subprocess.CalledProcessError: pip failed; its output is on standard error.
    """
    folder = TARGET / "peers" / name
    python, ready = folder / "bin" / "python", folder / "ready"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists() or ready.read_text() != "\n".join(requirements):
            _run(sys.executable, "-m", "venv", "--clear", str(folder))
            _run(str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *requirements)
            ready.write_text("\n".join(requirements))
    return python


def _build_rmcp() -> None:
    # One package with the client of tests/conformance/run-rmcp, in the same target folder: the SDK is compiled once.
    manifest = ROOT / "tests" / "conformance" / "rmcp" / "Cargo.toml"
    _run("cargo", "build", "--quiet", "--locked", "--manifest-path", str(manifest), "--target-dir", str(RMCP))


def _run(*command: str) -> None:
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=True)


@contextmanager
def serving(peer: Peer) -> Iterator[str]:
    """Starts an HTTP server of this peer, yields its URL, and stops it at the end of the block.

    Raises:
        RuntimeError: the server ended before it accepted connections.
    """
    with subprocess.Popen(peer.http(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            said = process.stdout.readline().split()
            if said[:1] != ["listening"]:
                raise RuntimeError(f"{peer.name} printed {said} instead of its port, see its standard error")
            yield f"http://127.0.0.1:{said[1]}/mcp"
        finally:
            process.terminate()


if __name__ == "__main__":
    ensure(*sys.argv[1:])
