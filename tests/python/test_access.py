"""Access that depends on data: a function decides who may use a resource."""

import asyncio
import http.client
import json
import logging
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest
from mcp_resources import (
    Auth,
    Context,
    Limits,
    RegistrationError,
    Resource,
    ResourceServer,
    StaticTokens,
    Verified,
)
from mcp_resources.testing import Client, ServerError
from test_asgi import post as asgi_post
from test_asgi import request
from test_http import post, serving

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
LISTENS: list[Any] = []
"""Listens that last until their clients disconnect."""
ROWS = [("alice", 1), ("alice", 2), ("bob", 1)]


@asynccontextmanager
async def native(server: ResourceServer, auth: Auth) -> AsyncIterator[Any]:
    async with serving(server, auth=auth) as url:

        async def ask(token: str, uri: str) -> tuple[str | None, int]:
            status, answer = await asyncio.to_thread(post, url, "resources/read", token, uri=uri)
            return text_of(answer), status

        yield ask


@asynccontextmanager
async def asgi(server: ResourceServer, auth: Auth) -> AsyncIterator[Any]:
    app = server.asgi(auth=auth)

    async def ask(token: str, uri: str) -> tuple[str | None, int]:
        headers = {"mcp_protocol_version": MODERN, "mcp_method": "resources/read", "mcp_name": uri}
        message = request(1, "resources/read", uri=uri, _meta=META)
        call = asgi_post(app, message, authorization=f"Bearer {token}", **headers)
        return text_of(await call.json()), call.status

    yield ask


def text_of(answer: Any) -> str | None:
    return answer["result"]["contents"][0]["text"] if answer and "result" in answer else None


def auth(verify: Any) -> Auth:
    return Auth("http://localhost/mcp", ["https://id.example.com"], verify)


both = pytest.mark.parametrize("way", [native, asgi])
eras = pytest.mark.parametrize("revision", [LEGACY, MODERN])
kinds = pytest.mark.parametrize("kind", ["plain", "inline", "async", "batch", "async batch"])


class Rows:
    """A server of rows, and what its function was asked."""

    def __init__(self, kind: str, **options: Any) -> None:
        self.server = ResourceServer("rows", **options)
        self.calls: list[tuple[str, int]] = []
        self.shared: set[str] = set()
        self.fails = False

        @self.server.resource("row://{owner}/{id}")
        def row(owner: str, id: int) -> str:
            return f"row {id} of {owner}"

        @row.list
        def rows() -> Iterator[dict[str, object]]:
            for owner, id in ROWS:
                yield {"owner": owner, "id": id}

        @row.complete("owner")
        def owners(value: str) -> list[str]:
            return ["alice", "bob"]

        self.row = row
        self._decide(kind)

    def may(self, principal: str, values: dict[str, Any]) -> bool:
        if self.fails:
            raise RuntimeError("the database is gone")
        assert isinstance(values["id"], int), "as the handler gets it"
        return values["owner"] == principal or principal in self.shared

    def _decide(self, kind: str) -> None:
        if kind in ("plain", "inline"):

            @self.row.access(inline=kind == "inline")
            def one(principal: str, parameters: dict[str, Any]) -> bool:
                self.calls.append((principal, 1))
                return self.may(principal, parameters)
        elif kind == "async":

            @self.row.access
            async def later(principal: str, parameters: dict[str, Any]) -> bool:
                await asyncio.sleep(0)
                self.calls.append((principal, 1))
                return self.may(principal, parameters)
        elif kind == "batch":

            @self.row.access(batch=True)
            def many(principal: str, all: list[dict[str, Any]]) -> list[bool]:
                self.calls.append((principal, len(all)))
                return [self.may(principal, values) for values in all]
        elif kind == "async batch":

            @self.row.access(batch=True)
            async def many_later(principal: str, all: list[dict[str, Any]]) -> list[bool]:
                await asyncio.sleep(0)
                self.calls.append((principal, len(all)))
                return [self.may(principal, values) for values in all]


