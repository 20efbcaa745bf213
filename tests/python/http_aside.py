"""A server of `http.server` beside a test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer
from typing import TypeVar

S = TypeVar("S", bound=HTTPServer)


@contextmanager
def serving_aside(server: S) -> Iterator[S]:
    """Serves on a thread until the end of the block, and closes the server's socket."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
