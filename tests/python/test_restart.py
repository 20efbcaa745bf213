"""A server ends under the official client and another one comes in its place: what was watched is watched again."""

import asyncio
from contextlib import ExitStack

import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.subscriptions import ResourceUpdated
from ports import reserved_port
from process import build
from web import serving

MODERN, LEGACY = "2026-07-28", "legacy"
WATCHED = "test://watched-resource"
TRIGGER = "test://trigger/updated"
PATIENCE = 20.0

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


@pytest.fixture(params=["rust", "python", "node"])
def language(request: pytest.FixtureRequest) -> str:
    build(request.param)
    return str(request.param)


class Serving:
    """A server at one address, which can be restarted."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._reserved, self._stack = ExitStack(), ExitStack()
        self._port = self._reserved.enter_context(reserved_port())
        self.url = self._start()

    def __enter__(self) -> "Serving":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._reserved.close()

    def restart(self) -> None:
        self._stack.close()
        self._start()

    def _start(self) -> str:
        return self._stack.enter_context(serving(self._language, port=self._port))


async def test_a_listen_is_sent_again(language: str) -> None:
    """R-094, R-096, R-099: the same client goes on, for nothing of it is kept by the server."""
    with Serving(language) as server:
        async with Client(server.url, mode=MODERN, cache=None) as client:
            async with client.listen(resource_subscriptions=[WATCHED]) as subscription:
                await client.read_resource(TRIGGER)
                assert await anext(subscription) == ResourceUpdated(WATCHED)
                await asyncio.to_thread(server.restart)
                with pytest.raises(StopAsyncIteration):
                    async with asyncio.timeout(PATIENCE):
                        await anext(subscription)
            async with client.listen(resource_subscriptions=[WATCHED]) as subscription:
                await client.read_resource(TRIGGER)
                assert await anext(subscription) == ResourceUpdated(WATCHED)


async def test_a_session_is_begun_again(language: str) -> None:
    """R-084, R-171: the old session is unknown, and a new one subscribes."""
    heard: asyncio.Queue[object] = asyncio.Queue()

    async def on_message(message: object) -> None:
        heard.put_nowait(message)

    async def watch(client: Client) -> None:
        await client.subscribe_resource(WATCHED)
        await client.read_resource(TRIGGER)
        async with asyncio.timeout(PATIENCE):
            while not isinstance(await heard.get(), types.ResourceUpdatedNotification):
                pass

    with Serving(language) as server:
        async with Client(server.url, mode=LEGACY, cache=None, message_handler=on_message) as client:
            await watch(client)
            await asyncio.to_thread(server.restart)
            with pytest.raises(MCPError):
                await client.read_resource(TRIGGER)
        async with Client(server.url, mode=LEGACY, cache=None, message_handler=on_message) as client:
            await watch(client)