def shape(error: ServerError) -> str:
    return repr((error.code, str(error), sorted(error.data))).replace(error.data.get("uri", "?"), "URI")


async def refused(client: Client, uri: str) -> str:
    with pytest.raises(ServerError) as raised:
        await client.read(uri)
    return shape(raised.value)


@eras
@kinds
async def test_what_one_may_not_see_does_not_exist(kind: str, revision: str) -> None:
    rows = Rows(kind, expose_as_tools=True)
    async with (
        Client(rows.server, revision=revision, principal="alice") as alice,
        Client(rows.server, revision=revision, principal="bob") as bob,
    ):
        assert [item["uri"] for item in await alice.list_resources()] == ["row://alice/1", "row://alice/2"]
        assert [item["uri"] for item in await bob.list_resources()] == ["row://bob/1"]
        assert await bob.read_text("row://bob/1") == "row 1 of bob"
        absent = await refused(bob, "gone://x")
        for uri in ("row://alice/1", "ROW://alice/1", "row://%61lice/1", "row://alice/3"):
            assert await refused(bob, uri) == absent, uri
        completed = await bob.complete("row://{owner}/{id}", "owner", "", {"id": "1"})
        assert completed.values == ["bob"]
        call = {"name": "read_resource", "arguments": {"uri": "row://alice/1"}}
        assert (await bob.request("tools/call", call))["isError"]
        if "batch" in kind:
            assert rows.calls[:2] == [("alice", 3), ("bob", 3)]


async def quiet(client: Client) -> list[str]:
    """What has arrived until nothing came for a while."""
    kinds = []
    while True:
        try:
            kinds.append((await client.notification(0.15)).kind)
        except TimeoutError:
            return [kind for kind in kinds if kind != "acknowledged"]


async def watch(client: Client, revision: str, *uris: str) -> None:
    if revision == MODERN:
        listen = client.listen(list(uris))
        LISTENS.append(listen)
        await listen.__aenter__()
        return
    for uri in uris:
        with suppress(ServerError):
            await client.subscribe(uri)


@eras
@pytest.mark.parametrize("kind", ["plain", "async batch"])
async def test_bob_is_not_told_of_a_row_of_alice(kind: str, revision: str) -> None:
    rows = Rows(kind)
    async with (
        Client(rows.server, revision=revision, principal="alice") as alice,
        Client(rows.server, revision=revision, principal="bob") as bob,
    ):
        await watch(alice, revision, "row://alice/1")
        await watch(bob, revision, "row://alice/1", "ROW://alice/1")
        rows.server.notify_updated("row://alice/1")
        assert (await quiet(alice), await quiet(bob)) == (["updated"], [])


@eras
async def test_an_update_for_one_person(revision: str) -> None:
    server = ResourceServer("notes")
    server.resource("note://{id}")(lambda id: id)
    async with (
        Client(server, revision=revision, principal="alice") as alice,
        Client(server, revision=revision, principal="bob") as bob,
    ):
        await watch(alice, revision, "note://1")
        await watch(bob, revision, "note://1")
        server.notify_updated("NOTE://1", principal="alice")
        assert (await quiet(alice), await quiet(bob)) == (["updated"], [])
    with pytest.raises(TypeError, match="principal"):
        server.notify_updated("note://1", principal=5)  # type: ignore[arg-type]


@eras
@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_a_regrant_ends_what_is_no_longer_allowed(kind: str, revision: str) -> None:
    rows = Rows(kind)
    rows.shared.add("bob")
    async with Client(rows.server, revision=revision, principal="bob") as bob:
        await watch(bob, revision, "row://alice/1")
        await watch(bob, revision, "row://bob/1")
        rows.server.notify_updated("row://alice/1")
        assert await quiet(bob) == ["updated"]
        rows.shared.clear()
        rows.server.regrant("bob")
        await quiet(bob)
        assert await refused(bob, "row://alice/1") == await refused(bob, "gone://x")
        rows.server.notify_updated("row://alice/1")
        rows.server.notify_updated("row://bob/1")
        assert await quiet(bob) == ["updated"]


