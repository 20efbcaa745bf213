"""`attach` in every way to run a server of the official SDK or of FastMCP, each read from by the official client."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from attached_app import KINDS, Kind
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from ports import reserved_port

HERE = Path(__file__).parent
APP = HERE / "attached_app.py"
BIN = Path(sys.executable).parent
PATIENCE = 60.0
MODERN, LEGACY = "auto", "legacy"

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.parametrize("mode", [LEGACY, MODERN]),
]

HOSTS = """
import sys
sys.path.insert(0, {here!r})
from contextlib import asynccontextmanager
from attached_app import attached
import uvicorn
kind, way, port = sys.argv[1:]
app, resources = attached(kind)
if way == "asgi":
    served = resources.asgi()
elif way == "stateless":
    options = {{"stateless_http": True}}
    served = app.streamable_http_app(**options) if kind == "mcp" else app.http_app(**options)
elif way == "own":
    served = app.streamable_http_app() if kind == "mcp" else app.http_app()
else:
    inner = app.streamable_http_app() if kind == "mcp" else app.http_app()
    lifespan = (lambda _: app.session_manager.run()) if kind == "mcp" else inner.lifespan
    if way == "starlette":
        from starlette.applications import Starlette
        from starlette.routing import Mount
        served = Starlette(routes=[Mount("/", inner)], lifespan=lifespan)
    else:
        from fastapi import FastAPI
        served = FastAPI(lifespan=lifespan)
        served.mount("/", inner)
uvicorn.run(served, host="127.0.0.1", port=int(port), log_level="warning")
"""


def on_pipes(*command: str, kind: Kind) -> StdioServerParameters:
    return StdioServerParameters(command=command[0], args=list(command[1:]), env={**os.environ, "ATTACHED_KIND": kind})


PIPES = [
    pytest.param(kind, command, id=f"{kind}: {name}")
    for kind, name, command in [
        ("mcp", "resources.run()", (sys.executable, str(APP), "mcp", "resources")),
        ("fastmcp", "resources.run()", (sys.executable, str(APP), "fastmcp", "resources")),
        ("mcp", "app.run()", (sys.executable, str(APP), "mcp", "app")),
        ("fastmcp", "app.run()", (sys.executable, str(APP), "fastmcp", "app")),
        ("mcp", "mcp run", (str(BIN / "mcp"), "run", f"{APP}:app")),
        ("fastmcp", "fastmcp run", (str(BIN / "fastmcp"), "run", f"{APP}:app", "--no-banner")),
    ]
]
SOCKETS = [
    pytest.param(kind, command, id=f"{kind}: {name}")
    for kind in KINDS
    for name, command in [
        ('run("http")', (sys.executable, str(APP), kind, "resources")),
        ('app.run("streamable-http")', (sys.executable, str(APP), kind, "app")),
        ("asgi()", (sys.executable, "-c", HOSTS.format(here=str(HERE)), kind, "asgi")),
        ("its own application", (sys.executable, "-c", HOSTS.format(here=str(HERE)), kind, "own")),
        ("Starlette", (sys.executable, "-c", HOSTS.format(here=str(HERE)), kind, "starlette")),
        ("FastAPI", (sys.executable, "-c", HOSTS.format(here=str(HERE)), kind, "fastapi")),
    ]
] + [
    pytest.param(
        "fastmcp",
        (str(BIN / "fastmcp"), "run", f"{APP}:app", "--no-banner", "--transport", "http", "--port"),
        id="fastmcp: fastmcp run --transport http",
    )
]


@contextmanager
def serving(kind: Kind, *command: str, environment: dict[str, str] | None = None) -> Iterator[str]:
    with reserved_port() as port:
        own = {**os.environ, "ATTACHED_KIND": kind, **(environment or {})}
        process = subprocess.Popen([*command, str(port)], stdin=subprocess.DEVNULL, env=own)
        try:
            until = time.monotonic() + PATIENCE
            while True:
                assert process.poll() is None, "the server has ended"
                assert time.monotonic() < until, "the server does not serve"
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.05)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()
            process.wait(PATIENCE)


async def check(server: Any, mode: str) -> None:
    """Their tool, our resource, and theirs."""
    async with Client(server, mode=mode, cache=None) as client:
        result = await client.call_tool("add", {"a": 2, "b": 3})
        assert isinstance(result.content[0], types.TextContent)
        assert result.content[0].text == "5"
        listed = {str(resource.uri) for resource in (await client.list_resources()).resources}
        assert {"shop://static", "own://note"} <= listed
        for uri, text in [("shop://row/7", '{"name":"tea"}'), ("own://note", "their note")]:
            (content,) = (await client.read_resource(uri)).contents
            assert isinstance(content, types.TextResourceContents)
            assert content.text == text
        (content,) = (await client.read_resource("shop://who")).contents
        assert isinstance(content, types.TextResourceContents)
        assert content.text == ("anonymous" if isinstance(server, str) else "")
        with pytest.raises(MCPError):
            await client.read_resource("shop://absent")
        if mode == LEGACY:
            await client.subscribe_resource("shop://row/7")
        await client.call_tool("rename", {"id": "7", "name": "tea"})


@pytest.mark.parametrize(("kind", "command"), PIPES)
async def test_on_pipes(kind: Kind, command: tuple[str, ...], mode: str) -> None:
    await check(on_pipes(*command, kind=kind), mode)


@pytest.mark.parametrize(("kind", "command"), SOCKETS)
async def test_over_http(kind: Kind, command: tuple[str, ...], mode: str) -> None:
    with serving(kind, *command) as url:
        await check(url, mode)


@pytest.mark.parametrize("kind", KINDS)
async def test_without_sessions(kind: Kind, mode: str) -> None:
    """A legacy request without a session reads and lists; it cannot subscribe, and the greeting does not say so."""
    with serving(kind, sys.executable, "-c", HOSTS.format(here=str(HERE)), kind, "stateless") as url:
        async with Client(url, mode=mode, cache=None) as client:
            capabilities = client.server_capabilities.resources
            assert capabilities is not None
            assert bool(capabilities.subscribe) is (mode == MODERN)
            listed = {str(resource.uri) for resource in (await client.list_resources()).resources}
            assert {"shop://static", "own://note"} <= listed
            for uri, text in [("shop://row/7", '{"name":"tea"}'), ("own://note", "their note")]:
                (content,) = (await client.read_resource(uri)).contents
                assert isinstance(content, types.TextResourceContents)
                assert content.text == text
            with pytest.raises(MCPError, match="Method not found"):
                await client.subscribe_resource("shop://row/7")


TOKENS = """
import sys
sys.path.insert(0, {here!r})
from attached_app import made, resources_of_ours
kind, port = sys.argv[1:]
tokens = {{"ada": ["row"], "bob": []}}
if kind == "mcp":
    from mcp.server.auth.provider import AccessToken
    from mcp.server.auth.settings import AuthSettings
    class Verifier:
        async def verify_token(self, token):
            if token in tokens:
                return AccessToken(token=token, client_id="client", subject=token, scopes=tokens[token])
    url = f"http://127.0.0.1:{{port}}"
    app = made(kind, token_verifier=Verifier(), auth=AuthSettings(issuer_url=url, resource_server_url=url + "/mcp"))
