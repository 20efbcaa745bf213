"""The examples of `attach`, one for each SDK: on stdio and over HTTP with tokens, asked by the official client."""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack
from typing import Any

import httpx2 as httpx
import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated
from test_attach_hosts import serving
from vectors import ROOT

LEGACY, MODERN = "legacy", "2026-07-28"
NODE = os.environ.get("NODE", "node")
EXAMPLES = {
    "mcpserver": (sys.executable, "mcpserver.py"),
    "fastmcp": (sys.executable, "fastmcp_server.py"),
    "TypeScript 2": (NODE, "typescript_2.mjs"),
    "TypeScript 1": (NODE, "typescript_1.mjs"),
}
CASES = [(name, mode) for name in EXAMPLES for mode in (LEGACY, MODERN) if (name, mode) != ("TypeScript 1", MODERN)]
ORDERS = ["shop://orders/1", "shop://orders/2"]

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


def command(name: str) -> tuple[str, str]:
    program, file = EXAMPLES[name]
    return program, str(ROOT / "examples" / "attach" / file)


async def row(client: Client, uri: str) -> Any:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    return json.loads(content.text)


async def listed(client: Client) -> list[str]:
    return sorted(str(resource.uri) for resource in (await client.list_resources()).resources)


async def rename(client: Client, id: str, name: str) -> None:
    result = await client.call_tool("rename", {"id": id, "name": name})
    assert isinstance(result.content[0], types.TextContent)
    assert result.content[0].text == f"Order {id} is {name} now."


@pytest.mark.parametrize(("name", "mode"), CASES)
async def test_a_watch_sees_a_row_that_a_tool_has_changed(name: str, mode: str) -> None:
    """S-02: on stdio, with the tool and the prompt of the server."""
    updates: asyncio.Queue[str] = asyncio.Queue()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            updates.put_nowait(message.params.uri)

    program, file = command(name)
    server = StdioServerParameters(command=program, args=[file], env=dict(os.environ))
    async with Client(server, mode=mode, cache=None, message_handler=hear) as client:
        assert await listed(client) == ORDERS
        prompt = await client.get_prompt("recommend", {"taste": "smoke"})
        assert "smoke" in str(prompt.messages[0].content)
        assert await row(client, ORDERS[0]) == {"id": "1", "name": "tea"}
        if mode == LEGACY:
            await client.subscribe_resource(ORDERS[0])
            await rename(client, "1", "lapsang")
            assert await asyncio.wait_for(updates.get(), 10) == ORDERS[0]
        else:
            async with client.listen(resource_subscriptions=[ORDERS[0]]) as changes:
                await rename(client, "1", "lapsang")
                assert await asyncio.wait_for(anext(aiter(changes)), 10) == ResourceUpdated(ORDERS[0])
        assert await row(client, ORDERS[0]) == {"id": "1", "name": "lapsang"}
        with pytest.raises(MCPError):
            await client.read_resource("shop://orders/9")


@pytest.mark.parametrize(("name", "mode"), CASES)
async def test_two_tokens_see_two_lists(name: str, mode: str) -> None:
    """S-02: over HTTP; the server verifies the tokens, and the policy of the resources uses their owners."""
    with serving("mcp", *command(name)) as url:
        async with httpx.AsyncClient() as nobody:
            assert (await nobody.post(url, json={})).status_code == 401
        async with AsyncExitStack() as stack:
            clients = {}
            for token in ("ada", "bob"):
                http = await stack.enter_async_context(httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}))
                transport = streamable_http_client(url, http_client=http)
                clients[token] = await stack.enter_async_context(Client(transport, mode=mode, cache=None))
            assert await listed(clients["ada"]) == ORDERS
            assert await listed(clients["bob"]) == ORDERS[:1]
            with pytest.raises(MCPError):
                await clients["bob"].read_resource(ORDERS[1])
            await rename(clients["bob"], "2", "yerba")
            assert await row(clients["ada"], ORDERS[1]) == {"id": "2", "name": "yerba"}