async def test_an_old_answer_is_asked_for_again() -> None:
    rows = Rows("plain", limits=Limits(access_ttl=1, coalesce=1))
    rows.shared.add("bob")
    async with Client(rows.server, principal="bob") as bob:
        await watch(bob, MODERN, "row://alice/1")
        rows.server.notify_updated("row://alice/1")
        assert await quiet(bob) == ["updated"]
        rows.shared.clear()
        rows.server.notify_updated("row://alice/1")
        assert await quiet(bob) == []


@kinds
async def test_a_failure_is_no_and_is_logged(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    rows = Rows(kind)
    rows.fails = True
    async with Client(rows.server, principal="bob") as bob:
        assert await refused(bob, "row://bob/1") == await refused(bob, "gone://x")
        assert "the database is gone" in caplog.text
        assert "Traceback" in caplog.text
        rows.fails = False
        assert await bob.read_text("row://bob/1") == "row 1 of bob"


async def test_a_function_that_never_answers() -> None:
    server = ResourceServer("slow", limits=Limits(read_timeout=50))
    row = server.resource("row://{id}")(lambda id: id)

    @row.access
    async def never(principal: str, parameters: dict[str, Any]) -> bool:
        await asyncio.sleep(60)
        return True

    async with Client(server, principal="bob") as bob:
        with pytest.raises(ServerError) as raised:
            await bob.read("row://1")
        assert raised.value.kind == "timeout"
        await until(lambda: bob.in_flight == 0)
        assert bob.in_flight == 0


async def test_a_thousand_rows_take_few_calls() -> None:
    server = ResourceServer("many", limits=Limits(page=1_000))
    row = server.resource("row://{id}")(lambda id: id)
    row.list(lambda: [{"id": f"{number:04}"} for number in range(1_000)])
    calls = []

    @row.access(batch=True)
    async def own(principal: str, all: list[dict[str, Any]]) -> list[bool]:
        calls.append(len(all))
        await asyncio.sleep(0.05)
        return [values["id"].endswith("7") for values in all]

    async with Client(server, principal="bob") as bob:
        assert len(await bob.list_resources()) == 100
    assert calls == [1_000]


async def test_the_function_may_take_the_context() -> None:
    server = ResourceServer("teams")
    row = server.resource("row://{team}")(lambda team: team)

    @row.access
    def team(principal: str, parameters: dict[str, Any], ctx: Context) -> bool:
        return bool((ctx.claims or {}).get("team") == parameters["team"])

    async with (
        Client(server, principal="ada", claims={"team": "red"}) as red,
        Client(server, principal="ada", claims={"team": "blue"}) as blue,
    ):
        assert await red.read_text("row://red") == "red"
        await refused(red, "row://blue")
        assert await blue.read_text("row://blue") == "blue"


async def test_a_resource_without_variables() -> None:
    server = ResourceServer("one")
    secret = server.resource("note://secret")(lambda: "for alice")
    secret.access(lambda principal, parameters: principal == "alice")
    async with Client(server, principal="alice") as alice, Client(server, principal="bob") as bob:
        assert await alice.read_text("note://secret") == "for alice"
        assert await bob.list_resources() == []
        await refused(bob, "note://secret")


async def test_a_test_client_is_who_it_says() -> None:
    server = ResourceServer("who")

    @server.resource("me://x")
    def me(ctx: Context) -> str:
        tenant = None if ctx.headers is None else ctx.headers.get("x-tenant")
        return json.dumps([ctx.principal, ctx.scopes, ctx.claims, tenant])

    async with Client(server, principal="bob", scopes=["a"], claims={"n": 1}, headers={"X-Tenant": "red"}) as client:
        assert json.loads(await client.read_text("me://x")) == ["bob", ["a"], {"n": 1}, "red"]
    async with Client(server) as client:
        assert json.loads(await client.read_text("me://x")) == ["", [], None, None]
    for wrong in ({"principal": 5}, {"scopes": "a b"}, {"claims": ["a"]}, {"headers": ["a"]}):
        with pytest.raises(TypeError):
            Client(server, **wrong)


@pytest.mark.parametrize("wrong", [lambda: True, lambda principal: True, lambda a, b, c: True])
def test_a_function_with_other_parameters_is_refused(wrong: Any) -> None:
    row = ResourceServer("x").resource("row://{id}")(lambda id: id)
    with pytest.raises(RegistrationError, match=r"is called with \(principal, parameters\)"):
        row.access(wrong)


async def test_an_answer_that_is_no_bool_is_no(caplog: pytest.LogCaptureFixture) -> None:
    server = ResourceServer("x")
    row = server.resource("row://{id}")(lambda id: id)
    row.access(lambda principal, parameters: "yes")
    async with Client(server, principal="bob") as bob:
        with caplog.at_level(logging.ERROR):
            await refused(bob, "row://1")
    assert "returned 'yes', expected True or False" in caplog.text


@both
async def test_a_verifier_grants_globs(way: Any) -> None:
    server = ResourceServer("files")
    for name in ("a", "b", "secret"):
        server.add_resource(Resource(f"file:///red/{name}"), text=name)
    server.resource("file:///{team}/{name}")(lambda team, name: name)
    granted = {"t": Verified("ada", allow=["file:///red/**"], deny=["**/secret"])}

    async def verify(token: str) -> Verified:
        return granted[token]

    asked = auth(verify)
    uris = ["file:///red/a", "file:///red/secret", "file:///blue/x"]
    async with way(server, asked) as ask:
        assert [(await ask("t", uri))[0] for uri in uris] == ["a", None, None]
        granted["t"] = Verified("ada", deny=["**/a"])
        server.regrant("ada")
        assert [(await ask("t", uri))[0] for uri in uris] == [None, "secret", "x"]


@both
async def test_globs_that_are_none_are_an_error(way: Any, caplog: pytest.LogCaptureFixture) -> None:
    server = ResourceServer("files")
    server.add_resource(Resource("a://b"), text="b")
    wrong = {"one": Verified("ada", allow="a://b"), "two": Verified("ada", deny=["a b"])}

    async def verify(token: str) -> Verified:
        return wrong[token]

    async with way(server, auth(verify)) as ask:
        with caplog.at_level(logging.ERROR):
            assert [await ask(token, "a://b") for token in wrong] == [(None, 503)] * 2
    assert "`allow` of a verified token: expected a list of texts" in caplog.text
    assert "deny[0]" in caplog.text


async def test_static_tokens_have_globs() -> None:
    server = ResourceServer("files")
    for name in ("a", "b"):
        server.add_resource(Resource(f"file:///{name}"), text=name)
    tokens = StaticTokens({"t": Verified("ada", deny=["file:///b"])})
    assert (await tokens.verify("t")).deny == ["file:///b"]
    for way in (native, asgi):
        async with way(server, auth(tokens)) as ask:
            assert [(await ask("t", f"file:///{name}"))[0] for name in "ab"] == ["a", None]


# Over HTTP, in both eras.


@asynccontextmanager
async def http_rows(**options: Any) -> AsyncIterator[tuple[Rows, str]]:
    rows = Rows("async", **options)
    verify = StaticTokens({"a": Verified("alice"), "b": Verified("bob")})
    auth = Auth("http://localhost/mcp", ["https://id.example.com"], verify)
    async with serving(rows.server, auth=auth) as url:
        yield rows, url


class Stream:
    """A request whose events are read on a thread of its own."""

    def __init__(self, url: str, verb: str, headers: dict[str, str], body: object = None) -> None:
        at = urlsplit(url)
        self._connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=10)
        self._connection.request(verb, at.path, None if body is None else json.dumps(body), headers)
        self.heard: list[Any] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with suppress(OSError, http.client.HTTPException, ValueError, AttributeError):
            response = self._connection.getresponse()
            while line := response.readline():
                if line.startswith(b"data:") and line[5:].strip():
                    self.heard.append(json.loads(line[5:]))

    def close(self) -> None:
        sock = self._connection.sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def ask(url: str, headers: dict[str, str], body: object) -> tuple[dict[str, str], Any]:
    """The headers of the response, in lower case, and the last message. Blocks."""
    at = urlsplit(url)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=10)
    connection.request("POST", at.path, json.dumps(body), headers)
    response = connection.getresponse()
    text = response.read().decode()
    found = {name.lower(): value for name, value in response.getheaders()}
    connection.close()
    lines = [line.removeprefix("data:") for line in text.splitlines() if "{" in line]
    return found, json.loads(lines[-1]) if lines else None


