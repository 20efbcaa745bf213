"""What runs without an event loop of asyncio says so."""

from collections.abc import Coroutine
from typing import Any

import pytest
from mcp_resources import Client, ResourceServer, testing


def first_step(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Runs a coroutine as another runner would, such as trio: up to what it waits for first."""
    try:
        coroutine.send(None)
    finally:
        coroutine.close()


def test_another_runner_is_told_what_is_needed() -> None:
    """S-31: the error names asyncio, whatever is started."""
    server = ResourceServer("loops")
    asgi = server.asgi()

    async def nothing(*_: object) -> Any:
        raise AssertionError("it went on")

    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": [], "query_string": b""}
    for work in (
        server.serve_stdio(),
        server.serve_http(port=0),
        testing.Client(server).__aenter__(),
        Client(server).read("loops://x"),
        asgi(scope, nothing, nothing),
    ):
        with pytest.raises(RuntimeError, match=r"no event loop of asyncio is running here.*trio"):
            first_step(work)
