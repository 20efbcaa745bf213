"""The servers in `tests/peers` serve what `peers.py` says they do, as seen by the official Python client."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated
from peering import COUNTER, LEGACY, LISTED, MODERN, PEERS, TRANSPORTS, UNTOLD, WAYS, Era, Peer, Transport, Way, ensure

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@asynccontextmanager
async def connected(way: Way, reached: dict[str, str], **options: Any) -> AsyncIterator[Client]:
    program, *arguments = way.peer.stdio()
    server: Any = StdioServerParameters(command=program, args=arguments)
    if way.transport == "http":
        server = reached[way.peer.name]
    mode: Any = "legacy" if way.era == LEGACY else MODERN
    async with Client(server, mode=mode, cache=None, **options) as client:
        yield client


async def text(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    return content.text


@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_a_peer_serves_the_fixture(way: Way, reached: dict[str, str]) -> None:
    heard: asyncio.Queue[object] = asyncio.Queue()

    async def on_message(message: object) -> None:
        heard.put_nowait(message)

    async with connected(way, reached, message_handler=on_message) as client:
        assert client.protocol_version == way.era
        await gives_up(client)  # first: the official client fails if an answer to what it cancelled comes as it closes
        await lists(client, way.peer)
        await reads(client, way)
        await completes(client)
        if way.untold:
            with pytest.raises((MCPError, TimeoutError)):
                await asyncio.wait_for(tells(client, way.era, heard), UNTOLD)
        else:
            await tells(client, way.era, heard)


async def lists(client: Client, peer: Peer) -> None:
    found: list[types.Resource] = []
    cursor, pages = None, 0
    while pages == 0 or cursor is not None:
        page = await client.list_resources(cursor=cursor)
        found += page.resources
        cursor, pages = page.next_cursor, pages + 1
    assert {resource.uri for resource in found} == LISTED
    assert len(found) == len(LISTED)
    assert (pages > 1) == peer.pages
    described = {resource.uri: (resource.name, resource.mime_type) for resource in found}
    assert described["peer://json"] == ("json", "application/json")
    assert described["peer://r/249"] == ("r-249", "text/plain")
    (template,) = (await client.list_resource_templates()).resource_templates
    assert (template.uri_template, template.name, template.mime_type) == ("peer://item/{id}", "item", "text/plain")


async def reads(client: Client, way: Way) -> None:
    assert await text(client, "peer://static") == "static text"
    assert json.loads(await text(client, "peer://json")) == {"a": 1, "b": [True, None]}
    (blob,) = (await client.read_resource("peer://blob")).contents
    assert isinstance(blob, types.BlobResourceContents)
    assert (blob.mime_type, base64.b64decode(blob.blob)) == ("application/octet-stream", bytes(range(256)))
    assert await text(client, "peer://item/7") == "item 7"
    assert await text(client, "peer://r/249") == "resource 249"
    with pytest.raises(MCPError) as caught:
        await client.read_resource("peer://none")
    assert caught.value.error.code == way.peer.missing_code(way.era)


async def completes(client: Client) -> None:
    reference = types.ResourceTemplateReference(uri="peer://item/{id}")
    for prefix, words in (("", ["alpha", "beta", "gamma"]), ("b", ["beta"]), ("x", [])):
        answer = await client.complete(reference, {"name": "id", "value": prefix})
        assert answer.completion.values == words


async def tells(client: Client, era: Era, heard: asyncio.Queue[object]) -> None:
    """An update reaches its subscriber."""
    before = int(await text(client, COUNTER))
    if era == MODERN:
        async with client.listen(resource_subscriptions=[COUNTER]) as subscription:
            # rmcp acknowledges a listen before it listens.
            told = asyncio.ensure_future(anext(subscription))
            try:
                while not told.done():
                    await text(client, "peer://touch")
                    await asyncio.wait([told], timeout=0.05)
                assert await told == ResourceUpdated(COUNTER)
            finally:
                told.cancel()
    else:
        await client.subscribe_resource(COUNTER)
        # Most servers drop updates until the client's GET stream is open, and the client does not say when it is.
        while heard.empty():
            await text(client, "peer://touch")
            await asyncio.sleep(0.02)
        updated = await heard.get()
        assert isinstance(updated, types.ResourceUpdatedNotification)
        assert updated.params.uri == COUNTER
        await client.unsubscribe_resource(COUNTER)
    assert int(await text(client, COUNTER)) > before


async def gives_up(client: Client) -> None:
    """A slow read does not delay others, and can be cancelled."""
    before = await text(client, COUNTER)
    slow = asyncio.create_task(text(client, "peer://slow"))
    while await text(client, COUNTER) == before:  # a cancellation that overtakes its request is void
        await asyncio.sleep(0.01)
    assert await text(client, "peer://static") == "static text"
    assert not slow.done()
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert await text(client, "peer://static") == "static text"


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_legacy_peer_refuses_the_modern_era(transport: Transport, reached: dict[str, str]) -> None:
    async with connected(Way(PEERS["ts-sdk-1"], transport, MODERN), reached) as client:
        with pytest.raises(MCPError):
            await client.session.send_discover(MODERN)


def test_what_a_peer_needs_is_installed_once() -> None:
    ensure()
    programs = [Path(PEERS[name].program[0]) for name in ("fastmcp", "rmcp")]
    before = [program.lstat().st_mtime_ns for program in programs]
    ensure()
    assert [program.lstat().st_mtime_ns for program in programs] == before
