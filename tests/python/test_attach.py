"""`ResourceServer.attach`: our resources in servers of the official SDK and of FastMCP, read in memory."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import pytest
from attached_app import KINDS, ROWS, Kind, attached, made, resources_of_ours
from mcp import Client, MCPError
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp_resources import ResourceServer

MODERN, LEGACY = "auto", "legacy"  # `auto` discovers that the server speaks 2026-07-28

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.parametrize("kind", KINDS),
    pytest.mark.parametrize("mode", [LEGACY, MODERN]),
]


@pytest.fixture(autouse=True)
def rows() -> None:
    ROWS.clear()
    ROWS["7"] = "tea"


def low(app: Any) -> Any:
    """What the official client takes in memory."""
    return getattr(app, "_mcp_server", app)


class Seen:
    """A client, and what it was told without asking."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []
        self.client: Client

    async def hear(self, message: Any) -> None:
        if isinstance(message, Exception):
            raise message
        params = getattr(message, "params", None)
        self.told.append((message.method, getattr(params, "uri", None)))

    async def log(self, params: Any) -> None:
        self.told.append(("log", params.data))

    @property
    def updates(self) -> list[str]:
        return [uri for method, uri in self.told if method == "notifications/resources/updated"]


@asynccontextmanager
async def connected(app: Any, mode: str, **options: Any) -> AsyncIterator[Seen]:
    seen = Seen()
    options = {"message_handler": seen.hear, "logging_callback": seen.log, **options}
    async with Client(low(app), mode=mode, cache=None, **options) as client:
        seen.client = client
        yield seen


