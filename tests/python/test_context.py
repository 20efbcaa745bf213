"""`Context`: the request, reports to the client, cancellation, and reads in several rounds."""

import asyncio
import contextvars
import gc
import threading
import time
from typing import Any

import pytest
from mcp_resources import (
    Context,
    Elicit,
    ElicitUrl,
    InputDeclinedError,
    InputRequired,
    Limits,
    ListRoots,
    MethodResult,
    RegistrationError,
    Resource,
    ResourceServer,
    Sample,
)
from mcp_resources.driver import Driver
from mcp_resources.testing import Client, InputNeeded, ServerError

LEGACY = "2025-11-25"
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ACCEPT = {"action": "accept", "content": {"name": "Ada"}}


async def test_the_request_is_told(server: ResourceServer) -> None:
    seen: list[Context] = []

    @server.resource("a://{x}")
    async def handler(x: str, ctx: Context) -> str:
        seen.append(ctx)
        return x

    async with Client(server) as client:
        await client.request("read", {"uri": "A://%62"}, meta={"traceparent": "00-1-2-00", "com.example/a": [1]})
    (ctx,) = seen
    assert (ctx.uri, ctx.principal, ctx.revision, ctx.cancelled) == ("A://%62", "", "2026-07-28", False)
    assert ctx.client_info is not None
    assert ctx.client_info["name"] == "mcp-resources-testing"
    assert ctx.meta is not None
    assert (ctx.meta["traceparent"], ctx.meta["com.example/a"]) == ("00-1-2-00", [1])
    assert (ctx.inputs, ctx.state) == ({}, None)


async def test_a_legacy_session_is_told(server: ResourceServer) -> None:
    @server.resource("a://b")
    def handler(ctx: Context) -> dict[str, Any]:
        return {"revision": ctx.revision, "client": ctx.client_info, "meta": ctx.meta}

    async with Client(server, revision=LEGACY) as client:
        text = await client.read_text("a://b")
    assert '"revision":"2025-11-25"' in text
    assert '"name":"mcp-resources-testing"' in text
    assert '"meta":null' in text


@pytest.mark.parametrize("how", ["pool", "inline", "async"])
async def test_progress_precedes_the_answer(server: ResourceServer, how: str) -> None:
    """R-124, R-125."""

    def report(ctx: Context) -> str:
        ctx.progress(0.5, 2)
        ctx.progress(0.25, 2)
        ctx.progress(2, 2, "done")
        return "x"

    async def coroutine(ctx: Context) -> str:
        await asyncio.sleep(0)
        return report(ctx)

    server.resource("a://b", inline=how == "inline")(coroutine if how == "async" else report)
    async with Client(server) as client:
        await client.request("read", {"uri": "a://b"}, meta={"progressToken": 7})
        first, second = [await client.notification() for _ in range(2)]
        assert (first.kind, first.params) == ("progress", {"progressToken": 7, "progress": 0.5, "total": 2})
        assert second.params == {"progressToken": 7, "progress": 2, "total": 2, "message": "done"}
        await client.read("a://b")
        with pytest.raises(TimeoutError):
            await client.notification(0.05)


async def test_nothing_is_reported_after_the_answer(server: ResourceServer) -> None:
    kept: list[Context] = []

    @server.resource("a://b")
    def handler(ctx: Context) -> str:
        kept.append(ctx)
        return "x"

    async with Client(server) as client:
        await client.request("read", {"uri": "a://b"}, meta={"progressToken": "t"})
        kept[0].progress(1)
        with pytest.raises(TimeoutError):
            await client.notification(0.05)


async def test_logs_go_to_those_who_want_them() -> None:
    """R-122."""
    server = ResourceServer("x", logging=True)

    @server.resource("a://b")
    async def handler(ctx: Context) -> str:
        ctx.log.debug("not wanted")
        ctx.log.warning({"free": 3, "password": "secret"}, logger="disk")
        ctx.log("error", "plain")
        return "x"

    async with Client(server) as client:
        await client.request("read", {"uri": "a://b"}, meta={"io.modelcontextprotocol/logLevel": "info"})
        first, second = [await client.notification() for _ in range(2)]
        assert (first.params["level"], first.params["logger"], first.params["data"]["free"]) == ("warning", "disk", 3)
        assert "secret" not in str(first.params)
        assert second.params == {"level": "error", "data": "plain"}
        await client.read("a://b")
        with pytest.raises(TimeoutError):
            await client.notification(0.05)
    async with Client(server, revision=LEGACY) as client:
        await client.request("set_level", {"level": "error"})
        await client.read("a://b")
        assert (await client.notification()).params["level"] == "error"


