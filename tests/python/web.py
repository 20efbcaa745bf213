"""A conformance server over HTTP, as a process of its own."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from ports import reserved_port
from process import PATIENCE, RUN_SERVER


@contextmanager
def serving(language: str, way: str = "--http", *, port: int | None = None) -> Iterator[str]:
    """The URL of a fresh server, ended with the block; `port` is one that the caller has reserved."""
    with nullcontext(port) if port else reserved_port() as own:
        process = subprocess.Popen([RUN_SERVER, language, way, str(own)], stdin=subprocess.DEVNULL)
        try:
            _wait(process, own)
            yield f"http://127.0.0.1:{own}/mcp"
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
