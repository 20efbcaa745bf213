"""Mistakes with `attach`, each with its message, and what it leaves behind."""

import asyncio
import gc
import json
from typing import Any

import pytest
import uvicorn
from attached_app import KINDS, Kind, attached, made, resources_of_ours
from mcp import Client, MCPError
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp_resources import Client as OurClient
from mcp_resources import Context, RegistrationError, ResourceServer, testing
from mcp_resources.attach import _Session
from ports import reserved_port
from vectors import MODERN
from wire import META

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


def test_what_is_no_server() -> None:
    resources = resources_of_ours()
    with pytest.raises(TypeError, match="got the class Server; make a server of it first"):
        resources.attach(Server)
    with pytest.raises(TypeError, match="attach takes a server of mcp or fastmcp, got Client"):
        resources.attach(Client(Server("other")))
    with pytest.raises(TypeError, match="got the class Client"):
        resources.attach(OurClient)
    with pytest.raises(TypeError, match="attach takes a server of mcp or fastmcp"):
        resources.attach(ResourceServer("other"))


@pytest.mark.parametrize("kind", KINDS)
async def test_what_serves_ours_alone(kind: Kind) -> None:
    """What would leave out the application, and options that mean nothing to it."""
    _, resources = attached(kind)
    with pytest.raises(RuntimeError, match=r"attached: serve asgi\(\), or the application of the other server"):
        await resources.serve_http()
    with pytest.raises(TypeError, match=r"hosts belongs to a server without attach: give .*MCP"):
        resources.run("http", hosts="*")
    with pytest.raises(TypeError, match="sessions belongs to a server without attach"):
        resources.asgi(sessions=False)
    with pytest.raises(RuntimeError, match=r"there is one already; write `await server.serve_stdio\(\)`"):
        resources.run()
    transport: Any = "streamable-http"
    with pytest.raises(ValueError, match="transport is 'streamable-http', expected 'stdio' or 'http'"):
        resources.run(transport)


@pytest.mark.parametrize("kind", KINDS)
def test_the_application_of_the_server(kind: Kind) -> None:
    """Attached is the server, not what serves it."""
    app = made(kind)
    web = app.streamable_http_app() if kind == "mcp" else app.http_app()
    with pytest.raises(TypeError, match=r"got <.*>; attach to the server that this application was made of"):
        resources_of_ours().attach(web)
    with pytest.raises(TypeError, match=r"got <function .*; call it, and attach to the server that it makes"):
        resources_of_ours().attach(lambda: app)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_handler_of_ours_that_asks(kind: Kind, caplog: pytest.LogCaptureFixture) -> None:
    """The log says who can ask."""
    app, resources = attached(kind)

    @resources.resource("shop://asks")
    async def asks(ctx: Context) -> str:
        return str(await ctx.ask("elicitation/create", {"message": "Which?"}))

    low = getattr(app, "_mcp_server", app)
    async with Client(low, mode="legacy", cache=None) as client:
        with pytest.raises(MCPError):
            await client.read_resource("shop://asks")
    assert "which alone may ask this client; ask in a tool of that server" in caplog.text


@pytest.mark.parametrize("kind", KINDS)
def test_twice(kind: Kind) -> None:
    app, resources = attached(kind)
    with pytest.raises(RuntimeError, match="attached to this server already; register everything on that one"):
        resources_of_ours().attach(app)
    with pytest.raises(RegistrationError, match="make another one"):
        resources.attach(made(kind))


@pytest.mark.parametrize("kind", KINDS)
async def test_after_serving_began(kind: Kind) -> None:
    app = made(kind)
    web = app.streamable_http_app() if kind == "mcp" else app.http_app()
    async with web.router.lifespan_context(web):
        with pytest.raises(RuntimeError, match="is serving already; attach before it is run"):
            resources_of_ours().attach(app)