def headers(token: str, **more: str) -> dict[str, str]:
    return {
        "authorization": f"Bearer {token}",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        **{name.replace("_", "-"): value for name, value in more.items()},
    }


async def until(is_so: Callable[[], bool]) -> None:
    for _ in range(200):
        if is_so():
            return
        await asyncio.sleep(0.02)


async def test_a_listen_over_http_stays_silent() -> None:
    async with http_rows() as (rows, url):
        filter = {"resourceSubscriptions": ["row://alice/1", "row://bob/1"]}
        params = {"notifications": filter, "_meta": META}
        body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
        more = {"mcp_protocol_version": MODERN, "mcp_method": "subscriptions/listen"}
        streams = [await asyncio.to_thread(Stream, url, "POST", headers(token, **more), body) for token in "ab"]
        alice, bob = streams
        try:
            await until(lambda: bool(alice.heard and bob.heard))
            granted = [stream.heard[0]["params"]["notifications"]["resourceSubscriptions"] for stream in streams]
            assert granted == [["row://alice/1"], ["row://bob/1"]]
            rows.server.notify_updated("row://alice/1")
            await until(lambda: len(alice.heard) > 1)
            await asyncio.sleep(0.3)
            assert [len(stream.heard) for stream in streams] == [2, 1]
        finally:
            for stream in streams:
                stream.close()


