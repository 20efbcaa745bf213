"""The HTTP fixtures through the ASGI application: every status, header and byte comes out of `asgi()`.

Time stands still: a case that lets it pass runs in Rust alone. The in-memory host of Rust runs them all.
"""

import asyncio
import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from asgi_call import Call
from catalogs import Author, Open, edit, server
from mcp_resources import Auth, InvalidToken, Verified
from wire import REVISIONS, Case, Terms, compare, outgoing, resolve, write
from wire import cases as wire_cases

Json = dict[str, Any]
START = (0, 1_735_689_600_000)
QUIET = ("watched", "unwatched", "notified")
REQUESTS = ["http", "post", "request", "notify", "get", "delete"]
VERBS = ["read", "leave", "respond", "progress", "log", "updated", "list_changed", "edit", "shutdown", "close"]
TURNS = 40
"""Turns of the loop after which nothing more happens by itself."""
MODERN = REVISIONS[-1]
META = "io.modelcontextprotocol/protocolVersion"


class Host:
    """One run of one case."""

    def __init__(self, case: Case) -> None:
        self.case = case
        catalog = case.catalog()
        self.terms = Terms(case, catalog)
        self.author = Author(generates=False)
        self.server = server(catalog, self.author)
        self.server._core.set_time(*START)
        self.app = self.server.asgi(**self._options())
        self.responses: dict[str, Response] = {}
        self.bound: dict[str, str] = {}

    async def run(self) -> None:
        if self.case.legacy and self.case.members.get("handshake") is not False:
            await self._shake_hands()
        for number, step in enumerate(self.case.steps()):
            differs = await self.take(step)
            assert differs is None, f"step {number}: {differs}\n    {write(step)}"

    async def end(self) -> None:
        self.author.leaving = True
        for response in self.responses.values():
            response.call.task.cancel()
        self.app._end()
        await self.settle()

    async def take(self, step: Json) -> str | None:
        """Takes one step. What is not as expected, if anything."""
        self.author.events.clear()
        verb = next(verb for verb in REQUESTS + VERBS if verb in step)
        given = resolve(step[verb], self.bound)
        on = step.get("on", "")
        if verb in REQUESTS:
            self.responses[on] = Response(self._request(verb, given, step))
        else:
            getattr(self, f"_{verb}")(given, step)
        await self.settle()
        events = [event for event in step.get("events", ()) if not set(event) & set(QUIET)]
        happened = [{kind: _without_meta(members) for kind, members in event.items()} for event in self.author.events]
        differs = compare(events, happened, self.bound, "events")
        if differs or (verb not in REQUESTS and verb != "read"):
            return differs
        return self._look(self.responses[given if verb == "read" else on], step, is_read=verb == "read")

    async def settle(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)

    def _options(self) -> Json:
        options = dict(self.case.members.get("rules", {}))
        for name in ("hosts", "origins"):
            if options.get(name) == "any":
                options[name] = "*"
        if "polling" in options:
            options["polling"] = (options["polling"]["after"], options["polling"]["retry"])
        if "auth" in options:
            given = options["auth"] | {
                "implied_scopes": [tuple(pair) for pair in options["auth"].get("implied_scopes", ())]
            }
            options["auth"] = Auth(verify=self._verify, **given)
        return options

    async def _verify(self, token: str) -> Verified:
        known = self.case.members.get("tokens", {}).get(token)
        if known is None:
            raise InvalidToken
        return Verified(known["principal"], known.get("scopes", ()))

    async def _shake_hands(self) -> None:
        params = {
            "protocolVersion": self.case.revision,
            "capabilities": self.case.members.get("capabilities", {}),
            "clientInfo": {"name": "client", "version": "1"},
        }
        token = {"token": self.case.members["token"]} if "token" in self.case.members else {}
        message = {"jsonrpc": "2.0", "id": "handshake", "method": "initialize", "params": params}
        answer = {"id": "handshake", "result": {"$open": {"protocolVersion": self.case.revision}}}
        headers = {"mcp-session-id": {"$bind": "session"}}
        for step in (
            {"post": message, "headers": headers, "sends": [answer]},
            {"notify": {"method": "notifications/initialized"}, "status": 202},
        ):
            differs = await self.take(step | token)
            assert differs is None, f"handshake: {differs}"

    def _request(self, verb: str, given: Json, step: Json) -> Call:
        """A request as it goes out."""
        session = self.bound.get(step.get("session", "session"))
        method, body = verb.upper(), b""
        headers = Headers()
        headers.set("host", "localhost:8000")
        if verb == "http":
            method = given.get("verb", "POST")
            headers.of_verb(method)
            body = _bytes(given.get("body"))
        elif verb in ("get", "delete"):
            headers.of_verb(method)
            headers.of_session(self.case, session)
            if "last_event_id" in given:
                headers.set("last-event-id", given["last_event_id"])
        else:
            method = "POST"
            capabilities = step.get("capabilities", self.case.members.get("capabilities", {}))
            message = given if verb == "post" else outgoing(given, self.case.revision, capabilities)
            headers.of_verb(method)
            headers.of_message(message, self.case, session)
            body = write(message).encode()
        if step.get("token"):
            headers.set("authorization", f"Bearer {step['token']}")
        headers.replace(given.get("headers", {}) if verb == "http" else {})
        headers.replace(resolve(step.get("headers_sent", {}), self.bound))
        target = given.get("target") or self.case.members.get("rules", {}).get("path", "/mcp")
        return Call(self.app, method, target, headers.lines, body)

    def _look(self, response: "Response", step: Json, *, is_read: bool) -> str | None:
        """Compares what came of a response since the last look."""
        status = response.new_status()
        is_pending = step.get("pending", False)
        expected = step.get("status", None if is_read or is_pending else 200)
        if status != expected:
            return f"status {status} instead of {expected}: {response.call.body!r}"
        goes_on = is_pending or (is_read and response.is_events and "status" not in step)
        if response.call.done == step.get("open", goes_on):
            return f"the response goes on: {not response.call.done}"
        if status is not None and (differs := self._check_headers(response, step)):
            return differs
        if response.is_events:
            pieces = response.pieces()
            if "stream" in step:
                return compare(step["stream"], [piece for piece, _ in pieces], self.bound, "stream")
            sent = [message for _, message in pieces if message is not None]
        else:
            body = response.unread()
            if "text" in step:
                return None if body == step["text"].encode() else repr(body)
            sent = [json.loads(body)] if body else []
        if "document" in step:
            return compare([step["document"]], sent, self.bound, "document")
        return compare(self.terms.message(resolve(step.get("sends", []), self.bound)), sent, self.bound, "sends")

    def _check_headers(self, response: "Response", step: Json) -> str | None:
        actual = response.call.headers
        if step.get("form") and (step["form"] == "events") != response.is_events:
            return f"content-type is {actual.get('content-type')}"
        if response.is_events and (actual["cache-control"], actual["x-accel-buffering"]) != ("no-cache", "no"):
            return "a stream of events that a proxy may hold back (R-166)"
        if not response.is_events and actual.get("content-length") != str(len(response.call.body)):
            return f"content-length is {actual.get('content-length')}"
        for name, expected in step.get("headers", {}).items():
            if differs := compare(expected, actual.get(name), self.bound, name):
                return differs
        return None

    def _read(self, given: str, step: Json) -> None:
        pass

    def _leave(self, given: str, step: Json) -> None:
        self.responses[given].call.leave()

    def _respond(self, given: Json, step: Json) -> None:
        self._which(step.get("to")).respond(given)

    def _progress(self, given: Json, step: Json) -> None:
        context = self._which(given.get("to")).context
        context.progress(given["progress"], given.get("total"), given.get("message"))

    def _log(self, given: Json, step: Json) -> None:
        self._which(given.get("to")).context.send_log(given["level"], write(given["data"]), given.get("logger"))

    def _which(self, number: int | None) -> Open:
        calls = self.author.open
        return next(call for call in calls if not call.answer.done()) if number is None else calls[number]

    def _updated(self, given: str, step: Json) -> None:
        self.server.notify_updated(given)

    def _list_changed(self, given: Any, step: Json) -> None:
        self.server.notify_list_changed(given)

    def _edit(self, given: Json, step: Json) -> None:
        edit(self.server, given, self.author)

    def _shutdown(self, given: Any, step: Json) -> None:
        self.server._core.shutdown()

    def _close(self, given: Any, step: Json) -> None:
        self.app._web.endpoint.close()