async def test_an_unknown_level_is_the_authors_mistake() -> None:
    server = ResourceServer("x", logging=True)

    @server.resource("a://b")
    def handler(ctx: Context) -> str:
        with pytest.raises(ValueError, match="unexpected level"):
            ctx.log("loud", "x")  # type: ignore[arg-type]
        return "x"

    async with Client(server) as client:
        assert await client.read_text("a://b") == "x"


async def test_cancelling_a_request_cancels_its_task(server: ResourceServer) -> None:
    """R-127."""
    started, ended = asyncio.Event(), asyncio.Event()

    @server.resource("a://slow")
    async def slow() -> str:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return "late"

    async with Client(server) as client:
        id, _ = client.send("read", {"uri": "a://slow"})
        await started.wait()
        client.cancel(id)
        await ended.wait()
        await asyncio.sleep(0)
        assert client._channel.in_flight == 0
        assert client._channel.suspended == 0


async def test_a_worker_sees_that_it_is_cancelled(server: ResourceServer) -> None:
    started, seen = threading.Event(), threading.Event()

    @server.resource("a://slow")
    def slow(ctx: Context) -> str:
        started.set()
        while not ctx.cancelled:
            time.sleep(0.001)
        seen.set()
        return "late"

    async with Client(server) as client:
        id, _ = client.send("read", {"uri": "a://slow"})
        await asyncio.to_thread(started.wait)
        client.cancel(id)
        assert await asyncio.to_thread(seen.wait, 5)
        while client._channel.in_flight:
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("kind", ["async", "pool"])
async def test_a_handler_that_takes_too_long_is_timed_out(kind: str) -> None:
    """R-214."""
    server = ResourceServer("x", limits=Limits(read_timeout=50))
    over = threading.Event()

    async def slow() -> str:
        try:
            await asyncio.sleep(60)
        finally:
            over.set()
        return ""

    def slow_thread(ctx: Context) -> str:
        while not ctx.cancelled:
            time.sleep(0.001)
        over.set()
        return ""

    server.resource("a://slow")(slow if kind == "async" else slow_thread)
    async with Client(server) as client:
        with pytest.raises(ServerError) as caught:
            await client.read("a://slow")
        assert (caught.value.kind, caught.value.data["timeoutMs"]) == ("timeout", 50)
        assert await asyncio.to_thread(over.wait, 5)


async def test_input_is_asked_for_and_comes_back(server: ResourceServer) -> None:
    """R-134 to R-139."""

    @server.resource("a://hello")
    async def hello(ctx: Context) -> str | InputRequired:
        answer = ctx.inputs.get("name")
        if answer is None:
            return InputRequired({"name": Elicit("Your name?", FORM)}, state={"round": 1, "ä": [None]})
        if answer.action != "accept":
            raise InputDeclinedError
        return f"Hello, {answer.content['name']} {ctx.state['round']} {ctx.state['ä']}"

    async with Client(server, capabilities={"elicitation": {}}) as client:
        assert await client.read("a://hello", inputs={"name": ACCEPT})
        (contents,) = await client.read("a://hello", inputs={"name": ACCEPT})
        assert contents.body == "Hello, Ada 1 [None]"
        with pytest.raises(ServerError) as declined:
            await client.read("a://hello", inputs={"name": {"action": "decline"}})
        assert declined.value.kind == "input_declined"
        with pytest.raises(InputNeeded) as needed:
            await client.read("a://hello")
        assert needed.value.requests["name"]["params"]["message"] == "Your name?"
        with pytest.raises(ServerError) as forged:
            await client.read("a://hello", inputs={"name": ACCEPT}, state="v1.forged")
        assert forged.value.code == -32602
    async with Client(server) as client:
        with pytest.raises(ServerError) as undeclared:
            await client.read("a://hello")
        assert (undeclared.value.code, undeclared.value.data) == (-32021, {"requiredCapabilities": {"elicitation": {}}})
    async with Client(server, revision=LEGACY) as client:
        with pytest.raises(ServerError) as legacy:
            await client.read("a://hello")
        assert legacy.value.kind == "input_required"


