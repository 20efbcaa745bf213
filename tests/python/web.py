"""A conformance server over HTTP, as a process of its own."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from process import PATIENCE, RUN_SERVER


@contextmanager
def serving(language: str, way: str = "--http", *, port: int | None = None) -> Iterator[str]:
    """The URL of a fresh server, ended with the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = port or probe.getsockname()[1]
    process = subprocess.Popen([RUN_SERVER, language, way, str(port)], stdin=subprocess.DEVNULL)
    try:
        _wait(process, port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _wait(process: "subprocess.Popen[bytes]", port: int) -> None:
    until = time.monotonic() + 4 * PATIENCE
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended: {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError("the server takes no connections")