class Headers:
    """The headers of a request, in order."""

    def __init__(self) -> None:
        self.lines: list[tuple[bytes, bytes]] = []

    def set(self, name: str, value: str) -> None:
        self.lines.append((name.encode(), value.encode()))

    def of_verb(self, verb: str) -> None:
        if verb == "POST":
            self.set("content-type", "application/json")
            self.set("accept", "application/json, text/event-stream")
        elif verb == "GET":
            self.set("accept", "text/event-stream")

    def of_session(self, case: Case, session: str | None) -> None:
        if case.legacy and session is not None:
            self.set("mcp-session-id", session)
            if str(case.revision) >= "2025-06-18":
                self.set("mcp-protocol-version", str(case.revision))

    def of_message(self, message: Json, case: Case, session: str | None) -> None:
        params = message.get("params") if isinstance(message, dict) else None
        version = (params or {}).get("_meta", {}).get(META) if isinstance(params, dict) else None
        if not isinstance(version, str):
            return self.of_session(case, session)
        self.set("mcp-protocol-version", version)
        self.set("mcp-method", message.get("method", ""))
        if isinstance(uri := params.get("uri"), str):
            self.set("mcp-name", _wrapped(uri))

    def replace(self, given: Json) -> None:
        for name, value in given.items():
            key = name.lower().encode()
            self.lines = [line for line in self.lines if line[0] != key]
            for one in [] if value is None else value if isinstance(value, list) else [value]:
                self.lines.append((key, one.encode() if isinstance(one, str) else base64.b64decode(one["base64"])))


