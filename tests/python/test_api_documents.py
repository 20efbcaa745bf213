"""Endpoints of HTTP APIs with templates of any form, and of OpenAPI documents, read by the official client."""

import asyncio
import json
import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import mcp_types as types
import pytest
from http_aside import serving_aside
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated
from process import refused_at_start

PLANTED = "hunter2-canary"
PATIENCE = 30.0
NOT_ALLOWED = -32602

DOCUMENT = """
openapi: "3.1.0"
info: {title: Shop, version: "1"}
servers: [{url: "@base@/v1"}]
paths:
  /items/{id}:
    parameters: [{$ref: "#/components/parameters/Id"}]
    get:
      operationId: item
      summary: One item
      description: The price of an item.
      parameters:
        - {name: currency, in: query, schema: {type: string, enum: [eur, usd]}}
        - {name: X-Trace, in: header, schema: {type: string}}
      responses: {"200": {content: {application/json: {}}}}
    put: {operationId: change}
  /items/{id}/reviews: {get: {operationId: reviews, parameters: [{$ref: "#/components/parameters/Id"}]}}
  /items: {get: {operationId: items, parameters: [{name: page, in: query, schema: {type: integer}}]}}
  /admin/keys: {get: {operationId: keys}}
components:
  parameters: {Id: {name: id, in: path, required: true, schema: {type: integer}}}
"""


