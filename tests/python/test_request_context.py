"""Context variables of a request reach every function that answers it, and never another request."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import pytest
from asgi_call import PATIENCE, Call
from asgiref.sync import sync_to_async
from fastapi import Depends, FastAPI, Request
from mcp_resources import Client as AnyClient
from mcp_resources import Contents, Context, Limits, ListPage, Resource, ResourceServer, providers
from mcp_resources.testing import Client
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from test_asgi import MODERN_META, initialize, post, request
from vectors import MODERN

user: ContextVar[str] = ContextVar("user", default="nobody")
PEOPLE = ("alice", "bob", "carol", "dave")
READS = (
    "def",
    "inline",
    "async",
    "chunks",
    "async-chunks",
    "wrapped",
    "lazy",
    "encoded",
    "redacted",
    "folder",
    "constant",
)


class Lazy:
    """Has a JSON form only when asked."""

    def model_dump_json(self) -> str:
        return json.dumps(user.get())


class Encoded:
    """Is encoded by the server's encoder."""


def served(**options: Any) -> ResourceServer:
    """A server whose functions all say who asks. `redact` adds who it thinks that is."""

    def redact(uri: str, contents: Contents) -> Contents:
        is_seen = uri in ("w://redacted", "memory:///a", "w://constant")
        return Contents(f"{contents.body}{user.get()}", mime_type=contents.mime_type) if is_seen else contents

    server = ResourceServer("w", redact=redact, encoder=lambda value: user.get(), **options)

    @server.method("vendor/who")
    def method(params: dict[str, Any]) -> dict[str, str]:
        return {"who": user.get()}

    @server.method("vendor/who-async")
    async def async_method(params: dict[str, Any]) -> dict[str, str]:
        await asyncio.sleep(0)
        return {"who": user.get()}

    @server.resource("w://def")
    def plain() -> str:
        return user.get()

    @server.resource("w://inline", inline=True)
    def inline() -> str:
        return user.get()

    @server.resource("w://async")
    async def coroutine() -> str:
        await asyncio.sleep(0)
        return user.get()

    @server.resource("w://chunks")
    def chunks() -> Iterator[str]:
        yield ""
        yield user.get()

    @server.resource("w://async-chunks")
    async def async_chunks() -> AsyncIterator[str]:
        yield ""
        await asyncio.sleep(0)
        yield user.get()

    server.resource("w://wrapped")(lambda: coroutine())
    server.resource("w://lazy")(lambda: Lazy())
    server.resource("w://encoded")(lambda: Encoded())
    server.resource("w://redacted")(lambda: "")
    server.add_resource(Resource("w://constant"), text="")
    folder = providers.memory()
    folder.put("a", "")
    server.mount(folder)
    return server


def listing(server: ResourceServer) -> None:
    """Templates that list and complete, one after the other, in every way."""

    def register(name: str, inline: bool, lister: Callable[[], Any], completer: Callable[[str], Any]) -> None:
        handler = server.resource(f"w://{name}/{{who}}", inline=inline)(lambda who: who)
        handler.list(lister)
        handler.complete("who", inline=inline)(completer)

    async def later() -> list[str]:
        await asyncio.sleep(0)
        return [user.get()]

    def items() -> Iterator[str]:
        yield user.get()

    async def async_items() -> AsyncIterator[str]:
        await asyncio.sleep(0)
        yield user.get()

    async def complete_later(value: str) -> list[str]:
        return [user.get()]

    register("a", False, lambda: [user.get()], lambda value: [user.get()])
    register("b", True, lambda: [user.get()], lambda value: [user.get()])
    register("c", False, later, complete_later)
    register("d", False, items, lambda value: (user.get() for _ in "x"))
    register("e", False, async_items, lambda value: complete_later(value))
    register("f", False, lambda: [user.get()], lambda value: [user.get()])


LISTED = [f"w://{name}/" for name in "abcdef"]