class Response:
    """A response, and how much of it was looked at."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self._seen_status = False
        self._seen = 0

    @property
    def is_events(self) -> bool:
        return self.call.headers.get("content-type") == "text/event-stream"

    def new_status(self) -> int | None:
        """The status, if it came since the last look."""
        if self._seen_status or not self.call.status:
            return None
        self._seen_status = True
        return self.call.status

    def unread(self) -> bytes:
        new, self._seen = self.call.body[self._seen :], len(self.call.body)
        return new

    def pieces(self) -> list[tuple[Json, Any]]:
        """The events that came since the last look: as `stream` has them, and their messages."""
        text = self.unread().decode()
        assert not text or text.endswith("\n\n"), "the last event is not ended"
        return [_piece(piece) for piece in text.removesuffix("\n\n").split("\n\n")] if text else []


def _piece(text: str) -> tuple[Json, Any]:
    fields = dict(line.partition(":")[::2] for line in text.split("\n"))
    fields = {name: value.removeprefix(" ") for name, value in fields.items()}
    message = json.loads(fields["data"]) if fields.get("data") else None
    value: Json = {"comment": True} if "" in fields else {}
    value |= {"id": fields["id"]} if "id" in fields else {}
    value |= {"retry": int(fields["retry"])} if "retry" in fields else {}
    if message is not None:
        value["message"] = message
    elif "data" in fields:
        value["empty"] = True
    return value, message


def _bytes(given: Any) -> bytes:
    match given:
        case None:
            return b""
        case {"raw": text}:
            return str(text).encode()
        case {"base64": encoded}:
            return base64.b64decode(encoded)
    return write(given).encode()


def _wrapped(uri: str) -> str:
    """A URI as it can stand in a header (R-225)."""
    is_plain = all(" " <= char <= "~" for char in uri) and uri.strip() == uri
    looks_wrapped = uri.startswith("=?base64?") and uri.endswith("?=")
    return uri if is_plain and not looks_wrapped else f"=?base64?{base64.b64encode(uri.encode()).decode()}?="


def _without_meta(members: Any) -> Any:
    return {name: value for name, value in members.items() if name != "meta"} if isinstance(members, dict) else members


def unobservable(case: Case) -> str | None:
    """Why a case cannot be run here, if so."""
    steps = write(case.members["steps"])
    for verb, why in (("tick", "time stands still"), ("ask", "asks from outside of a handler")):
        if f'"{verb}":' in steps:
            return why
    for rule in ("sessions", "sse24"):
        if rule in case.members.get("rules", {}):
            return f"no option of the Python API: {rule}"
    return None


def cases() -> Iterator[Case]:
    return wire_cases("http")


@pytest.mark.parametrize("case", list(cases()), ids=str)
async def test_case(case: Case) -> None:
    why = unobservable(case)
    if why is not None:
        pytest.skip(why)
    host = Host(case)
    try:
        await host.run()
    finally:
        await host.end()