async def test_every_sort_of_question(server: ResourceServer) -> None:
    @server.resource("a://ask")
    def ask(ctx: Context) -> str:
        if not ctx.inputs:
            raise InputRequired(
                {
                    "page": ElicitUrl("Look", "https://example.com"),
                    "model": Sample({"messages": [], "maxTokens": 1}),
                    "roots": ListRoots(),
                }
            )
        return str(sorted(ctx.inputs))

    capabilities = {"elicitation": {"url": {}}, "sampling": {}, "roots": {}}
    async with Client(server, capabilities=capabilities) as client:
        answers = {"page": {"action": "accept"}, "model": {"role": "assistant"}, "roots": {"roots": []}}
        (contents,) = await client.read("a://ask", inputs=answers)
        assert contents.body == "['model', 'page', 'roots']"


async def test_keys_let_another_server_go_on() -> None:
    """R-136: two processes of one deployment."""

    def make(key: bytes) -> ResourceServer:
        server = ResourceServer("x", keys=[key])

        @server.resource("a://b")
        def handler(ctx: Context) -> str:
            if ctx.state is None:
                raise InputRequired(state="kept")
            return str(ctx.state)

        return server

    shared = b"0123456789abcdef"
    async with Client(make(shared)) as client:
        with pytest.raises(InputNeeded) as needed:
            await client.read("a://b")
    state = needed.value.state
    async with Client(make(shared)) as client:
        assert (await client.read("a://b", state=state))[0].body == "kept"
    async with Client(make(b"fedcba9876543210")) as client:
        with pytest.raises(ServerError):
            await client.read("a://b", state=state)


async def test_each_call_has_a_context_of_its_own(server: ResourceServer) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    variable.set("of the server")

    def touch() -> str:
        before = variable.get()
        variable.set("of a request")
        return before

    async def coroutine() -> str:
        return touch()

    server.resource("a://inline", inline=True)(touch)
    server.resource("a://pool")(touch)
    server.resource("a://async")(coroutine)
    async with Client(server) as client:
        for uri in ("a://inline", "a://pool", "a://async"):
            assert [await client.read_text(uri) for _ in range(2)] == ["of the server"] * 2
    assert variable.get() == "of the server"


async def test_foreign_methods(server: ResourceServer) -> None:
    @server.method("vendor/add", capability=("vendor", {"version": 1}))
    async def add(params: dict[str, Any], ctx: Context) -> dict[str, int]:
        ctx.progress(1, 1)
        return {"sum": params["a"] + params["b"]}

    @server.method("vendor/meta")
    def meta() -> MethodResult:
        return MethodResult({"a": 1}, meta={"com.example/x": 2})

    @server.method("vendor/fails")
    def fails(params: dict[str, Any]) -> dict[str, int]:
        raise RuntimeError

    server.add_resource(Resource("a://b"), text="")
    async with Client(server) as client:
        assert client.server_info["capabilities"]["vendor"] == {"version": 1}
        result = await client.request("vendor/add", {"a": 1, "b": 2}, meta={"progressToken": 1})
        assert result["sum"] == 3
        assert (await client.notification()).params["progress"] == 1
        result = await client.request("vendor/meta")
        assert (result["a"], result["_meta"]["com.example/x"]) == (1, 2)
        with pytest.raises(ServerError) as caught:
            await client.request("vendor/fails", {})
        assert caught.value.code == -32603
        with pytest.raises(ServerError) as unknown:
            await client.request("vendor/none")
        assert unknown.value.code == -32601
        server.method("vendor/late")(add)
        assert (await client.request("vendor/late", {"a": 2, "b": 3}))["sum"] == 5
    with pytest.raises(RegistrationError, match="tool"):
        server.method("tools/call")(add)


async def test_a_method_of_ours_cannot_be_taken(server: ResourceServer) -> None:
    with pytest.raises(RegistrationError, match="resources/read"):
        server.method("resources/read")(lambda params: {})


async def test_closed_connections_are_freed(server: ResourceServer) -> None:
    @server.resource("a://b")
    async def handler(ctx: Context) -> str:
        return "x" if ctx.uri else ""

    def drivers() -> int:
        return sum(issubclass(type(found), Driver) for found in gc.get_objects())

    gc.collect()
    before = drivers()
    for _ in range(10):
        async with Client(server) as client:
            await client.read("a://b")
        del client
    gc.collect()
    assert drivers() == before


async def test_the_type_of_the_lifespan_stands_in_the_annotation() -> None:
    """`Context[State]` is the request like `Context`, as a class, as a text, and in a union."""
    import typed_lifespan

    async with Client(typed_lifespan.server) as client:
        assert await client.read_text("row://7") == "row 7"
        assert (await client.complete("row://{id}", "id", "")).values == ["row 1"]
        called = await client.request("tools/call", {"name": "first", "arguments": {}})
        assert called["content"][0]["text"] == "row 1"
    assert Context[int].__origin__ is Context