def pure(app: Any) -> Any:
    async def middleware(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            user.set(dict(scope["headers"]).get(b"x-user", b"probe").decode())
        await app(scope, receive, send)

    return middleware


def starlette(app: Any) -> Any:
    class Who(BaseHTTPMiddleware):
        async def dispatch(self, request: Any, call_next: Any) -> Any:
            user.set(request.headers.get("x-user", "probe"))
            return await call_next(request)

    health = Route("/up", lambda request: PlainTextResponse(user.get()))
    return Starlette(routes=[health, Mount("/", app)], middleware=[Middleware(Who)])


def fastapi(app: Any) -> Any:
    async def who(request: Request) -> AsyncIterator[None]:
        user.set(request.headers.get("x-user", "probe"))
        yield

    framework = FastAPI(dependencies=[Depends(who)])

    @framework.middleware("http")
    async def middleware(request: Request, call_next: Callable[[Request], Awaitable[Any]]) -> Any:
        token = user.set(request.headers.get("x-user", "probe"))
        try:
            return await call_next(request)
        finally:
            user.reset(token)

    framework.mount("/", app)
    return framework


def django(app: Any) -> Any:
    """As Django's synchronous middleware: asgiref runs it on a thread, and brings its context back."""

    async def middleware(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await sync_to_async(user.set)(dict(scope["headers"]).get(b"x-user", b"probe").decode())
        await app(scope, receive, send)

    return middleware


def group(app: Any) -> Any:
    """As anyio's task groups: the application runs in a task of its own."""

    async def middleware(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            user.set(dict(scope["headers"]).get(b"x-user", b"probe").decode())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(app(scope, receive, send))

    return middleware


def call(app: Any, who: str, method: str, **params: Any) -> Call:
    named = {"mcp_name": params["uri"]} if "uri" in params else {}
    headers = {"mcp_protocol_version": MODERN, "mcp_method": method, "x_user": who, **named}
    return post(app, request(1, method, **params, _meta=MODERN_META), **headers)


async def asked(app: Any, who: str, uri: str) -> str:
    found = await call(app, who, "resources/read", uri=uri).json()
    return str(found["result"]["contents"][0]["text"]).strip('"')


@pytest.mark.parametrize("framework", [pure, starlette, fastapi, django, group])
async def test_each_request_has_its_own_context(framework: Callable[[Any], Any]) -> None:
    """A probe comes first; the requests of several people are in flight together."""
    server = served()
    listing(server)
    app = framework(server.asgi())
    probe = post(app, None, verb="GET", path="/health")
    await probe.until(lambda: probe.done)
    for uri in READS:
        uri = "memory:///a" if uri == "folder" else f"w://{uri}"
        assert await asyncio.gather(*(asked(app, who, uri) for who in PEOPLE * 3)) == [*PEOPLE * 3], uri
    lists = await asyncio.gather(*(call(app, who, "resources/list").json() for who in PEOPLE * 3))
    for who, found in zip(PEOPLE * 3, lists, strict=True):
        uris = [item["uri"] for item in found["result"]["resources"]]
        assert [uri for uri in uris if uri[:6] in LISTED] == [f"{uri}{who}" for uri in LISTED]
    for template in LISTED:
        reference = {"type": "ref/resource", "uri": f"{template}{{who}}"}
        given = {"ref": reference, "argument": {"name": "who", "value": ""}}
        for who in PEOPLE:
            completed = await call(app, who, "completion/complete", **given).json()
            assert completed["result"]["completion"]["values"] == [who], template
    for method in ("vendor/who", "vendor/who-async"):
        answers = await asyncio.gather(*(call(app, who, method).json() for who in PEOPLE))
        assert [found["result"]["who"] for found in answers] == [*PEOPLE]


async def test_requests_that_wait_keep_their_context() -> None:
    """The functions of two people wait for each other, on worker threads and on the loop."""
    server = ResourceServer("w")
    both = threading.Barrier(2)
    arrived = 0
    all_here = asyncio.Event()

    @server.resource("w://def")
    def plain() -> str:
        both.wait(PATIENCE)
        return user.get()

    @server.resource("w://async")
    async def coroutine() -> str:
        nonlocal arrived
        arrived += 1
        if arrived == 2:
            all_here.set()
        await all_here.wait()
        return user.get()

    app = pure(server.asgi())
    for uri in ("w://def", "w://async"):
        assert await asyncio.gather(asked(app, "alice", uri), asked(app, "bob", uri)) == ["alice", "bob"]


async def test_the_stream_of_a_session_lends_its_context_to_no_request() -> None:
    server = served()
    listing(server)
    app = pure(server.asgi())
    session = await initialize(app, x_user="alice")
    session.headers["x_user"] = "alice"
    stream = session.get()
    await stream.until(lambda: stream.status != 0)
    for who in ("bob", "alice"):
        session.headers["x_user"] = who
        for uri in ("w://def", "w://async", "w://wrapped", "memory:///a"):
            found = await session.post(request(1, "resources/read", uri=uri)).json()
            assert found["result"]["contents"][0]["text"] == who
        found = await session.post(request(2, "resources/list")).json()
        uris = [item["uri"] for item in found["result"]["resources"]]
        assert [uri for uri in uris if uri[:6] in LISTED] == [f"{uri}{who}" for uri in LISTED]
    stream.leave()


async def test_what_lasts_longer_than_a_request_has_the_context_of_the_program() -> None:
    """A lifespan that the first request opens, and the tasks that it starts, do not belong to that request."""
    seen: list[str] = []
    ticked = asyncio.Event()

    @asynccontextmanager
    async def lifespan(server: ResourceServer) -> AsyncIterator[None]:
        seen.append(user.get())

        async def work() -> None:
            seen.append(user.get())
            ticked.set()

        task = asyncio.create_task(work())
        yield
        await task

    server = ResourceServer("w", lifespan=lifespan)
    server.resource("w://def")(lambda: user.get())
    user.set("program")
    app = pure(server.asgi())
    assert await asked(app, "alice", "w://def") == "alice"
    await ticked.wait()
    assert seen == ["program", "program"]


async def test_what_a_function_sets_reaches_no_other_call() -> None:
    server = ResourceServer("w")

    def take(who: str) -> str:
        before = user.get()
        user.set(who)
        return before

    server.resource("w://def/{who}")(take)
    server.resource("w://inline/{who}", inline=True)(take)

    @server.resource("w://async/{who}")
    async def coroutine(who: str) -> str:
        return take(who)

    app = pure(server.asgi())
    for kind in ("def", "inline", "async"):
        for who in ("alice", "bob"):
            assert await asked(app, who, f"w://{kind}/mallory") == who
    async with Client(server) as client:
        user.set("test")
        for kind in ("def", "inline", "async"):
            assert [await client.read_text(f"w://{kind}/{who}") for who in "ab"] == ["test", "test"]


async def test_a_pipe_has_the_context_of_its_client_or_of_the_start() -> None:
    """The client of a test is asked where the test stands; another one in the process where it was opened."""
    server = served()
    user.set("start")
    async with Client(server) as client:
        user.set("now")
        assert [await client.read_text(f"w://{kind}") for kind in ("def", "inline", "async")] == ["now"] * 3
    user.set("start")
    async with AnyClient(server) as client:
        found = [await client.read(f"w://{kind}") for kind in ("def", "inline", "async", "wrapped")]
        assert found == ["start"] * 4
        assert await client.read("memory:///a") in ("start", "now")


async def test_the_native_server_has_the_context_of_its_start() -> None:
    server = served()
    user.set("start")
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(server.serve_http(port=0, started=started.set_result))
    url = await started
    user.set("later")
    async with AnyClient(url) as client:
        for kind in ("def", "inline", "async", "chunks", "async-chunks", "wrapped", "redacted"):
            assert await client.read(f"w://{kind}") == "start", kind
        assert await client.read("memory:///a") == "start"
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


async def test_every_list_callback_knows_who_asks() -> None:
    """A list that continues with the next source has the request of the first."""
    server = ResourceServer("w", limits=Limits(page=100))
    seen: list[tuple[str, str, str, object]] = []

    def lister(ctx: Context) -> list[str]:
        seen.append((ctx.principal, ctx.revision, ctx.headers["x-user"], ctx.client_info))
        return ["1"]

    async def pages(cursor: str | None, ctx: Context) -> ListPage:
        return ListPage(lister(ctx))

    for name in "abc":
        handler = server.resource(f"w://{name}/{{id}}")(lambda id: id)
        handler.list(pages if name == "b" else lister)
    app = server.asgi()
    found = await call(app, "alice", "resources/list").json()
    assert len(found["result"]["resources"]) == 3
    assert seen == [("anonymous", MODERN, "alice", None)] * 3