else:
    from fastmcp.server.auth.providers.jwt import StaticTokenVerifier
    known = {{name: {{"client_id": name, "scopes": scopes}} for name, scopes in tokens.items()}}
    app = made(kind, auth=StaticTokenVerifier(tokens=known))
guard = {{"scopes": {{"shop://static": "row"}}, "principals": {{"bob": {{"deny": "own://note"}}}}}}
resources = resources_of_ours(guard=guard)
resources.attach(app)
resources.run("http", port=int(port))
"""


@asynccontextmanager
async def as_user(url: str, token: str, mode: str) -> AsyncIterator[Client]:
    import httpx2 as httpx

    async with (
        httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, cache=None) as client,
    ):
        yield client


@pytest.mark.parametrize("kind", KINDS)
async def test_two_tokens_see_two_lists(kind: Kind, mode: str) -> None:
    """The SDK verifies tokens; our policy uses their subject and scopes."""
    with serving(kind, sys.executable, "-c", TOKENS.format(here=str(HERE)), kind) as url:
        seen: dict[str, set[str]] = {}
        for user in ("ada", "bob"):
            async with as_user(url, user, mode) as client:
                seen[user] = {str(resource.uri) for resource in (await client.list_resources()).resources}
                (content,) = (await client.read_resource("shop://who")).contents
                assert isinstance(content, types.TextResourceContents)
                assert content.text == user
                if user == "bob":
                    for uri in ("shop://static", "own://note"):
                        with pytest.raises(MCPError):
                            await client.read_resource(uri)
        assert seen["ada"] == {"shop://static", "shop://who", "own://note", "own://broken"}
        assert seen["bob"] == {"shop://who", "own://broken"}