async def session(url: str, token: str) -> dict[str, str]:
    """The headers of a session of 2025-11-25."""
    hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    first = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
    opened, _ = await asyncio.to_thread(ask, url, headers(token), first)
    own = headers(token, mcp_session_id=opened["mcp-session-id"], mcp_protocol_version=LEGACY)
    await asyncio.to_thread(ask, url, own, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    return own


async def test_a_subscription_over_http_stays_silent() -> None:
    async with http_rows() as (rows, url):
        streams, answers = [], []
        for token in "ab":
            own = await session(url, token)
            watching = {**own, "accept": "text/event-stream"}
            streams.append(await asyncio.to_thread(Stream, url, "GET", watching))
            body = {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "row://alice/1"}}
            answers.append((await asyncio.to_thread(ask, url, own, body))[1])
        try:
            assert "result" in answers[0]
            assert answers[1]["error"]["data"]["kind"] == "not_found"
            rows.server.notify_updated("row://alice/1")
            await until(lambda: bool(streams[0].heard))
            await asyncio.sleep(0.3)
            methods = [[one["method"] for one in stream.heard] for stream in streams]
            assert methods == [["notifications/resources/updated"], []]
        finally:
            for stream in streams:
                stream.close()


async def test_a_regrant_ends_a_subscription_over_http() -> None:
    async with http_rows() as (rows, url):
        rows.shared.add("bob")
        own = await session(url, "b")
        stream = await asyncio.to_thread(Stream, url, "GET", {**own, "accept": "text/event-stream"})
        body = {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "row://alice/1"}}
        try:
            assert "result" in (await asyncio.to_thread(ask, url, own, body))[1]
            rows.server.notify_updated("row://alice/1")
            await until(lambda: len(stream.heard) == 1)
            rows.shared.clear()
            asked = len(rows.calls)
            rows.server.regrant("bob")
            await until(lambda: len(rows.calls) > asked)
            assert len(rows.calls) == asked + 1, "it is asked at once"
            rows.server.notify_updated("row://alice/1")
            await asyncio.sleep(0.3)
            assert len(stream.heard) == 1
        finally:
            stream.close()