class Upstream(ThreadingHTTPServer):
    """An API of this machine that repeats what it was asked, and has its own document."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self.server_port}"
        self.document = DOCUMENT.replace("@base@", self.base)
        self.asked: list[tuple[str, str, str | None]] = []
        self.price = 1


class Handler(BaseHTTPRequestHandler):
    """Answers every path."""

    server: Upstream

    def do_GET(self) -> None:
        """Answers."""
        self.server.asked.append((self.command, self.path, self.headers["authorization"]))
        url = urlsplit(self.path)
        if url.path == "/openapi.yaml":
            kind, body = "application/yaml", self.server.document.encode()
        else:
            value: dict[str, Any] = {"path": url.path, "query": parse_qs(url.query, keep_blank_values=True)}
            if url.path.endswith("/price"):
                value["price"] = self.server.price
            if url.path.endswith("/echo"):
                value["header"] = self.headers["authorization"]
            kind, body = "application/json", json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with serving_aside(Upstream()) as server:
        yield server


def config(folder: Path, api: dict[str, object], **options: object) -> Path:
    file = folder / "resources.json"
    declared = {"apis": {"shop": api}, "private_networks": True, **options}
    file.write_text(json.dumps({"providers": [{"api": declared}]}), "utf-8")
    return file


def served(program: Path, file: Path) -> Client:
    environment = os.environ | {"SHOP_TOKEN": PLANTED}
    command = StdioServerParameters(command=str(program), args=["serve", "--config", str(file)], env=environment)
    return Client(command, mode="2026-07-28", cache=None)


async def read(client: Client, uri: str) -> Any:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    return json.loads(content.text)


def test_templates_of_any_form(program: Path, tmp_path: Path, upstream: Upstream) -> None:
    """S-20: several variables, and values of the client in the query; each stays where it is declared."""
    endpoints = {
        "reviews": {"url": upstream.base + "/items/{id}/reviews{?page,lang}", "description": "What people say."},
        "search": upstream.base + "/search?kind=item{&q}",
        "file": upstream.base + "/files{/path*}{?rev}",
    }

    async def main() -> None:
        async with asyncio.timeout(PATIENCE), served(program, config(tmp_path, {"endpoints": endpoints})) as client:
            templates = (await client.list_resource_templates()).resource_templates
            own = {one.uri_template: one for one in templates if one.uri_template.startswith("api:///shop/")}
            reviews = "api:///shop/reviews/{id}{?page,lang}"
            assert own.keys() == {reviews, "api:///shop/search{?q}", "api:///shop/file/{+path}{?rev}"}
            assert (own[reviews].name, own[reviews].description) == ("shop/reviews", "What people say.")
            assert await read(client, "api:///shop/reviews/7?page=2") == {
                "path": "/items/7/reviews",
                "query": {"page": ["2"]},
            }
            found = await read(client, "api:///shop/reviews/a%3Fb?lang=a%26b%3Dc&page=1")
            assert found == {"path": "/items/a%3Fb/reviews", "query": {"lang": ["a&b=c"], "page": ["1"]}}
            assert await read(client, "api:///shop/search") == {"path": "/search", "query": {"kind": ["item"]}}
            searched = await read(client, "api:///shop/search?q=%E6%A4%9C")
            assert searched["query"] == {"kind": ["item"], "q": ["検"]}
            assert (await read(client, "api:///shop/file/a/b.txt?rev=1"))["path"] == "/files/a/b.txt"
            described = await read(client, "api:///shop/reviews")
            assert described == {"uri": "api:///shop/reviews", "uriTemplate": reviews}
            for uri in ("api:///shop/reviews/7/8", "api:///shop/file", "api:///shop/nothing/7", "api:///shop/search/x"):
                if uri == "api:///shop/file":
                    assert "uriTemplate" in await read(client, uri)
                    continue
                with pytest.raises(MCPError) as caught:
                    await read(client, uri)
                assert caught.value.error.code == NOT_ALLOWED

    asyncio.run(main())
    assert all(path.startswith(("/items/", "/search?kind=item", "/files/")) for _, path, _ in upstream.asked)


@pytest.mark.parametrize("place", ["file", "url"])
def test_an_openapi_document(program: Path, tmp_path: Path, upstream: Upstream, place: str) -> None:
    """S-20: allowed GET operations are endpoints with names, descriptions and types; nothing else is, or is sent."""
    (tmp_path / "shop.yaml").write_text(upstream.document, "utf-8")
    api = {
        "openapi": "shop.yaml" if place == "file" else upstream.base + "/openapi.yaml",
        "allow": ["GET /items/**", "GET /items"],
        "headers": {"Authorization": {"env": "SHOP_TOKEN"}},
    }

    async def main() -> None:
        async with asyncio.timeout(PATIENCE), served(program, config(tmp_path, api)) as client:
            templates = (await client.list_resource_templates()).resource_templates
            own = {one.uri_template: one for one in templates if one.uri_template.startswith("api:///shop/")}
            item = "api:///shop/item/{id}{?currency}"
            assert own.keys() == {item, "api:///shop/reviews/{id}", "api:///shop/items{?page}"}
            assert (own[item].title, own[item].description) == ("One item", "The price of an item.")
            assert own[item].mime_type == "application/json"
            reference = types.ResourceTemplateReference(uri=item)
            completed = await client.complete(reference, {"name": "currency", "value": "e"})
            assert completed.completion.values == ["eur"]
            found = await read(client, "api:///shop/item/7?currency=eur")
            assert found == {"path": "/v1/items/7", "query": {"currency": ["eur"]}}
            assert (await read(client, "api:///shop/items?page=2"))["query"] == {"page": ["2"]}
            assert (await read(client, "api:///shop/items"))["query"] == {}
            for uri, said in (
                ("api:///shop/item/seven", "a whole number"),
                ("api:///shop/item/7?currency=gbp", "one of eur, usd"),
                ("api:///shop/keys", "not found"),
            ):
                with pytest.raises(MCPError, match=f"(?i){said}"):
                    await read(client, uri)

    asyncio.run(main())
    asked = [ask for ask in upstream.asked if ask[1] != "/openapi.yaml"]
    assert {method for method, _, _ in asked} == {"GET"}
    assert {token for _, _, token in asked} == {PLANTED}
    # The document is fetched without credentials.
    assert all(token is None for _, path, token in upstream.asked if path == "/openapi.yaml")


def test_a_resource_of_a_template_is_watched(program: Path, tmp_path: Path, upstream: Upstream) -> None:
    """S-20: a change of it is reported, and of another one with the same endpoint is not."""
    endpoints = {"price": upstream.base + "/{shop}/{item}/price{?currency}"}
    uri = "api:///shop/price/a/7?currency=eur"

    async def main() -> None:
        file = config(tmp_path, {"endpoints": endpoints}, poll="100ms")
        async with asyncio.timeout(PATIENCE), served(program, file) as client:
            assert (await read(client, uri))["price"] == 1
            async with client.listen(resource_subscriptions=[uri]) as subscription:
                await asyncio.sleep(1)
                upstream.price = 2
                assert await anext(subscription) == ResourceUpdated(uri)
                assert (await read(client, uri))["price"] == 2

    asyncio.run(main())
    assert {path for _, path, _ in upstream.asked} == {"/a/7/price?currency=eur"}


def test_what_a_document_may_not_do(program: Path, tmp_path: Path, upstream: Upstream) -> None:
    """S-20: each mistake is said at the start, with the fix."""
    (tmp_path / "shop.yaml").write_text(upstream.document, "utf-8")
    url = upstream.base + "/openapi.yaml"
    for api, document, said in (
        ({"openapi": "shop.yaml"}, None, 'none is allowed; write allow: ["GET /items/*"]'),
        ({"openapi": "shop.yaml", "allow": ["PUT /items/*"]}, None, "nothing but GET is sent"),
        ({"openapi": "shop.yaml", "allow": ["GET /item"]}, None, 'has no operation "GET /item"'),
        ({"openapi": "none.yaml", "allow": ["GET /items"]}, None, "none.yaml does not exist"),
        ({"allow": ["GET /items"]}, None, "without a document; name one"),
        ({"openapi": url, "allow": ["GET /items"]}, "- 1", "has no `openapi: 3.0`"),
        (
            {"openapi": url, "allow": ["GET /items"]},
            DOCUMENT.replace("@base@", "http://evil.example"),
            "names another server than the one that it comes from; give a base_url",
        ),
        ({"openapi": url, "allow": ["GET /items"]}, "x" * (17 << 20), "larger than 16 MiB"),
    ):
        if document is not None:
            upstream.document = document
        error = refused_at_start(program, "--config", str(config(tmp_path, api)), at=tmp_path)
        assert said in error, error
    private = config(tmp_path, {"openapi": url, "allow": ["GET /items"]}, private_networks=False)
    error = refused_at_start(program, "--config", str(private), at=tmp_path)
    assert "the host has an address that is not public" in error


def test_a_secret_in_a_longer_text(program: Path, tmp_path: Path, upstream: Upstream) -> None:
    """S-20: `${NAME}` in a header, which is sent, and is found in an answer that repeats it."""
    endpoint = {"url": upstream.base + "/{id}", "headers": {"Authorization": "Bearer ${SHOP_TOKEN}"}}

    async def main() -> None:
        file = config(tmp_path, {"endpoints": {"item": endpoint}})
        async with asyncio.timeout(PATIENCE), served(program, file) as client:
            assert (await read(client, "api:///shop/item/7"))["path"] == "/7"
            with pytest.raises(MCPError) as caught:
                await read(client, "api:///shop/item/echo")
            assert PLANTED not in str(caught.value.error)

    asyncio.run(main())
    assert {token for _, _, token in upstream.asked} == {f"Bearer {PLANTED}"}
