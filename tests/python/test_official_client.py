"""The official Python client against the fixture servers, over pipes and over HTTP, in both eras."""

import asyncio
import base64
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated
from process import build, command
from web import serving

SERVER: Any = ""
MODERN, LEGACY = "2026-07-28", "legacy"
WATCHED = "test://watched-resource"

SERVERS = ["rust", "rust --http", "python", "python --http", "python --asgi", "node", "node --http", "node --handler"]
SSE = ["rust --sse", "python --sse", "python --asgi-sse", "node --sse"]
"""The transport of 2024-11-05, which the client still has (R-191, R-192, R-193). Only for legacy revisions."""

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.parametrize(
        ("server", "mode"),
        [(server, mode) for server in SERVERS for mode in (LEGACY, MODERN)] + [(server, LEGACY) for server in SSE],
        indirect=["server"],
    ),
]


@pytest.fixture(autouse=True)
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    language, _, way = request.param.partition(" ")
    build(language)
    with serving(language, way) if way else nullcontext(_on_pipes(language)) as reached:
        found = sse_client(str(reached).replace("/mcp", "/sse")) if request.param in SSE else reached
        monkeypatch.setattr(sys.modules[__name__], "SERVER", found)
        yield


def _on_pipes(language: str) -> StdioServerParameters:
    program, *arguments = command(language)
    return StdioServerParameters(command=program, args=arguments)


@asynccontextmanager
async def connected(mode: str, **options: Any) -> AsyncIterator[Client]:
    async with Client(SERVER, mode=mode, cache=None, **options) as client:
        yield client


async def all_resources(client: Client) -> list[types.Resource]:
    found: list[types.Resource] = []
    cursor = None
    while True:
        page = await client.list_resources(cursor=cursor)
        assert len(page.resources) <= 20
        found += page.resources
        cursor = page.next_cursor
        if cursor is None:
            return found


async def read(client: Client, uri: str) -> list[types.TextResourceContents | types.BlobResourceContents]:
    return (await client.read_resource(uri)).contents


async def text(client: Client, uri: str) -> str:
    (content,) = await read(client, uri)
    assert isinstance(content, types.TextResourceContents)
    return content.text


async def test_it_walks_the_lists(mode: str) -> None:
    async with connected(mode) as client:
        resources = {resource.uri: resource for resource in await all_resources(client)}
        assert len([uri for uri in resources if uri.startswith("test://page/")]) == 60
        annotated = resources["test://annotated"]
        assert (annotated.title, annotated.size, annotated.annotations.priority) == ("Annotated Resource", 11, 0.8)
        templates: list[str] = []
        cursor = None
        while True:
            page = await client.list_resource_templates(cursor=cursor)
            templates += [template.uri_template for template in page.resource_templates]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert len(templates) == len(set(templates)) == 35


async def test_it_reads(mode: str) -> None:
    async with connected(mode) as client:
        assert "世界! 🦀" in await text(client, "test://unicode")
        assert await text(client, "test://empty-text") == ""
        assert await text(client, "test://large-text") == "abcdefghij" * 100_000
        (blob,) = await read(client, "test://all-bytes")
        assert isinstance(blob, types.BlobResourceContents)
        assert base64.b64decode(blob.blob, validate=True) == bytes(range(256))
        assert [content.uri for content in await read(client, "test://multi")] == ["test://multi/a", "test://multi/b"]
        assert await text(client, "test://users/alice/files/a1.txt") == "alice:a1.txt"
        assert await text(client, "test://path/a/b/c") == "a/b/c"
        slow = [text(client, f"test://slow/{ms}") for ms in (120, 80, 40)]
        assert await asyncio.gather(*slow) == ["slept 120", "slept 80", "slept 40"]


async def test_it_is_told_what_is_wrong(mode: str) -> None:
    async with connected(mode) as client:
        for uri, code in (
            ("test://nothing", -32602 if mode == MODERN else -32002),
            ("test://slow/soon", -32602),
            ("test://error", -32603),
        ):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(uri)
            assert caught.value.error.code == code
            assert "secret" not in str(caught.value.error)


async def test_it_completes(mode: str) -> None:
    reference = types.ResourceTemplateReference(uri="test://users/{user}/files/{file}")
    async with connected(mode) as client:
        answer = await client.complete(reference, {"name": "user", "value": "b"})
        assert answer.completion.values == ["bob"]
        answer = await client.complete(reference, {"name": "file", "value": "a"}, context_arguments={"user": "alice"})
        assert answer.completion.values == ["a1.txt", "a2.txt"]


async def test_it_hears_of_changes(mode: str) -> None:
    heard: asyncio.Queue[object] = asyncio.Queue()

    async def on_message(message: object) -> None:
        heard.put_nowait(message)

    async with connected(mode, message_handler=on_message) as client:
        before = await text(client, WATCHED)
        if mode == MODERN:
            async with client.listen(resource_subscriptions=[WATCHED], resources_list_changed=True) as subscription:
                await text(client, "test://trigger/updated")
                assert await anext(subscription) == ResourceUpdated(WATCHED)
                await text(client, "test://trigger/list-changed")
                assert await anext(subscription) == ResourcesListChanged()
        else:
            await client.subscribe_resource(WATCHED)
            await text(client, "test://trigger/updated")
            updated = await heard.get()
            assert isinstance(updated, types.ResourceUpdatedNotification)
            assert updated.params.uri == WATCHED
            await client.unsubscribe_resource(WATCHED)
            await text(client, "test://trigger/list-changed")
            assert isinstance(await heard.get(), types.ResourceListChangedNotification)
        assert await text(client, WATCHED) != before
        assert await text(client, "test://dynamic") == "dynamic"
