"""The gateway between servers of other SDKs and official clients, with many listeners, and of real files."""

import asyncio
import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from gateway import asked, configured, over_http, stub
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated
from peering import LISTED, PEERS
from process import eventually
from vectors import ROOT

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

UPSTREAMS = ("fastmcp", "ours-node", "ours-python", "python-sdk", "python-sdk-low", "rmcp", "ts-sdk", "ts-sdk-1")
UPDATES = ("ours-node", "ours-python", "python-sdk-low", "ts-sdk")
"""Those that send updates in the era that the gateway agrees on, over both transports."""
TOKEN = "token-of-a-test"


def entries(reached: dict[str, str], transport: str) -> dict[str, Any]:
    """The peers as servers of the gateway, each under its prefix. `reached` has installed and built them."""

    def entry(name: str) -> dict[str, Any]:
        own: dict[str, Any] = {"resources": "*", "prefix": name}
        if transport == "http":
            return own | {"url": reached[name]}
        program, *words = PEERS[name].stdio()
        return own | {"command": program, "args": words}

    return {name: entry(name) for name in UPSTREAMS}


@asynccontextmanager
async def connected(program: Path, file: Path, transport: str, mode: str, **options: Any) -> AsyncIterator[Client]:
    """The official client of a gateway."""
    async with AsyncExitStack() as stack:
        if transport == "stdio":
            words = ["gateway", "--config", str(file), "--agent", "tester"]
            target: Any = StdioServerParameters(command=str(program), args=words)
        else:
            gateway = stack.enter_context(over_http(program, file))
            headers = {"Authorization": f"Bearer {TOKEN}"}
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=30))
            target = streamable_http_client(gateway.url, http_client=http)
        yield await stack.enter_async_context(Client(target, mode=mode, cache=None, **options))


async def listed(client: Client) -> set[str]:
    uris: set[str] = set()
    cursor = None
    while True:
        page = await client.list_resources(cursor=cursor)
        uris |= {str(resource.uri) for resource in page.resources}
        cursor = page.next_cursor
        if cursor is None:
            return uris