def test_an_sdk_that_lacks_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence has the name, the version, and the remedy."""
    monkeypatch.delattr(ServerSession, "_notify")
    with pytest.raises(
        RuntimeError, match=r"ServerSession\._notify, which .*mcp 2\.\d.* does not have; install mcp>=2"
    ):
        resources_of_ours().attach(Server("other"))


def test_an_sdk_without_middleware() -> None:
    class Old:
        request_handlers = None

    with pytest.raises(RuntimeError, match=r"attach needs a list of middleware, .*install mcp>=2\.3"):
        resources_of_ours().attach(Old())


async def test_a_low_level_server() -> None:
    resources = resources_of_ours()
    low: Server[Any] = Server("shop")
    assert resources.attach(low) is resources
    async with Client(low, cache=None) as client:
        listed = [str(resource.uri) for resource in (await client.list_resources()).resources]
        assert listed == ["shop://static", "shop://who"]
    with pytest.raises(RuntimeError, match="which the program runs itself"):
        resources.run()


async def test_a_session_that_began_before(caplog: pytest.LogCaptureFixture) -> None:
    app = made("mcp")
    async with Client(app, mode="legacy", cache=None) as client:
        resources_of_ours().attach(app)
        listed = [str(resource.uri) for resource in (await client.list_resources()).resources]
        assert "own://note" in listed
        assert "shop://static" not in listed
    assert "a session began before attach" in caplog.text


async def until(holds: Any, seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.005)


async def test_the_attached_server_alone_has_its_own_resources() -> None:
    """A test client of ours sees what is ours: the other server's resources need a request of its client."""
    _, resources = attached("mcp")
    async with testing.Client(resources) as client:
        assert [resource["uri"] for resource in await client.list_resources()] == ["shop://static", "shop://who"]


async def test_a_lifespan_of_ours() -> None:
    entered: list[str] = []

    async def lifespan(server: ResourceServer) -> Any:
        entered.append("in")
        yield "value"
        entered.append("out")

    app, resources = attached("mcp", lifespan=lifespan)

    @resources.resource("shop://life")
    def life(ctx: Context) -> str:
        return str(ctx.lifespan)

    async with Client(app, cache=None) as client:
        (content,) = (await client.read_resource("shop://life")).contents
        assert getattr(content, "text", None) == "value"
    assert entered == ["in", "out"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_client_that_leaves_in_the_middle_of_a_listen(kind: Kind) -> None:
    """Over HTTP, as a client that crashes: its connection closes, and nobody watches the resource any more."""
    _, resources = attached(kind)
    watched: set[str] = set()
    seen = resources.resource("shop://seen/{id}")(lambda id: id)

    @seen.on_watch
    def look(uri: str, is_watched: bool) -> None:
        (watched.add if is_watched else watched.discard)(uri)

    meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
    meta[META + "clientInfo"] = {"name": "client", "version": "1"}
    params = {"notifications": {"resourceSubscriptions": ["shop://seen/1"]}, "_meta": meta}
    listen = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    body = json.dumps(listen)
    with reserved_port() as port:
        server = uvicorn.Server(uvicorn.Config(resources.asgi(), port=port, log_level="warning"))
        serving = asyncio.ensure_future(server.serve())
        await until(lambda: server.started)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {MODERN}\r\n"
            f"Mcp-Method: subscriptions/listen\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        await reader.readuntil(b"acknowledged")
        await until(lambda: watched == {"shop://seen/1"})
        writer.transport.abort()
        await until(lambda: not watched)
        server.should_exit = True
        await serving


@pytest.mark.parametrize("kind", KINDS)
async def test_a_thousand_sessions_leave_nothing(kind: Kind) -> None:
    app, resources = attached(kind)
    app = getattr(app, "_mcp_server", app)  # what the official client takes in memory
    before = len(asyncio.all_tasks())
    for _ in range(1_000):
        async with Client(app, mode="legacy", cache=None) as client:
            await client.subscribe_resource("shop://row/7")
    await asyncio.sleep(0.05)
    gc.collect()
    assert not [found for found in gc.get_objects() if type(found) is _Session]
    assert len(asyncio.all_tasks()) == before
    assert resources._attached is not None
    (loop,) = resources._attached._loops.values()
    assert (loop.clients.busy, loop.clients.suspended) == (0, 0)
