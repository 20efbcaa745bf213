"""A cache of results: two principals over HTTP, a file that two processes share, computations that run once."""

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated
from mcp_resources import Auth, ResourceServer, Verified, providers, testing
from test_asgi import modern

MODERN, LEGACY = "2026-07-28", "legacy"
NOT_FOUND = {LEGACY: -32002, MODERN: -32602}
PATIENCE = 30.0
TEMPLATE = types.ResourceTemplateReference(uri="wallbounce:///{analysisId}")


async def text(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    return content.text


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("mode", [LEGACY, MODERN])
def test_the_command_serves_what_a_program_puts(program: Path, tmp_path: Path, mode: str) -> None:
    """S-06: list, read, complete and watch with the official client, while this process puts into the same file."""
    results = providers.results(scheme="wallbounce", file=tmp_path / "results.db")
    results.put("risk", '{"risk": "low"}', mime_type="application/json")
    results.put("日本", b"\x00\xff")
    file = tmp_path / "resources.yaml"
    file.write_text("providers: [{results: {scheme: wallbounce, entries: 10, ttl: 1h, file: results.db}}]")
    updates: asyncio.Queue[str] = asyncio.Queue()

    async def on_message(message: object) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            updates.put_nowait(message.params.uri)

    async def main() -> None:
        server = StdioServerParameters(command=str(program), args=["serve", "--config", str(file)])
        async with (
            asyncio.timeout(PATIENCE),
            Client(server, mode=mode, message_handler=on_message, cache=None) as client,
        ):
            listed = {resource.uri: resource for resource in (await client.list_resources()).resources}
            assert set(listed) == {"wallbounce:///", "wallbounce:///risk", "wallbounce:///%E6%97%A5%E6%9C%AC"}
            assert (listed["wallbounce:///risk"].mime_type, listed["wallbounce:///risk"].size) == (
                "application/json",
                15,
            )
            assert json.loads(await text(client, "wallbounce:///risk")) == {"risk": "low"}
            assert "wallbounce:///risk" in await text(client, "wallbounce:///")
            values = (await client.complete(TEMPLATE, {"name": "analysisId", "value": "r"})).completion.values
            assert values == ["risk"]
            with pytest.raises(MCPError) as caught:
                await client.read_resource("wallbounce:///none")
            assert caught.value.error.code == NOT_FOUND[mode]

            async def put() -> None:
                await asyncio.sleep(0.6)
                results.put("risk", '{"risk": "high"}', mime_type="application/json")

            putting = asyncio.ensure_future(put())
            if mode == MODERN:
                async with client.listen(resource_subscriptions=["wallbounce:///risk"]) as subscription:
                    assert await anext(subscription) == ResourceUpdated("wallbounce:///risk")
            else:
                await client.subscribe_resource("wallbounce:///risk")
                assert await updates.get() == "wallbounce:///risk"
            await putting
            assert json.loads(await text(client, "wallbounce:///risk")) == {"risk": "high"}

    asyncio.run(main())


async def test_no_principal_sees_anothers() -> None:
    """S-06: lists, the index, completion and reads of two tokens, and of none; the same body for what never was."""

    async def verify(token: str) -> Verified:
        return Verified(token, [])

    results = providers.results()
    results.put("plan", "alice's plan", principal="alice")
    results.put("both", "everybody's")
    results.put("both", "bob's", principal="bob")
    server = ResourceServer("results")
    server.mount(results)
    app = server.asgi(auth=Auth("http://localhost/mcp", ["http://localhost:9"], verify))

    async def ask(token: str, method: str, **params: Any) -> Any:
        call = modern(app, 1, method, **params)
        call.scope["headers"].append((b"authorization", f"Bearer {token}".encode()))
        return await call.json()

    async def seen(token: str) -> tuple[list[str], list[str], list[str]]:
        listed = (await ask(token, "resources/list"))["result"]["resources"]
        index = json.loads((await ask(token, "resources/read", uri="results:///"))["result"]["contents"][0]["text"])
        reference = {"type": "ref/resource", "uri": "results:///{analysisId}"}
        completed = await ask(token, "completion/complete", ref=reference, argument={"name": "analysisId", "value": ""})
        return (
            [resource["uri"] for resource in listed if resource["uri"] != "results:///"],
            [result["uri"] for result in index["results"]],
            completed["result"]["completion"]["values"],
        )

    for token, ids in (("alice", ["both", "plan"]), ("bob", ["both"]), ("carol", ["both"])):
        uris = [f"results:///{id}" for id in ids]
        assert await seen(token) == (uris, uris, ids)
    for token, body in (("alice", "everybody's"), ("bob", "bob's")):
        read = await ask(token, "resources/read", uri="results:///both")
        assert read["result"]["contents"][0]["text"] == body
        assert read["result"]["cacheScope"] == "private"
        assert 0 < read["result"]["ttlMs"] <= 3_600_000
    for token in ("bob", "carol"):
        hidden, absent = [await ask(token, "resources/read", uri=f"results:///{id}") for id in ("plan", "none")]
        assert json.dumps(hidden).replace("plan", "none") == json.dumps(absent)
    assert (results.get("plan"), results.get("plan", principal="alice")) == (None, "alice's plan")
    assert results.remove("plan") is False
    assert results.remove("plan", principal="alice") is True
    assert len(results) == 2


async def test_a_computation_runs_once() -> None:
    """S-06: for 64 calls at once, whether it succeeds or fails; a caller that gives up takes nobody with it."""
    results = providers.results()
    runs = 0

    async def compute() -> str:
        nonlocal runs
        runs += 1
        await asyncio.sleep(0.1)
        return "computed"

    async def fails() -> str:
        nonlocal runs
        runs += 1
        await asyncio.sleep(0.1)
        raise LookupError("broken")

    calls = [asyncio.ensure_future(results.get_or_compute("a", compute, ttl="1min")) for _ in range(64)]
    await asyncio.sleep(0.01)
    calls[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await calls[0]
    assert await asyncio.gather(*calls[1:]) == ["computed"] * 63
    assert runs == 1
    failures = await asyncio.gather(*(results.get_or_compute("b", fails) for _ in range(64)), return_exceptions=True)
    assert {str(failure) for failure in failures} == {"broken"}
    assert (runs, results.get("b")) == (2, None)
    assert await results.get_or_compute("b", lambda: "plain") == "plain"
    with pytest.raises(TypeError, match="body is 5"):
        await results.get_or_compute("c", lambda: 5)  # type: ignore[arg-type, return-value]


def test_a_computation_is_shared_by_threads() -> None:
    """S-06: event loops in several threads; when the one that computes ends, another one computes."""
    results = providers.results()
    started = threading.Event()
    computed: list[object] = []

    async def never() -> str:
        started.set()
        await asyncio.sleep(PATIENCE)
        raise AssertionError("its loop has ended")

    async def lead() -> None:
        call = asyncio.ensure_future(results.get_or_compute("a", never))
        await asyncio.sleep(0.3)
        call.cancel()

    leading = threading.Thread(target=lambda: asyncio.run(lead()))
    leading.start()
    assert started.wait(PATIENCE)
    computed.append(asyncio.run(results.get_or_compute("a", lambda: "in its place")))
    leading.join()
    assert computed == ["in its place"]


async def test_replacing_is_an_update() -> None:
    """S-06: also for what is put between the pages of a loop."""
    results = providers.results(entries=2)
    server = ResourceServer("results")
    server.mount(results)
    async with testing.Client(server) as client:
        for id in ("a", "b", "c"):
            results.put(id, id)
        assert [item["uri"] for item in await client.list_resources()] == [
            "results:///",
            "results:///b",
            "results:///c",
        ]
        async with client.listen(["results:///c"]) as listen:
            results.put("c", b"bytes")
            assert (await listen.next()).params["uri"] == "results:///c"


def test_a_process_may_fork_before_the_first_use(tmp_path: Path) -> None:
    """S-06: parent and child share the file; a child whose parent has used it is told so."""
    file = tmp_path / "results.db"
    results = providers.results(file=file)

    def child(work: Any) -> str:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                said = work()
            except OSError as error:
                said = str(error)
            os.write(writing, said.encode())
            os._exit(0)
        os.close(writing)
        os.waitpid(pid, 0)
        with os.fdopen(reading, "rb") as pipe:
            return pipe.read().decode()

    def put() -> str:
        results.put("a", "from the child")
        return "done"

    assert child(put) == "done"
    assert results.get("a") == "from the child"
    assert "was opened before this process was forked" in child(put)
    results.put("b", "still whole")
    assert len(results) == 2
