"""Tools with much of everything: what is bounded, what the client reads, and what the author is told."""

import asyncio
import logging
import sys
import threading
from pathlib import Path

import mcp
import pytest
from mcp.client.stdio import StdioServerParameters
from mcp_resources import ResourceServer
from mcp_resources.testing import Client, ServerError

# Above the default limits of a message (4 MiB) and of a result (16 MiB), in bytes.
MUCH = 10_000_000
VERY_MUCH = 100_000_000
MOST_TOOLS = 10_000

SERVER = """
from mcp_resources import ResourceServer

server = ResourceServer("bounds")


@server.tool
def count(text: str) -> str:
    return str(len(text))


server.run()
"""


@pytest.fixture
def server() -> ResourceServer:
    server = ResourceServer("bounds")

    @server.tool
    def count(text: str) -> str:
        return str(len(text))

    return server


async def call(client: Client, name: str, **arguments: object) -> str:
    result = await client.request("tools/call", {"name": name, "arguments": arguments})
    return str(result["content"][0]["text"])


async def test_ten_megabytes_of_arguments(server: ResourceServer, caplog: pytest.LogCaptureFixture) -> None:
    """S-60: the request gets its own error, and the author reads of the limit once."""
    async with Client(server) as client:
        with caplog.at_level(logging.WARNING):
            for _ in range(2):
                with pytest.raises(ServerError, match="Message too large") as caught:
                    await asyncio.wait_for(call(client, "count", text="x" * MUCH), 30)
                assert caught.value.code == -32600
        assert await call(client, "count", text="x" * 1_000_000) == "1000000"
    told = [record.getMessage() for record in caplog.records if "limit" in record.getMessage()]
    assert len(told) == 1
    assert 'larger than the limit "message" of 4194304 bytes' in told[0]


async def test_ten_megabytes_of_the_official_client(tmp_path: Path) -> None:
    """S-60: the client does not wait until its own time is over."""
    (tmp_path / "server.py").write_text(SERVER)
    target = StdioServerParameters(command=sys.executable, args=[str(tmp_path / "server.py")])
    for mode in ("legacy", "2026-07-28"):
        async with mcp.Client(target, mode=mode) as client:
            with pytest.raises(mcp.MCPError, match="Message too large"):
                await asyncio.wait_for(client.call_tool("count", {"text": "x" * MUCH}), 30)
            result = await client.call_tool("count", {"text": "still here"})
            assert result.content[0].text == "10"  # type: ignore[union-attr]


async def test_ten_thousand_tools() -> None:
    """S-60: all are listed, page by page; one more is an error that names the limit."""
    server = ResourceServer("bounds")
    for number in range(MOST_TOOLS):
        server.add_tool(lambda _arguments: "x", f"tool-{number}", input_schema={"type": "object"})
    with pytest.raises(Exception, match="tools") as caught:
        server.add_tool(lambda _arguments: "x", "one-more", input_schema={"type": "object"})
    assert str(MOST_TOOLS) in str(caught.value)
    async with Client(server) as client:
        names: list[str] = []
        page = await client.request("tools/list", {})
        while True:
            names += [tool["name"] for tool in page["tools"]]
            if "nextCursor" not in page:
                break
            page = await client.request("tools/list", {"cursor": page["nextCursor"]})
        assert names == sorted(f"tool-{number}" for number in range(MOST_TOOLS))
        assert await call(client, "tool-9999") == "x"


async def test_a_hundred_megabytes_of_a_result(server: ResourceServer, caplog: pytest.LogCaptureFixture) -> None:
    """S-60: the result is not sent, and the author reads of the limit."""

    @server.tool
    def text() -> str:
        return "x" * VERY_MUCH

    @server.tool
    def structured() -> dict[str, str]:
        return {"text": "x" * VERY_MUCH}

    async with Client(server) as client:
        for name in ("text", "structured"):
            caplog.clear()
            with caplog.at_level(logging.WARNING), pytest.raises(ServerError, match="Result too large"):
                await call(client, name)
            assert f"the tool {name} returned " in caplog.text
            assert "more than the limit `contents` of 16777216" in caplog.text
        assert await call(client, "count", text="") == "0"


async def test_a_tool_that_never_ends(server: ResourceServer) -> None:
    """S-60: clients that leave take their calls with them, and others are answered."""
    running = 0
    lock = threading.Lock()

    @server.tool
    async def forever() -> str:
        nonlocal running
        with lock:
            running += 1
        try:
            await asyncio.Event().wait()
        finally:
            with lock:
                running -= 1
        return "never"

    for _ in range(20):
        client = Client(server)
        async with client:
            waiting = asyncio.ensure_future(call(client, "forever"))
            while running == 0:
                await asyncio.sleep(0.001)
            waiting.cancel()
    for _ in range(2_000):
        if running == 0:
            break
        await asyncio.sleep(0.01)
    assert running == 0
    async with Client(server) as client:
        assert await call(client, "count", text="abc") == "3"
