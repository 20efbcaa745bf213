"""Endpoints of an HTTP API, served by the command to the official client: the operator's token stays."""

import asyncio
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import mcp_types as types
import pytest
from http_aside import serving_aside
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated
from mcp_resources import providers
from process import refused_at_start

MODERN, LEGACY = "2026-07-28", "legacy"
NOT_FOUND = {LEGACY: -32002, MODERN: -32602}
PLANTED = "hunter2-canary"
ITEM = "api:///shop/item/7"
PATIENCE = 30.0


class Upstream(ThreadingHTTPServer):
    """An API of this machine, whose one item has a price."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.price = 1
        self.asked: list[tuple[str, str | None]] = []


class Handler(BaseHTTPRequestHandler):
    """Answers for `/items/7`, and says a secret for all else."""

    server: Upstream

    def do_GET(self) -> None:
        """Answers."""
        self.server.asked.append((self.path, self.headers["authorization"]))
        found = self.path == "/items/7"
        body = json.dumps({"data": {"price": self.server.price}, "debug": PLANTED}).encode()
        self.send_response(200 if found else 404)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def options(upstream: Upstream) -> dict[str, object]:
    """What is declared: in a file, and to `providers.api`."""
    item = {
        "url": f"http://127.0.0.1:{upstream.server_port}/items/{{id}}",
        "headers": {"Authorization": {"env": "SHOP_TOKEN"}},
        "pick": "/data",
        "ids": ["7"],
    }
    return {"shop": {"endpoints": {"item": item}}}


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("mode", [LEGACY, MODERN])
@pytest.mark.parametrize("is_word", [True, False])
def test_the_official_client(program: Path, tmp_path: Path, mode: str, is_word: bool) -> None:
    """S-20: lists, reads, completes and watches; nothing of the operator's secret or of the server's error is seen."""
    updates: asyncio.Queue[str] = asyncio.Queue()

    async def on_message(message: object) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            updates.put_nowait(message.params.uri)

    async def main(upstream: Upstream) -> None:
        api = {"apis": options(upstream), "private_networks": True, "poll": "100ms"}
        file = tmp_path / "resources.json"
        file.write_text(json.dumps(api if is_word else {"providers": [{"api": api}]}))
        words = [f"api:{file}"] if is_word else ["--config", str(file)]
        server = StdioServerParameters(
            command=str(program), args=["serve", *words], env=os.environ | {"SHOP_TOKEN": PLANTED}
        )
        async with (
            asyncio.timeout(PATIENCE),
            Client(server, mode=mode, message_handler=on_message, cache=None) as client,
        ):
            listed = {resource.uri for resource in (await client.list_resources()).resources}
            assert listed == {"api:///", "api:///shop/item", ITEM}
            assert upstream.asked == []
            (content,) = (await client.read_resource(ITEM)).contents
            assert isinstance(content, types.TextResourceContents)
            assert json.loads(content.text) == {"price": 1}
            template = types.ResourceTemplateReference(uri="api:///{name}/{endpoint}/{+id}")
            assert (await client.complete(template, {"name": "id", "value": ""})).completion.values == ["7"]
            with pytest.raises(MCPError) as caught:
                await client.read_resource("api:///shop/item/..%2F..//host")
            assert caught.value.error.code == NOT_FOUND[mode]
            assert PLANTED not in str(caught.value.error)

            if mode == MODERN:
                async with client.listen(resource_subscriptions=[ITEM]) as subscription:
                    await asyncio.sleep(1)
                    upstream.price = 2
                    assert await anext(subscription) == ResourceUpdated(ITEM)
            else:
                await client.subscribe_resource(ITEM)
                await asyncio.sleep(1)
                upstream.price = 2
                assert await updates.get() == ITEM
        assert {token for _, token in upstream.asked} == {PLANTED}
        assert {path for path, _ in upstream.asked} <= {"/items/7", "/items/..%2F..%2F%2Fhost"}

    with serving_aside(Upstream()) as upstream:
        asyncio.run(main(upstream))


def test_what_cannot_be_served_is_said_at_once(program: Path, tmp_path: Path) -> None:
    """S-20: with the fix, without the value, and though stdin is open."""
    file = tmp_path / "resources.json"
    for text, said in (
        ('{"apis": {"shop": {"endpoints": {"item": {"url": "https://me:hunter2-canary@h/"}}}}}', "has a user or a"),
        (
            '{"apis": {"shop": {"endpoints": {"item": {"url": "https://h/", "headers": {"A": {"env": "NO_SUCH"}}}}}}}',
            "not set",
        ),
        ("{", "cannot be served: "),
    ):
        file.write_text(text)
        error = refused_at_start(program, f"api:{file}")
        assert said in error
        assert PLANTED not in error


def test_what_python_gives_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """S-20: the options have types, and wrong ones say what would be right."""
    monkeypatch.setenv("SHOP_TOKEN", PLANTED)
    endpoints = {"item": {"url": "https://h/{id}", "headers": {"Authorization": {"env": "SHOP_TOKEN"}}}}
    assert repr(providers.api({"shop": {"endpoints": endpoints}}, timeout="1s")) == "<provider api>"
    for apis, more, error, message in (
        ({"shop": {"endpoints": {"item": "ftp://h/"}}}, {}, ValueError, "begins neither with https://"),
        ({"shop": {"endpoint": {}}}, {}, TypeError, 'did you mean "endpoints"'),
        ({"shop": {"endpoints": endpoints}}, {"redirect": 1}, TypeError, 'did you mean "redirects"'),
        ({"shop": {"endpoints": endpoints}}, {"poll": "soon"}, ValueError, "a time such as"),
        ({}, {}, ValueError, "there is no endpoint"),
        ({"shop": {"base_url": "https://h"}}, {}, ValueError, "without a document; name one"),
        ({"shop": {"opnapi": "shop.yaml"}}, {}, TypeError, 'did you mean "openapi"'),
        ({"shop": {"openapi": "none.yaml", "allow": "GET /a"}}, {}, ValueError, "none.yaml does not exist"),
        ({"shop": {"openapi": "none.yaml", "headers": {"X-Key": 1}}}, {}, ValueError, "the header X-Key has neither"),
    ):
        with pytest.raises(error, match=message):
            providers.api(apis, **more)