async def recorded(app: Any, mode: str) -> list[Any]:
    """What a client sees of everything but resources."""
    record: list[Any] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        record.append(("progress", done, total, message))

    async def elicited(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        record.append(("asked", params.message))
        return types.ElicitResult(action="accept", content={})

    async with connected(app, mode, elicitation_callback=elicited) as seen:
        client = seen.client
        if mode == LEGACY:
            await client.set_logging_level("debug") if client.server_capabilities.logging else None
        capabilities = client.server_capabilities.model_dump(exclude={"resources", "completions"})
        record += [client.server_info, client.instructions, capabilities]
        record.append(await client.list_tools())
        record.append(await client.call_tool("add", {"a": 2, "b": 3}))
        record.append(await client.call_tool("steps", {"n": 2}, progress_callback=progress))
        record.append(await client.call_tool("burn", {}))
        try:
            record.append(await client.call_tool("absent", {}))
        except MCPError as error:
            record.append((error.code, error.message))
        record.append(await client.list_prompts())
        record.append(await client.get_prompt("greet", {"name": "Ada"}))
        if mode == LEGACY:
            record.append(await client.call_tool("confirm", {}))
        await asyncio.sleep(0)
        record.append([told for told in seen.told if not told[0].startswith("notifications/resources")])
    return record


def comparable(record: list[Any]) -> list[Any]:
    return [entry.model_dump() if hasattr(entry, "model_dump") else entry for entry in record]


async def test_everything_else_stays_as_it_was(kind: Kind, mode: str) -> None:
    """Tools, prompts, errors, progress, logs and questions, with and without attach."""
    before = comparable(await recorded(made(kind), mode))
    app, _ = attached(kind)
    assert comparable(await recorded(app, mode)) == before


async def test_our_resources_are_there(kind: Kind, mode: str) -> None:
    app, _ = attached(kind)
    async with connected(app, mode) as seen:
        client = seen.client
        assert client.server_capabilities.resources is not None
        assert client.server_capabilities.completions is not None
        assert client.server_info is None or client.server_info.name == "shop"
        listed = {str(resource.uri) for resource in (await client.list_resources()).resources}
        assert listed == {"shop://static", "shop://who", "own://note", "own://broken"}
        templates = [template.uri_template for template in (await client.list_resource_templates()).resource_templates]
        assert sorted(templates) == ["own://item/{id}", "shop://row/{id}"]
        for uri, text in [
            ("shop://static", "ours"),
            ("shop://row/7", '{"name":"tea"}'),
            ("own://note", "their note"),
            ("own://item/3", "their item 3"),
        ]:
            (content,) = (await client.read_resource(uri)).contents
            assert isinstance(content, types.TextResourceContents)
            assert (content.text, str(content.uri)) == (text, uri)
        reference = types.ResourceTemplateReference(uri="shop://row/{id}")
        completed = await client.complete(reference, {"name": "id", "value": ""})
        assert completed.completion.values == ["7"]


async def test_the_client_of_fastmcp(kind: Kind, mode: str) -> None:
    """It takes any server in memory, and chooses the era itself."""
    from fastmcp import Client as TheirClient

    app, _ = attached(kind)
    async with TheirClient(app) as client:
        listed = {str(resource.uri) for resource in await client.list_resources()}
        assert {"shop://static", "own://note"} <= listed
        for uri, text in [("shop://static", "ours"), ("own://note", "their note")]:
            (content,) = await client.read_resource(uri)
            assert getattr(content, "text", None) == text


async def test_errors_say_whose_they_are(kind: Kind, mode: str) -> None:
    app, _ = attached(kind)
    plain = made(kind)
    async with connected(app, mode) as seen, connected(plain, mode) as before:
        with pytest.raises(MCPError) as absent:
            await seen.client.read_resource("shop://absent")
        assert "not found" in absent.value.message.lower()
        with pytest.raises(MCPError) as broken:
            await seen.client.read_resource("own://broken")
        with pytest.raises(MCPError) as expected:
            await before.client.read_resource("own://broken")
        assert (broken.value.code, broken.value.message) == (expected.value.code, expected.value.message)


async def test_without_adoption_theirs_are_absent(kind: Kind, mode: str) -> None:
    app, _ = attached(kind, adopt=False)
    async with connected(app, mode) as seen:
        listed = [str(resource.uri) for resource in (await seen.client.list_resources()).resources]
        assert listed == ["shop://static", "shop://who"]
        (template,) = (await seen.client.list_resource_templates()).resource_templates
        assert template.uri_template == "shop://row/{id}"
        with pytest.raises(MCPError):
            await seen.client.read_resource("own://note")


async def test_our_guard_covers_theirs(kind: Kind, mode: str) -> None:
    app, _ = attached(kind, guard={"deny": ["own://note", "own://item/secret*"], "redact": ["aws-access-key"]})
    async with connected(app, mode) as seen:
        listed = [str(resource.uri) for resource in (await seen.client.list_resources()).resources]
        assert "own://note" not in listed
        assert "own://broken" in listed
        with pytest.raises(MCPError) as hidden:
            await seen.client.read_resource("own://note")
        with pytest.raises(MCPError) as absent:
            await seen.client.read_resource("own://nothing")
        assert hidden.value.code == absent.value.code
        assert hidden.value.message == absent.value.message
        (content,) = (await seen.client.read_resource("own://item/AKIAIOSFODNN7EXAMPLE")).contents
        assert isinstance(content, types.TextResourceContents)
        assert content.text.startswith("their item")
        assert "AKIA" not in content.text


async def test_a_watch_sees_a_row_that_a_tool_has_changed(kind: Kind, mode: str) -> None:
    """Told once, and nobody is told who has not subscribed."""
    app, _ = attached(kind)
    async with connected(app, mode) as watching, connected(app, mode) as other:
        if mode == LEGACY:
            await watching.client.subscribe_resource("shop://row/7")
            await other.client.call_tool("rename", {"id": "7", "name": "mate"})
            await until(lambda: watching.updates)
        else:
            async with watching.client.listen(resource_subscriptions=["shop://row/7"]) as changes:
                await other.client.call_tool("rename", {"id": "7", "name": "mate"})
                event = await asyncio.wait_for(anext(aiter(changes)), 5)
                assert event == ResourceUpdated("shop://row/7")
        (content,) = (await watching.client.read_resource("shop://row/7")).contents
        assert isinstance(content, types.TextResourceContents)
        assert content.text == '{"name":"mate"}'
        await asyncio.sleep(0.05)
        assert watching.updates == ["shop://row/7"]
        assert other.updates == []


async def test_close_ends_listens(kind: Kind, mode: str) -> None:
    """A listen ends with its result, and a session hears nothing more. The other server goes on."""
    app, resources = attached(kind)
    async with connected(app, mode) as seen:
        if mode == LEGACY:
            await seen.client.subscribe_resource("shop://row/7")
            resources.close()
            resources.notify_updated("shop://row/7")
            await asyncio.sleep(0.05)
            assert seen.updates == []
        else:
            async with seen.client.listen(resource_subscriptions=["shop://row/7"]) as changes:
                resources.close()
                resources.notify_updated("shop://row/7")
                assert [change async for change in changes] == []
        (content,) = (await seen.client.read_resource("shop://row/7")).contents
        assert isinstance(content, types.TextResourceContents)
        assert (await seen.client.call_tool("add", {"a": 2, "b": 3})).is_error is False


async def test_our_own_changes_reach_clients(kind: Kind, mode: str) -> None:
    app, resources = attached(kind)
    async with connected(app, mode) as seen:
        if mode == LEGACY:
            await seen.client.subscribe_resource("shop://static")
            resources.notify_updated("shop://static")
            await until(lambda: seen.updates)
            assert seen.updates == ["shop://static"]
            await seen.client.unsubscribe_resource("shop://static")
        else:
            async with seen.client.listen(resources_list_changed=True) as changes:
                resources.add_resource(_resource("shop://new"), text="new")
                assert await asyncio.wait_for(anext(aiter(changes)), 5) == ResourcesListChanged()
        assert resources._core.handlers > 0


async def test_a_tool_may_ask_the_client_while_it_tells_a_change(kind: Kind, mode: str) -> None:
    if mode == MODERN:
        return  # this era has no questions on a connection

    async def elicited(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={})

    app, _ = attached(kind)
    async with connected(app, mode, elicitation_callback=elicited) as seen:
        await seen.client.subscribe_resource("shop://row/7")
        result = await seen.client.call_tool("confirm", {})
        assert isinstance(result.content[0], types.TextContent)
        assert result.content[0].text == "accept"
        await until(lambda: seen.updates)
        assert seen.updates == ["shop://row/7"]


async def test_our_tools_follow_theirs(kind: Kind, mode: str) -> None:
    app = made(kind)
    resources = resources_of_ours(expose_as_tools=True)
    resources.attach(app)

    @resources.tool
    def shout(text: str) -> str:
        return text.upper()

    async with connected(app, mode) as seen:
        names = [tool.name for tool in (await seen.client.list_tools()).tools]
        assert names[-3:] == ["list_resources", "read_resource", "shout"]
        assert "add" in names
        result = await seen.client.call_tool("shout", {"text": "hi"})
        assert isinstance(result.content[0], types.TextContent)
        assert result.content[0].text == "HI"
        result = await seen.client.call_tool("read_resource", {"uri": "own://note"})
        assert isinstance(result.content[0], types.TextContent)
        assert result.content[0].text == "their note"
        result = await seen.client.call_tool("add", {"a": 1, "b": 2})
        assert not result.is_error


async def test_a_name_that_both_have(kind: Kind, mode: str, caplog: pytest.LogCaptureFixture) -> None:
    """An error at attach; later ours gives way."""
    resources = ResourceServer("ours")
    resources.add_tool(lambda: "ours", "add")
    with pytest.raises(ValueError, match="both servers have a tool 'add'; rename"):
        resources.attach(made(kind))
    app, resources = attached(kind)
    resources.add_tool(lambda: "ours", "add")
    async with connected(app, mode) as seen:
        names = [tool.name for tool in (await seen.client.list_tools()).tools]
        assert names.count("add") == 1
        result = await seen.client.call_tool("add", {"a": 2, "b": 3})
        assert isinstance(result.content[0], types.TextContent)
        assert result.content[0].text == "5"
    assert "both servers have a tool add" in caplog.text


async def test_a_uri_that_both_have(kind: Kind, mode: str, caplog: pytest.LogCaptureFixture) -> None:
    app, resources = attached(kind)
    resources.add_resource(_resource("own://note"), text="our note")
    async with connected(app, mode) as seen:
        (content,) = (await seen.client.read_resource("own://note")).contents
        assert isinstance(content, types.TextResourceContents)
        assert content.text == "our note"
        listed = [str(resource.uri) for resource in (await seen.client.list_resources()).resources]
        assert listed.count("own://note") == 1
    assert '"own://note" is a resource of both servers' in caplog.text


async def test_a_middleware_of_the_app_that_raises(kind: Kind, mode: str) -> None:
    """Its own requests fail as before; ours do not."""
    app, _ = attached(kind)

    async def refuses(ctx: Any, call_next: Any) -> Any:
        if ctx.method in ("tools/call", "resources/list"):
            raise MCPError(-32050, "not today")
        return await call_next(ctx)

    low_level = getattr(app, "_lowlevel_server", None) or low(app)
    low_level.middleware.append(refuses)
    async with connected(app, mode) as seen:
        with pytest.raises(MCPError, match="not today"):
            await seen.client.call_tool("add", {"a": 1, "b": 2})
        listed = [str(resource.uri) for resource in (await seen.client.list_resources()).resources]
        assert listed == ["shop://static", "shop://who"]


async def test_a_client_that_leaves_leaves_nothing_behind(kind: Kind, mode: str) -> None:
    app, resources = attached(kind)
    before = {task for task in asyncio.all_tasks() if not task.done()}
    for _ in range(20):
        async with connected(app, mode) as seen:
            await seen.client.read_resource("shop://row/7")
            if mode == LEGACY:
                await seen.client.subscribe_resource("shop://row/7")
            else:
                listening = asyncio.ensure_future(_listen(seen.client))
                await asyncio.sleep(0)
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)
    await until(lambda: {task for task in asyncio.all_tasks() if not task.done()} <= before)
    gc.collect()
    (loop,) = resources._attached._loops.values()  # type: ignore[union-attr]
    assert (loop.clients.busy, loop.clients.suspended) == (0, 0)


async def _listen(client: Client) -> None:
    async with client.listen(resource_subscriptions=["shop://row/7"]) as changes:
        async for _ in changes:
            pass


async def until(holds: Any, seconds: float = 5) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.005)


def _resource(uri: str) -> Any:
    from mcp_resources import Resource

    return Resource(uri)