@pytest.mark.parametrize("upstream", ["stdio", "http"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_servers_of_every_sdk_behind_one(
    program: Path, reached: dict[str, str], tmp_path: Path, upstream: str, transport: str, mode: str
) -> None:
    """S-12, S-13, S-14: eight servers of six SDKs, over both transports, in both eras up and down."""
    servers = entries(reached, upstream)
    agents = {"tester": {"token": TOKEN, "mcpServers": {name: {"resources": "*"} for name in servers}}}
    file = configured(tmp_path, servers, agents)
    heard: asyncio.Queue[Any] = asyncio.Queue()

    async def on_message(message: object) -> None:
        heard.put_nowait(message)

    async with connected(program, file, transport, mode, message_handler=on_message) as client:
        # Interpreters take longer to start than a list may take.
        wanted = {f"{name}+{uri}" for name in UPSTREAMS for uri in LISTED}
        for _ in range(10):
            if (uris := await listed(client)) >= wanted:
                break
            await asyncio.sleep(1)
        assert uris == wanted
        templates = {one.uri_template for one in (await client.list_resource_templates()).resource_templates}
        assert templates >= {f"{name}+peer://item/{{id}}" for name in UPSTREAMS}
        for name in UPSTREAMS:
            static, blob, item = [
                (await client.read_resource(f"{name}+peer://{path}")).contents[0]
                for path in ("static", "blob", "item/x")
            ]
            assert (static.text, item.text) == ("static text", "item x")  # type: ignore[union-attr]
            assert base64.b64decode(blob.blob) == bytes(range(256))  # type: ignore[union-attr]
            with pytest.raises(MCPError) as missing:
                await client.read_resource(f"{name}+peer://none")
            assert missing.value.error.code == (-32002 if mode == "legacy" else -32602)
            reference = {"type": "ref/resource", "uri": f"{name}+peer://item/{{id}}"}
            completed = await client.complete(reference, {"name": "id", "value": "al"})  # type: ignore[arg-type]
            assert completed.completion.values == ["alpha"]
        for name in UPDATES:
            counter = f"{name}+peer://counter"
            before = (await client.read_resource(counter)).contents[0].text  # type: ignore[union-attr]
            if mode == "legacy":
                await client.subscribe_resource(counter)
                await asyncio.sleep(0.5)
                await client.read_resource(f"{name}+peer://touch")
                while (
                    not hasattr(message := await asyncio.wait_for(heard.get(), 10), "params")
                    or message.params is None
                    or getattr(message.params, "uri", None) != counter
                ):
                    pass
                await client.unsubscribe_resource(counter)
            else:
                async with client.listen(resource_subscriptions=[counter]) as subscription:
                    await asyncio.sleep(0.5)
                    await client.read_resource(f"{name}+peer://touch")
                    assert await asyncio.wait_for(anext(subscription), 10) == ResourceUpdated(counter)
            assert (await client.read_resource(counter)).contents[0].text != before  # type: ignore[union-attr]


@pytest.mark.parametrize("sdk", ["2", "2 legacy", "1"])
def test_the_typescript_clients(program: Path, tmp_path: Path, sdk: str) -> None:
    """The official TypeScript clients read, watch and call through the gateway."""
    servers = {
        "a": stub("a", resources={"note://x": "of a"}),
        "b": stub("b", era="modern", resources={"note://x": "of b"}),
    }
    file = configured(tmp_path, servers)
    script = ROOT / "tests" / "node" / "gateway-client.mjs"
    command = [os.environ.get("NODE", "node"), script, sdk, program, file]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "uris": ["note://x", "b+note://x"],
        "text": "of b",
        "tool": "b",
        "updated": "b+note://x",
    }


async def test_a_thousand_listeners(program: Path, tmp_path: Path) -> None:
    """1,000 listeners of one URI are one subscription at the server, and none after the last."""
    log = tmp_path / "log"
    own = {"mcpServers": {"a": {"resources": "*"}}}
    agents = {name: {"token": f"token-of-{name}", **own} for name in ("one", "two")}
    file = configured(tmp_path, {"a": stub("a", resources={"note://x": "x"}, log=str(log))}, agents)
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    with over_http(program, file) as gateway:
        limits = httpx2.Limits(max_connections=2000)
        async with httpx2.AsyncClient(limits=limits, timeout=60) as http, AsyncExitStack() as stack:

            async def listen(number: int) -> Any:
                headers = {
                    "Accept": "application/json, text/event-stream",
                    "MCP-Protocol-Version": "2026-07-28",
                    "Mcp-Method": "subscriptions/listen",
                    "Authorization": f"Bearer token-of-{('one', 'two')[number % 2]}",
                }
                params = {"notifications": {"resourceSubscriptions": ["note://x"]}, "_meta": meta}
                body = {"jsonrpc": "2.0", "id": number, "method": "subscriptions/listen", "params": params}
                answered = await stack.enter_async_context(http.stream("POST", gateway.url, json=body, headers=headers))
                lines = answered.aiter_lines()
                async for line in lines:
                    if "acknowledged" in line:
                        return lines
                raise AssertionError("the listen was not acknowledged")

            streams = []
            for first in range(0, 1000, 100):
                streams += await asyncio.gather(*[listen(number) for number in range(first, first + 100)])
            assert eventually(lambda: len(asked(log, "resources/subscribe")) == 1)
            headers = {
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2026-07-28",
                "Mcp-Method": "tools/call",
                "Mcp-Name": "set",
                "Authorization": "Bearer token-of-one",
            }
            params = {"name": "set", "arguments": {"uri": "note://x", "text": "new"}, "_meta": meta}
            body = {"jsonrpc": "2.0", "id": "set", "method": "tools/call", "params": params}
            await asyncio.sleep(0.3)
            assert (await http.post(gateway.url, json=body, headers=headers)).status_code == 200

            async def updated(lines: Any) -> bool:
                async for line in lines:
                    if "resources/updated" in line:
                        return True
                return False

            assert all(await asyncio.gather(*[asyncio.wait_for(updated(lines), 20) for lines in streams]))
            assert len(asked(log, "resources/subscribe")) == 1
            assert asked(log, "resources/unsubscribe") == []
        assert await asyncio.to_thread(eventually, lambda: len(asked(log, "resources/unsubscribe")) == 1, 10)


REAL = {
    "claude-code": {
        "mcpServers": {
            "stub": {"type": "stdio", "command": "PYTHON", "args": "ARGS", "env": {"LEVEL": "${LEVEL:-info}"}},
            "remote": {
                "type": "http",
                "url": "https://127.0.0.1:9/mcp",
                "headers": {"Authorization": "Bearer ${NOT_SET:-x}"},
            },
        }
    },
    "vscode": {
        "inputs": [{"type": "promptString", "id": "key", "description": "A key", "password": True}],
        "servers": {
            "stub": {
                "type": "stdio",
                "command": "PYTHON",
                "args": "ARGS",
                "cwd": "${workspaceFolder}",
                "dev": {"watch": "src/**"},
            },
            "asks": {"type": "stdio", "command": "nothing", "env": {"KEY": "${input:key}"}},
        },
    },
    "cursor": {
        "mcpServers": {
            "stub": {"command": "PYTHON", "args": "ARGS", "env": {"HOME_OF": "${userHome}"}},
            "off": {"url": "https://127.0.0.1:9/sse", "disabled": True},
        }
    },
}


@pytest.mark.parametrize("client", REAL)
def test_real_files_start_unchanged(program: Path, tmp_path: Path, client: str) -> None:
    """S-10: the file of another client is a gateway; what it does not allow is not shown, and its tools are."""
    words = [
        str(Path(__file__).with_name("stub_upstream.py")),
        json.dumps({"name": "a", "resources": {"note://x": "x"}}),
    ]
    text = json.dumps(REAL[client]).replace('"PYTHON"', json.dumps(sys.executable)).replace('"ARGS"', json.dumps(words))
    file = tmp_path / "mcp.json"
    file.write_text(text)
    from process import running

    with running([str(program), "gateway", "--config", str(file)]) as server:
        tools = server.ask(1, "tools/list")["result"]["tools"]
        assert {tool["name"] for tool in tools} == {"add", "echo", "fail", "remove", "set", "slow"}
        assert server.ask(2, "resources/list")["result"]["resources"] == []
        assert server.ask(3, "tools/call", {"name": "echo", "arguments": {}})["result"]["content"]
        server.end_input()
        assert server.wait() == 0


GOOD = {"command": "x", "resources": "*"}


@pytest.mark.parametrize(
    ("config", "words", "named"),
    [
        ({"mcpServers": {"fs": {"args": []}}}, [], "mcpServers.fs"),
        ({"mcpServers": {"fs": {"command": "x", "url": "http://x"}}}, [], "mcpServers.fs"),
        ({"mcpServers": {"fs": GOOD | {"resourcs": "*"}}}, [], "resources"),
        ({"mcpServers": {"fs": GOOD | {"resources": ["a b"]}}}, [], "mcpServers.fs.resources"),
        ({"mcpServers": {"fs": GOOD | {"tools": 7}}}, [], "mcpServers.fs.tools"),
        ({"mcpServers": {"fs": GOOD | {"idle": "soon"}}}, [], "mcpServers.fs.idle"),
        ({"mcpServers": {"fs": GOOD | {"prefix": "a b"}}}, [], "mcpServers.fs.prefix"),
        ({"mcpServers": {"fs": GOOD | {"timeout": 0}}}, [], "mcpServers.fs.timeout"),
        ({"mcpServers": {"fs": GOOD}, "agents": {"web": {"mcpServers": {"sf": {}}}}}, ["--agent", "web"], '"sf"'),
        ({"mcpServers": {"fs": GOOD}, "agents": {"web": {}}}, ["--agent", "wbe"], '"wbe"'),
        ({"mcpServers": {"fs": GOOD}}, ["--agent", "web"], '"web"'),
        ({"mcpServers": {"fs": GOOD}, "agents": {"web": {"mcpServers": {"fs": {}}}}}, ["--http", "0"], '"web"'),
        (
            {"mcpServers": {"fs": GOOD}, "agents": {"web": {"token_env": "NO_SUCH_VARIABLE"}}},
            ["--http", "0"],
            "NO_SUCH_VARIABLE",
        ),
        ({"mcpServers": {"fs": GOOD}, "agents": {"web": {"token": "no token"}}}, ["--http", "0"], "token"),
        (
            {"mcpServers": {"fs": GOOD}, "agents": {n: {"token": "same"} for n in ("a", "b")}},
            ["--http", "0"],
            "same token",
        ),
        ({"mcpServers": {"fs": GOOD}}, ["--http", "0.0.0.0:0"], "0.0.0.0"),
        ({"mcpServers": []}, [], "mcpServers"),
        ({"mcpServer": {}}, [], "mcpServers"),
        ([], [], "mcpServers"),
        ("{", [], "team.json"),
        (None, [], "team.json"),
    ],
)
def test_a_wrong_file_is_one_sentence(program: Path, tmp_path: Path, config: Any, words: list[str], named: str) -> None:
    """S-10: it names the key, the agent, the server or the file; nothing is on stdout, and the status is not 0."""
    file = tmp_path / "team.json"
    if config is not None:
        file.write_text(config if isinstance(config, str) else json.dumps(config))
    command = [program, "gateway", "--config", file, *words]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode > 0
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if not line.startswith("note:")]
    assert len(lines) == 1, lines
    assert named in lines[0]


def test_list_prints_every_agents_world(program: Path, tmp_path: Path) -> None:
    """Done when 7: `--list` prints for each agent its servers with their state, era, tools and resources."""
    servers = {
        "a": stub("a", resources={"note://x": "x"}, templates=["item://a/{id}"]),
        "b": stub("b", era="modern", resources={"note://y": "y"}),
        "gone": {"command": "no-such-program", "resources": "*"},
    }
    agents = {
        "one": {"mcpServers": {"a": {"resources": "*", "tools": ["echo"]}, "gone": {"resources": "*"}}},
        "two": {"mcpServers": {"b": {}}},
    }
    file = configured(tmp_path, servers, agents)
    begun = time.monotonic()
    done = subprocess.run(
        [program, "gateway", "--config", file, "--list"], capture_output=True, text=True, timeout=60, check=True
    )
    assert time.monotonic() - begun < 20
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["one"] in lines
    assert ["two"] in lines
    assert ["a", "ready", "2025-11-25", "1", "1", "1"] in lines
    assert ["b", "ready", "2026-07-28", "6", "0", "0"] in lines
    assert any(line[:1] == ["gone"] and "no-such-program" in " ".join(line) for line in lines)
