"""Two native providers, served by the examples in three languages: the same bytes over stdio and HTTP, in both eras."""

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ports import reserved_port
from process import PATIENCE, Server, running
from vectors import MODERN, ROOT

LANGUAGES = ("rust", "python", "node")
LEGACY = "2025-11-25"
WAYS, ERAS = ("stdio", "http"), (LEGACY, MODERN)
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
MOVING = ("memory:///guest.txt", "memory:///ticker.txt")
STAYING = 98
TEMPLATE = {"type": "ref/resource", "uri": "memory:///{+path}"}
Message = dict[str, Any]
Ask = Callable[[str, Message], bytes]

# Reads at once and on a worker, what is hidden and what is not there, lists, and completions from both providers.
SCRIPT: list[tuple[str, Message]] = [
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "clock:///now"}),
    ("resources/read", {"uri": "clock:///Asia/Tokyo"}),
    ("resources/read", {"uri": "clock:///Nowhere/Land"}),
    ("resources/read", {"uri": "memory:///notes/00042.txt"}),
    ("resources/read", {"uri": "memory:///picture.bin"}),
    ("resources/read", {"uri": "memory:///notes/none"}),
    ("resources/read", {"uri": "memory:///secret/plan.txt"}),
    ("resources/list", {}),
    ("completion/complete", {"ref": TEMPLATE, "argument": {"name": "path", "value": "notes/0004"}}),
    ("completion/complete", {"ref": TEMPLATE, "argument": {"name": "path", "value": "secret"}}),
    (
        "completion/complete",
        {"ref": TEMPLATE | {"uri": "clock:///{+zone}"}, "argument": {"name": "zone", "value": "tok"}},
    ),
]


def command(language: str, *args: str) -> list[str]:
    """How the example is started."""
    folder = ROOT / "examples" / language
    if language == "python":
        return [sys.executable, str(folder / "providers.py"), *args]
    if language == "node":
        return [os.environ.get("NODE", "node"), str(folder / "providers.mjs"), *args]
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return [str(target / "debug" / "examples" / "providers"), *args]


@contextmanager
def listening(language: str) -> Iterator[int]:
    """The example over HTTP; its port."""
    with reserved_port() as port:
        process = subprocess.Popen(command(language, str(port)))
        try:
            until = time.monotonic() + PATIENCE
            while not reaches(port):
                assert process.poll() is None, "it has ended"
                assert time.monotonic() < until, "it does not listen"
                time.sleep(0.05)
            yield port
        finally:
            process.terminate()
            process.wait(PATIENCE)


