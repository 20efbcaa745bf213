"""The ASGI application, driven as a server drives it, and mounted in Starlette."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgi_call import PATIENCE, Call
from mcp_resources import Auth, Context, InvalidTokenError, RegistrationError, ResourceServer, StaticTokens, Verified
from mcp_resources.auth import verified
from starlette.applications import Starlette
from starlette.routing import Mount
from vectors import MODERN

MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def post(app: Any, message: Any, *, verb: str = "POST", path: str = "/mcp", **headers: str) -> Call:
    """A request as clients send it; a header's name has `_` for `-`."""
    body = b"" if message is None else json.dumps(message).encode()
    own = {"host": "localhost", "content-type": "application/json", "accept": "application/json, text/event-stream"}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [(name.encode(), value.encode()) for name, value in (own | names).items()]
    return Call(app, verb, path, lines, body)


def request(id: object, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def modern(app: Any, id: object, method: str, **params: Any) -> Call:
    meta = MODERN_META | params.pop("_meta", {})
    named = {"mcp_name": params["uri"]} if "uri" in params else {}
    headers = {"mcp_protocol_version": MODERN, "mcp_method": method, **named}
    return post(app, request(id, method, **params, _meta=meta), **headers)


class Session:
    """A legacy session."""

    def __init__(self, app: Any, id: str) -> None:
        self.app = app
        self.headers = {"mcp_session_id": id, "mcp_protocol_version": "2025-11-25"}

    def post(self, message: Any) -> Call:
        return post(self.app, message, **self.headers)

    def get(self, **headers: str) -> Call:
        return post(self.app, None, verb="GET", **self.headers, **headers)


async def initialize(app: Any, **headers: str) -> Session:
    call = post(app, request(0, "initialize", **HELLO), **headers)
    assert (await call.json())["result"]["protocolVersion"] == "2025-11-25"
    session = Session(app, call.headers["mcp-session-id"])
    session.headers |= headers
    accepted = session.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    await accepted.json()
    assert accepted.status == 202
    return session


@asynccontextmanager
async def living(app: Any) -> AsyncIterator[None]:
    """The life of an application, as its server tells of it."""
    given: asyncio.Queue[Any] = asyncio.Queue()
    told: asyncio.Queue[Any] = asyncio.Queue()
    task = asyncio.ensure_future(app({"type": "lifespan"}, given.get, told.put))
    await given.put({"type": "lifespan.startup"})
    assert (await told.get())["type"] == "lifespan.startup.complete"
    yield
    await given.put({"type": "lifespan.shutdown"})
    assert (await told.get())["type"] == "lifespan.shutdown.complete"
    await task


async def test_both_eras_on_one_endpoint(server: ResourceServer) -> None:
    """R-027, R-169, R-179."""

    @server.resource("note://{id}")
    async def note(id: str) -> str:
        await asyncio.sleep(0)
        return f"note {id}"

    app = server.asgi()
    answer = await modern(app, 1, "resources/read", uri="note://7").json()
    assert answer["result"]["contents"][0]["text"] == "note 7"
    session = await initialize(app)
    answer = await session.post(request(1, "resources/read", uri="note://8")).json()
    assert answer["result"]["contents"][0]["text"] == "note 8"


async def test_an_application_may_live_twice(server: ResourceServer) -> None:
    """R-096: the end of one life, as of a test client, ends its listens and no later one."""
    server.resource("note://a")(lambda: "x")
    app = server.asgi()
    filter = {"resourceSubscriptions": ["note://a"]}
    for _ in range(2):
        async with living(app):
            listen = modern(app, "l", "subscriptions/listen", notifications=filter)
            await listen.until(lambda call=listen: len(call.messages()) == 1)
            server.notify_updated("note://a")
            await listen.until(lambda call=listen: len(call.messages()) == 2)
            assert not listen.done
        await listen.until(lambda call=listen: call.done)
        assert listen.messages()[-1]["result"]["resultType"] == "complete"


async def test_revocation_ends_the_listens_of_one_subject(server: ResourceServer) -> None:
    """R-096, R-202."""

    async def verify(token: str) -> Verified:
        return Verified(subject=token)

    server.resource("note://a")(lambda: "x")
    app = server.asgi(auth=Auth("http://localhost/mcp", ["https://issuer.example"], verify))
    filter = {"resourceSubscriptions": ["note://a"]}
    headers = {"mcp_protocol_version": MODERN, "mcp_method": "subscriptions/listen"}
    message = request("l", "subscriptions/listen", notifications=filter, _meta=MODERN_META)
    eve, bob = (post(app, message, authorization=f"Bearer {name}", **headers) for name in ("eve", "bob"))
    for listen in (eve, bob):
        await listen.until(lambda call=listen: len(call.messages()) == 1)
    server.revoke("eve")
    await eve.until(lambda: eve.done)
    assert eve.messages()[-1]["result"]["resultType"] == "complete"
    server.notify_updated("note://a")
    await bob.until(lambda: len(bob.messages()) == 2)
    assert not bob.done


async def test_one_update_reaches_both_eras(server: ResourceServer) -> None:
    """R-083, R-092, R-173: one call, from another thread."""
    server.resource("note://a")(lambda: "x")
    app = server.asgi()
    session = await initialize(app)
    stream = session.get()
    await session.post(request(1, "resources/subscribe", uri="note://a")).json()
    listen = modern(app, "l", "subscriptions/listen", notifications={"resourceSubscriptions": ["note://a"]})
    await listen.until(lambda: len(listen.messages()) == 1)
    thread = threading.Thread(target=server.notify_updated, args=("note://a",))
    thread.start()
    await listen.until(lambda: len(listen.messages()) == 2)
    await stream.until(lambda: stream.messages())
    thread.join()
    assert stream.messages()[0]["params"]["uri"] == listen.messages()[1]["params"]["uri"] == "note://a"
    stream.leave()
    listen.leave()
    await asyncio.gather(stream.task, listen.task)


async def test_a_handler_notifies_its_own_session(server: ResourceServer) -> None:
    """R-083: from the loop, as a task and from a worker thread, without waiting for what it answers."""

    def notify() -> str:
        server.notify_updated("note://a")
        return "told"

    async def later() -> str:
        await asyncio.sleep(0)
        return notify()

    server.resource("note://a")(lambda: "x")
    server.resource("tell://worker")(notify)
    server.resource("tell://inline", inline=True)(notify)
    server.resource("tell://task")(later)
    session = await initialize(server.asgi())
    stream = session.get()
    await session.post(request(1, "resources/subscribe", uri="note://a")).json()
    for number, uri in enumerate(["tell://worker", "tell://inline", "tell://task"], 1):
        answer = await session.post(request(number + 1, "resources/read", uri=uri)).json()
        assert answer["result"]["contents"][0]["text"] == "told"
        await stream.until(lambda number=number: len(stream.messages()) == number)
    stream.leave()
    await stream.task


async def test_leaving_cancels_a_modern_request_only(server: ResourceServer) -> None:
    """R-129, R-130."""
    cancelled = asyncio.Event()
    started, going_on, finished = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @server.resource("slow://{which}")
    async def slow(which: str) -> str:
        started.set()
        try:
            await (asyncio.sleep(60) if which == "modern" else going_on.wait())
        except asyncio.CancelledError:
            cancelled.set()
            raise
        finished.set()
        return which

    app = server.asgi()
    call = modern(app, 1, "resources/read", uri="slow://modern")
    await started.wait()
    call.leave()
    async with asyncio.timeout(PATIENCE):
        await cancelled.wait()
    cancelled.clear()
    started.clear()
    session = await initialize(app)
    call = session.post(request(1, "resources/read", uri="slow://legacy"))
    await started.wait()
    call.leave()
    await call.task
    going_on.set()
    async with asyncio.timeout(PATIENCE):
        await finished.wait()
    assert not cancelled.is_set()


async def test_reports_make_the_answer_a_stream(server: ResourceServer) -> None:
    """R-124, R-162."""

    @server.resource("work://x")
    def work(ctx: Context) -> str:
        ctx.progress(1, 2)
        return "done"

    call = modern(server.asgi(), 1, "resources/read", uri="work://x", _meta={"progressToken": "t"})
    assert (await call.json())["result"]["contents"][0]["text"] == "done"
    assert call.headers["content-type"] == "text/event-stream"
    assert call.messages()[0]["params"] == {"progressToken": "t", "progress": 1, "total": 2}


async def test_a_body_that_is_too_large(server: ResourceServer) -> None:
    """R-190: refused before it is read to its end."""
    app = ResourceServer("small", limits={"message": 1000}).asgi()
    call = post(app, {"jsonrpc": "2.0", "id": 1, "method": "x" * 2000})
    await call.until(lambda: call.done)
    assert call.status == 413


async def test_the_end_of_the_application_ends_listens(server: ResourceServer) -> None:
    """R-096."""
    server.resource("note://a")(lambda: "x")
    app = server.asgi()
    async with living(app):
        listen = modern(app, 5, "subscriptions/listen", notifications={"resourceSubscriptions": ["note://a"]})
        await listen.until(lambda: len(listen.messages()) == 1)
    assert (await listen.json())["id"] == 5


async def test_tokens(server: ResourceServer) -> None:
    """R-195, R-196, R-198, R-199, R-178."""

    @server.resource("me://")
    def me(ctx: Context) -> str:
        return ctx.principal

    async def verify(token: str) -> Verified:
        if token == "broken":
            raise RuntimeError("the key store does not answer")
        subject, _, scope = token.partition(".")
        if not scope:
            raise InvalidTokenError
        return Verified(subject, [scope])

    auth = Auth("https://api.example.com/mcp", ["https://login.example.com"], verify, required_scopes=["read"])
    app = server.asgi(auth=auth, hosts=["localhost"])
    statuses = {None: 401, "ada": 401, "ada.write": 403, "ada.read": 200, "a:b": 400, "broken": 503}
    for token, status in statuses.items():
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        call = post(app, request(1, "initialize", **HELLO), **headers)
        await call.until(lambda call=call: call.done)
        assert call.status == status, token
        if status in (401, 403):
            assert "resource_metadata=" in call.headers["www-authenticate"]
    document = post(app, None, verb="GET", path="/.well-known/oauth-protected-resource/mcp")
    assert (await document.json())["authorization_servers"] == ["https://login.example.com"]
    session = await initialize(app, authorization="Bearer ada.read")
    answer = await session.post(request(1, "resources/read", uri="me://")).json()
    assert answer["result"]["contents"][0]["text"] == "ada"
    session.headers["authorization"] = "Bearer eve.read"
    stolen = session.post(request(2, "resources/read", uri="me://"))
    await stolen.json()
    assert stolen.status == 404


async def test_it_is_mounted_in_starlette(server: ResourceServer) -> None:
    server.resource("note://a")(lambda: "x")
    for prefix, path in (("", "/mcp"), ("/api", "/api/mcp")):
        app = Starlette(routes=[Mount(prefix, app=server.asgi())])
        call = post(
            app,
            request(1, "resources/read", uri="note://a", _meta=MODERN_META),
            path=path,
            mcp_protocol_version=MODERN,
            mcp_method="resources/read",
            mcp_name="note://a",
        )
        assert (await call.json())["result"]["contents"][0]["text"] == "x"


@pytest.mark.parametrize(
    "options",
    [
        {"path": "mcp"},
        {"hosts": "example.com"},
        {"answers": "xml"},
        {"nonsense": True},
        {"auth": Auth("not a url", ["https://login.example.com"], lambda _: None)},
    ],
)
def test_wrong_options_are_refused_at_once(server: ResourceServer, options: Any) -> None:
    with pytest.raises((RegistrationError, ValueError, TypeError)):
        server.asgi(**options)


async def test_a_lifespan_that_fails_ends_the_application_with_its_error() -> None:
    """Starlette's client of tests waits for ever for an application that says `failed` and returns."""

    async def life(server: ResourceServer) -> AsyncIterator[None]:
        raise ConnectionError("no database")
        yield

    app = ResourceServer("x", lifespan=life).asgi()
    told: asyncio.Queue[Any] = asyncio.Queue()

    async def receive() -> dict[str, str]:
        return {"type": "lifespan.startup"}

    with pytest.raises(ConnectionError, match="no database"):
        await app({"type": "lifespan"}, receive, told.put)
    assert (await told.get()) == {"type": "lifespan.startup.failed", "message": "no database"}


async def test_a_verifier_that_is_not_asynchronous_is_named() -> None:
    given: Any = StaticTokens({"secret": Verified("ada")})
    auth = Auth("http://localhost/mcp", ["https://id.example"], given)
    assert (await verified(auth.verify, "secret")).subject == "ada"

    def plain(token: str) -> Any:
        return Verified("ada")

    auth = Auth("http://localhost/mcp", ["https://id.example"], plain)
    with pytest.raises(TypeError, match="write it as `async def`"):
        await verified(auth.verify, "secret")
