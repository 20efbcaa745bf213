"""The conformance fixture servers hold exactly the same in every language, under every revision."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from process import Server, build, command, running
from vectors import MODERN

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN]
UNICODE = 'Grüße, 世界! 🦀 \u2028\u2029 "quotes" \\back\\slash\\ \ttab\r\nnewline \x00 nul \x1f unit \x7f del end'
TEXTS = {
    "test://static-text": ("text/plain", "This is the content of the static text resource."),
    "test://unicode": ("text/plain", UNICODE),
    "test://empty-text": ("text/plain", ""),
    "test://large-text": ("text/plain", "abcdefghij" * 100_000),
    "test://page/000": ("text/plain", "Page item 000"),
    "test://page/059": ("text/plain", "Page item 059"),
    "test://users/alice/files/a1.txt": (None, "alice:a1.txt"),
    "test://path/a/b/c.txt": (None, "a/b/c.txt"),
    "test://tpl-00/x": (None, "x"),
    "test://tpl-29/é": (None, "é"),
}
BLOBS = {
    "test://empty-blob": ("application/octet-stream", b""),
    "test://all-bytes": ("application/octet-stream", bytes(range(256))),
}
COMPLETIONS = [
    ("test://template/{id}/data", "id", "alph", {}, ["alpha", "alphabet"], 2, False),
    ("test://template/{id}/data", "id", "item-", {}, [f"item-{number:03}" for number in range(100)], 150, True),
    ("test://template/{id}/data", "id", "zz", {}, [], 0, False),
    ("test://users/{user}/files/{file}", "user", "", {}, ["alice", "bob"], 2, False),
    ("test://users/{user}/files/{file}", "file", "", {"user": "bob"}, ["b1.txt"], 1, False),
    ("test://users/{user}/files/{file}", "file", "a2", {"user": "alice"}, ["a2.txt"], 1, False),
    ("test://users/{user}/files/{file}", "file", "", {}, [], 0, False),
    ("test://path/{+path}", "path", "", {}, [], 0, False),
]


class Client:
    """A server under one revision."""

    def __init__(self, server: Server, revision: str) -> None:
        self.server = server
        self.revision = revision
        self.count = 0
        if revision != MODERN:
            server.initialize(revision)

    def ask(self, method: str, params: dict[str, Any] | None = None, capabilities: Any = None) -> dict[str, Any]:
        self.count += 1
        if self.revision == MODERN:
            self.server.modern(self.count, method, params, capabilities)
        else:
            self.server.request(self.count, method, params)
        return self.server.response(self.count)

    def read(self, uri: str, **params: Any) -> dict[str, Any]:
        return self.ask("resources/read", {"uri": uri, **params}, {"elicitation": {}})

    def walk(self, method: str, member: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        while True:
            result = self.ask(method, params)["result"]
            assert 0 < len(result[member]) <= 20
            items += result[member]
            if "nextCursor" not in result:
                return items
            params = {"cursor": result["nextCursor"]}


@pytest.fixture(params=["rust", "python", "node"])
def language(request: pytest.FixtureRequest) -> str:
    build(request.param)
    return str(request.param)


@pytest.fixture(params=REVISIONS)
def client(request: pytest.FixtureRequest, language: str) -> Iterator[Client]:
    with running(command(language)) as server:
        yield Client(server, request.param)


def test_texts_and_blobs(client: Client) -> None:
    """R-061, R-063, R-064."""
    for uri, (mime_type, text) in TEXTS.items():
        (entry,) = client.read(uri)["result"]["contents"]
        assert (entry["uri"], entry["text"]) == (uri, text)
        assert mime_type in (None, entry["mimeType"])
    for uri, (mime_type, blob) in BLOBS.items():
        (entry,) = client.read(uri)["result"]["contents"]
        assert entry == {"uri": uri, "mimeType": mime_type, "blob": base64.b64encode(blob).decode()}
    png = client.read("test://static-binary")["result"]["contents"][0]
    assert png["mimeType"] == "image/png"
    assert base64.b64decode(png["blob"], validate=True).startswith(b"\x89PNG")
    data = client.read("test://template/123/data")["result"]["contents"][0]
    assert (data["mimeType"], data["text"]) == (
        "application/json",
        '{"id":"123","templateTest":true,"data":"Data for ID: 123"}',
    )
    multi = client.read("test://multi")["result"]["contents"]
    assert multi == [
        {"uri": "test://multi/a", "mimeType": "text/plain", "text": "part a"},
        {"uri": "test://multi/b", "mimeType": "application/octet-stream", "blob": "AP8="},
    ]
    annotated = client.read("test://annotated")["result"]["contents"][0]
    assert annotated["text"] == "# Annotated"
    assert annotated.get("_meta") == ({"com.example/content": "c1"} if client.revision >= "2025-06-18" else None)


def test_errors(client: Client) -> None:
    """R-014, R-065, R-066."""
    missing = client.read("test://missing")["error"]
    assert missing["code"] == (-32602 if client.revision == MODERN else -32002)
    assert missing["data"]["uri"] == "test://missing"
    failed = client.read("test://error")["error"]
    assert failed["code"] == -32603
    assert "secret-detail" not in json.dumps(failed)
    assert client.read("test://trigger/unknown")["error"]["code"] == missing["code"]


def test_lists(client: Client) -> None:
    """R-058, R-060, R-101, R-102: 20 entries a page, every entry with what it needs."""
    resources = client.walk("resources/list", "resources")
    uris = [resource["uri"] for resource in resources]
    assert len(uris) == len(set(uris)) == 72
    assert "test://dynamic" not in uris
    assert all(resource["name"] and resource["mimeType"] for resource in resources)
    annotated = next(resource for resource in resources if resource["uri"] == "test://annotated")
    assert annotated["size"] == 11
    assert ("title" in annotated) == (client.revision >= "2025-06-18")
    assert ("icons" in annotated) == (client.revision >= "2025-11-25")
    templates = client.walk("resources/templates/list", "resourceTemplates")
    assert len(templates) == 35


def test_completion(client: Client) -> None:
    """R-107, R-108: `context` exists from 2025-06-18 on."""
    for uri, name, value, arguments, values, total, has_more in COMPLETIONS:
        if arguments and client.revision < "2025-06-18":
            values, total, has_more = [], 0, False
        params: dict[str, Any] = {
            "ref": {"type": "ref/resource", "uri": uri},
            "argument": {"name": name, "value": value},
        }
        completion = client.ask("completion/complete", params | {"context": {"arguments": arguments}})["result"][
            "completion"
        ]
        assert completion["values"] == values, (uri, name, value)
        assert completion.get("total", total) == total
        assert completion.get("hasMore", has_more) == has_more


def test_what_is_switched_on_is_listed(client: Client) -> None:
    """R-053, R-070."""
    for _ in range(2):
        assert client.read("test://dynamic")["error"]
        assert client.read("test://trigger/list-changed")["result"]
        assert client.read("test://dynamic")["result"]
        assert len(client.walk("resources/list", "resources")) == 73
        assert client.read("test://trigger/list-changed")["result"]


def test_input_is_asked_for(language: str) -> None:
    """R-133 to R-136, R-050, DEC-22."""
    with running(command(language)) as server:
        client = Client(server, MODERN)
        asked = client.read("test://input-required")["result"]
        assert asked["resultType"] == "input_required"
        request = asked["inputRequests"]["name"]
        assert request["method"] == "elicitation/create"
        assert request["params"]["requestedSchema"]["required"] == ["name"]
        responses = {"name": {"action": "accept", "content": {"name": "Ada"}}}
        done = client.read("test://input-required", inputResponses=responses, requestState=asked["requestState"])
        assert done["result"]["contents"][0]["text"] == "Hello, Ada"
        refused = client.ask("resources/read", {"uri": "test://input-required"})["error"]
        assert refused["code"] == -32021
        assert "elicitation" in refused["data"]["requiredCapabilities"]
        server.initialize("2025-11-25")
        server.request("old", "resources/read", {"uri": "test://input-required"})
        assert server.response("old")["error"]["code"] == -32603
