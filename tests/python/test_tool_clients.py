"""Tools and prompts through the official client and FastMCP's, in each era that they have, over stdio."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from peering import ensure
from vectors import ROOT

SERVER = str(Path(__file__).with_name("tool_server.py"))
MODERN, LEGACY = "2026-07-28", "legacy"

FASTMCP = """
import asyncio, json, sys
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

async def main():
    async with Client(StdioTransport(sys.argv[1], sys.argv[2:])) as client:
        tools = sorted(tool.name for tool in await client.list_tools())
        found = (await client.call_tool("find", {"state": "open"})).data
        paid = (await client.call_tool("pay", {"number": 7})).data
        count = (await client.call_tool("count")).data
        failed = await client.call_tool("pay", {"number": 9}, raise_on_error=False)
        listed = (await client.call_tool("list_resources")).content[0].text
        prompt = (await client.get_prompt("thanks", {"name": "Ada"})).messages[0].content.text
        print(json.dumps({
            "tools": tools, "found": [[one.number, one.state] if hasattr(one, "number") else one for one in found],
            "paid": [paid.number, paid.state], "count": count,
            "failed": [failed.is_error, failed.content[0].text], "listed": listed, "prompt": prompt,
        }))

asyncio.run(main())
"""


@asynccontextmanager
async def connected(mode: str) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(command=sys.executable, args=[SERVER])
    async with Client(parameters, mode=mode, cache=None) as client:
        yield client


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_the_official_client(mode: str) -> None:
    async with connected(mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"count", "find", "label", "list_resources", "pay", "read_resource"}
        assert tools["find"].title == "Orders"
        assert tools["find"].annotations is not None
        assert tools["find"].annotations.read_only_hint is True
        assert tools["find"].input_schema["properties"]["state"]["enum"] == ["open", "paid"]
        found = await client.call_tool("find", {"state": "open"})
        orders = [{"number": 7, "state": "open"}]
        assert found.structured_content == (orders if mode == MODERN else {"result": orders})
        assert json.loads(found.content[0].text) == orders  # type: ignore[union-attr]
        paid = await client.call_tool("pay", {"number": 7})
        assert paid.structured_content == {"number": 7, "state": "paid"}
        failed = await client.call_tool("pay", {"number": 9})
        assert (failed.is_error, failed.content[0].text) == (True, "There is no order 9.")  # type: ignore[union-attr]
        wrong = await client.call_tool("pay", {})
        assert wrong.content[0].text == "Invalid arguments for pay: number: it is required"  # type: ignore[union-attr]
        with pytest.raises(MCPError, match="Unknown tool: none"):
            await client.call_tool("none", {})
        link, image = (await client.call_tool("label", {"number": 7})).content
        assert (link.type, link.uri) == ("resource_link", "shop://orders/7")  # type: ignore[union-attr]
        assert (image.type, image.mime_type) == ("image", "image/png")  # type: ignore[union-attr]
        assert (await client.read_resource(link.uri)).contents[0].text == "paid"  # type: ignore[union-attr]
        prompts = (await client.list_prompts()).prompts
        assert [(one.name, [argument.name for argument in one.arguments or []]) for one in prompts] == [
            ("thanks", ["name", "tone"])
        ]
        prompt = await client.get_prompt("thanks", {"name": "Ada"})
        assert prompt.messages[0].content.text == "Thank Ada, friendly."  # type: ignore[union-attr]
        read = await client.call_tool("read_resource", {"uri": "shop://orders/8"})
        assert read.content[0].text == "paid"  # type: ignore[union-attr]


def test_fastmcp() -> None:
    """Its client makes objects of structured results, by the output schema."""
    ensure("fastmcp")
    python = ROOT / "target" / "peers" / "fastmcp" / "bin" / "python"
    command = [str(python), "-c", FASTMCP, sys.executable, SERVER]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "tools": ["count", "find", "label", "list_resources", "pay", "read_resource"],
        "found": [[7, "open"]],
        "paid": [7, "paid"],
        "count": 2,
        "failed": [True, "There is no order 9."],
        "listed": "shop://orders/{number} | order | text/plain",
        "prompt": "Thank Ada, friendly.",
    }