def reaches(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def asking(language: str, way: str, era: str) -> Iterator[Ask]:
    """Sends one request after the other, each with the id 7, and takes the line that answers."""
    if way == "stdio":
        with running(command(language)) as server:
            yield over_stdio(server, era)
    else:
        with (
            listening(language) as port,
            closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection,
        ):
            yield over_http(connection, era)


def over_stdio(server: Server, era: str) -> Ask:
    if era == LEGACY:
        server.initialize(era)

    def ask(method: str, params: Message) -> bytes:
        before = len(server.lines)
        if era == MODERN:
            server.modern(7, method, params)
        else:
            server.request(7, method, params)
        response = server.response(7)
        lines = [line for line in server.lines[before:] if b'"id":7' in line]
        # Long lines are not kept whole.
        return lines[0].rstrip() if len(lines[0]) < 4096 else json.dumps(response, separators=(",", ":")).encode()

    return ask


def over_http(connection: http.client.HTTPConnection, era: str) -> Ask:
    session: dict[str, str] = {}

    def post(message: Message, headers: dict[str, str]) -> bytes:
        common = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        connection.request("POST", "/mcp", json.dumps(message), common | headers | session)
        response = connection.getresponse()
        body = response.read()
        if found := response.getheader("mcp-session-id"):
            session.update({"mcp-session-id": found, "mcp-protocol-version": era})
        if (response.getheader("content-type") or "").startswith("text/event-stream"):
            data = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: ") and b'"id":7' in line]
            return data[0]
        return body.rstrip()

    def ask(method: str, params: Message) -> bytes:
        message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        if era == LEGACY:
            return post(message, {})
        message["params"] = params | {"_meta": META}
        named = {"mcp-protocol-version": era, "mcp-method": method}
        if uri := params.get("uri"):
            named["mcp-name"] = uri
        return post(message, named)

    if era == LEGACY:
        client = {"protocolVersion": era, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        post({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": client}, {})
        post({"jsonrpc": "2.0", "method": "notifications/initialized"}, {})
    return ask


def stable(line: bytes) -> str:
    """An answer without the time, and without what comes and goes; the members in the order in which they were sent."""
    message = json.loads(line)
    result = message.get("result", {})
    if "resources" in result:
        result["resources"] = [item for item in result["resources"] if item["uri"] not in MOVING]
        # The clock says when it has told of the time last, once it has.
        result["resources"][0].pop("annotations", None)
        # A page of 100 has both, one or none of what comes and goes; cursors are sealed with a key of the process.
        assert len(result["resources"]) >= STAYING, len(result["resources"])
        result["resources"] = result["resources"][:STAYING]
        del result["nextCursor"]
    return TIME.sub("TIME", json.dumps(message, ensure_ascii=False))


@cache
def transcript(language: str, way: str, era: str) -> tuple[str, ...]:
    with asking(language, way, era) as ask:
        return tuple(stable(ask(method, params)) for method, params in SCRIPT)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_every_language_sends_the_same(language: str, way: str, era: str) -> None:
    """Every answer of both providers, byte for byte but for the time."""
    assert transcript(language, way, era) == transcript("rust", way, era)


@pytest.mark.parametrize("era", ERAS)
def test_both_transports_send_the_same(era: str) -> None:
    assert transcript("rust", "stdio", era) == transcript("rust", "http", era)


@pytest.mark.parametrize("era", ERAS)
def test_the_answers_are_right(era: str) -> None:
    """R-061, R-064, R-107; what the guard hides is as what is not there."""
    answers = [json.loads(line) for line in transcript("rust", "stdio", era)]
    results = [answer.get("result", {}) for answer in answers]
    templates = [template["uriTemplate"] for template in results[0]["resourceTemplates"]]
    assert templates == ["clock:///{+zone}", "memory:///{+path}"]
    texts = [result["contents"][0].get("text") for result in results if "contents" in result]
    assert texts == ["TIMEZ", "TIME+09:00[Asia/Tokyo]", "note 42\n", None]
    assert len(results[5]["contents"][0]["blob"]) == (131_072 + 2) // 3 * 4
    absent, hidden = answers[6]["error"], answers[7]["error"]
    assert absent["code"] == hidden["code"] == (-32602 if era == MODERN else -32002)
    assert results[8]["resources"][0]["uri"] == "clock:///now"
    assert results[9]["completion"]["values"][0] == "notes/00040.txt"
    assert results[10]["completion"]["values"] == []
    assert "Asia/Tokyo" in results[11]["completion"]["values"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_walk_meets_every_entry_that_stays(language: str) -> None:
    """R-101, R-105: 100,000 entries in pages of the provider's own, while others come and go."""
    met: set[str] = set()
    count, cursor = 0, None
    with asking(language, "http", MODERN) as ask:
        while True:
            page = json.loads(ask("resources/list", {"cursor": cursor} if cursor else {}))["result"]
            uris = [item["uri"] for item in page["resources"]]
            met.update(uris)
            count += len(uris)
            if not (cursor := page.get("nextCursor")):
                break
    notes = [uri for uri in met if uri.startswith("memory:///notes/")]
    assert len(notes) == 100_000
    assert count == len(met), "none is listed twice"
    assert not [uri for uri in met if "secret" in uri]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_changes_are_told(language: str, era: str) -> None:
    """R-076, R-083, R-092: the clock tells of each second, the folder of what is put and removed."""
    uris = ["clock:///now", "clock:///Asia/Tokyo", "memory:///ticker.txt"]
    with running(command(language)) as server:
        if era == LEGACY:
            server.initialize(era)
            for number, uri in enumerate(uris):
                server.request(number, "resources/subscribe", {"uri": uri})
                assert server.response(number)["result"] == {}
        else:
            wanted = {"resourceSubscriptions": uris, "resourcesListChanged": True}
            server.modern(1, "subscriptions/listen", {"notifications": wanted})
        heard: dict[str, int] = {}
        until = time.monotonic() + PATIENCE
        while len(heard) < 4 or min(heard.values()) < 2:
            assert time.monotonic() < until, heard
            message = server.next()
            assert message is not None
            name = message.get("params", {}).get("uri") or message.get("method")
            if name in uris or name == "notifications/resources/list_changed":
                heard[name] = heard.get(name, 0) + 1
        server.end_input()
        assert server.wait() == 0
