"""The HTTP fixtures through every way to serve over HTTP: every status, header and byte.

Every way has the case's clock: the timers of the event loop of the ASGI application and of Node's two handlers, and the
clock of the native servers.
"""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from sites import Asgi, Elsewhere, Native, Response, Site, bytes_of
from wire import REVISIONS, Case, Terms, compare, outgoing, resolve, write
from wire import cases as wire_cases

Json = dict[str, Any]
QUIET = ("watched", "unwatched", "notified")
REQUESTS = ["http", "post", "request", "notify", "get", "delete"]
VERBS = [
    *("read", "leave", "respond", "progress", "log", "ask"),
    *("updated", "list_changed", "edit", "shutdown", "close", "tick"),
]
MODERN = REVISIONS[-1]
META = "io.modelcontextprotocol/protocolVersion"


class Host:
    """One run of one case."""

    def __init__(self, case: Case, site: Site) -> None:
        self.case = case
        self.site = site
        self.terms = Terms(case, case.catalog())
        self.responses: dict[str, Reading] = {}
        self.bound: dict[str, str] = {}

    async def run(self) -> None:
        await self.site.start(self.case)
        if self.case.legacy and self.case.members.get("handshake") is not False:
            await self._shake_hands()
        for number, step in enumerate(self.case.steps()):
            differs = await self.take(step)
            assert differs is None, f"step {number}: {differs}\n    {write(step)}"

    async def is_refused(self) -> None:
        """Each request is refused before it reaches the author, whatever the status is."""
        await self.site.start(self.case)
        for number, step in enumerate(self.case.steps()):
            verb = next(verb for verb in REQUESTS if verb in step)
            status = await self._status_of(self._request(verb, step[verb], step))
            assert status == 0 or status >= 400, f"step {number}: status {status}"
        assert self.site.events == []

    async def _status_of(self, response: Response) -> int:
        """The status of a response that has ended; 0 if the connection was closed instead."""
        await self.site.settle(lambda: response.over, is_quiet=False)
        assert response.over, "no answer"
        return response.status

    async def take(self, step: Json) -> str | None:
        """Takes one step. What is not as expected, if anything."""
        self.site.events.clear()
        verb = next(verb for verb in REQUESTS + VERBS if verb in step)
        given = resolve(step[verb], self.bound)
        on = given if verb == "read" else step.get("on", "")
        if verb in REQUESTS:
            is_head = verb == "http" and given.get("verb") == "HEAD"
            self.responses[on] = Reading(self._request(verb, given, step), is_head=is_head)
        elif verb == "leave":
            self.responses[given].response.leave()
        elif verb != "read":
            await self.site.act(verb, given, step)
        looked = self.responses[on] if verb in REQUESTS or verb == "read" else None
        events = [event for event in step.get("events", ()) if not set(event) & set(QUIET)]
        expected = Expected(step, is_read=verb == "read")
        await self.site.settle(
            lambda: len(self.site.events) >= len(events) and (looked is None or expected.has_come(looked)),
            is_quiet=not events and (looked is None or expected.is_nothing),
        )
        happened = [{kind: _without_meta(members) for kind, members in event.items()} for event in self.site.events]
        differs = compare(events, happened, self.bound, "events")
        return differs if differs or looked is None else self._look(looked, step, expected)

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

    def _request(self, verb: str, given: Json, step: Json) -> Response:
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
        return self.site.request(method, target, headers.lines, body)

    def _look(self, reading: "Reading", step: Json, expected: "Expected") -> str | None:
        """Compares what came of a response since the last look."""
        status = reading.new_status()
        if status != expected.status:
            return f"status {status} instead of {expected.status}: {reading.response.body!r}"
        is_open = step.get("open", expected.is_pending or (expected.is_read and reading.is_events and status is None))
        if reading.response.done == is_open:
            return f"the response goes on: {not reading.response.done}"
        if status is not None and (differs := self._check_headers(reading, step)):
            return differs
        if reading.is_events:
            pieces = reading.pieces()
            if "stream" in step:
                return compare(step["stream"], [piece for piece, _ in pieces], self.bound, "stream")
            sent = [message for _, message in pieces if message is not None]
        else:
            body = reading.unread()
            if "text" in step:
                return None if body == step["text"].encode() else repr(body)
            sent = [json.loads(body)] if body else []
        if "document" in step:
            return compare([step["document"]], sent, self.bound, "document")
        return compare(self.terms.message(resolve(step.get("sends", []), self.bound)), sent, self.bound, "sends")

    def _check_headers(self, reading: "Reading", step: Json) -> str | None:
        actual = reading.response.headers
        if step.get("form") and (step["form"] == "events") != reading.is_events:
            return f"content-type is {actual.get('content-type')}"
        if reading.is_events and (actual["cache-control"], actual["x-accel-buffering"]) != ("no-cache", "no"):
            return "a stream of events that a proxy may hold back (R-166)"
        length = None if reading.response.status == 204 else str(len(reading.response.body))
        if not reading.is_events and not reading.is_head and actual.get("content-length") != length:
            return f"content-length is {actual.get('content-length')}"
        for name, expected in step.get("headers", {}).items():
            if differs := compare(expected, actual.get(name), self.bound, name):
                return differs
        return None


class Expected:
    """What a step expects of a response, as far as it says when all has come."""

    def __init__(self, step: Json, *, is_read: bool) -> None:
        self.is_read = is_read
        self.is_pending: bool = step.get("pending", False)
        self.status: int | None = step.get("status", None if is_read or self.is_pending else 200)
        self._open: bool | None = step.get("open")
        sends = step.get("stream", step.get("sends", []))
        self._pieces = len(sends["$set"] if isinstance(sends, dict) else sends)

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is expected, not even the end."""
        return self.status is None and self._pieces == 0 and self._open is not False

    def has_come(self, reading: "Reading") -> bool:
        if self.is_pending or self.is_nothing:
            return True
        if self.status is not None and not reading.response.status:
            return False
        goes_on = reading.is_events and self.is_read and self.status is None
        ends = not (goes_on if self._open is None else self._open)
        return reading.response.done if ends else reading.waiting >= self._pieces


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
                self.lines.append((key, bytes_of(one)))


class Reading:
    """A response, and how much of it was looked at."""

    def __init__(self, response: Response, *, is_head: bool = False) -> None:
        self.response = response
        self.is_head = is_head
        """Whether it answers `HEAD`, so that it has the length of a body that is not sent."""
        self._seen_status = False
        self._seen = 0

    @property
    def is_events(self) -> bool:
        return self.response.headers.get("content-type") == "text/event-stream"

    def new_status(self) -> int | None:
        """The status, if it came since the last look."""
        if self._seen_status or not self.response.status:
            return None
        self._seen_status = True
        return self.response.status

    @property
    def waiting(self) -> int:
        """How many events came since the last look."""
        return self.response.body.count(b"\n\n", self._seen)

    def unread(self) -> bytes:
        new, self._seen = self.response.body[self._seen :], len(self.response.body)
        return new

    def pieces(self) -> list[tuple[Json, Any]]:
        """The events that came since the last look: as `stream` has them, and their messages."""
        text = self.unread().decode()
        assert not text or text.endswith("\n\n"), "the last event is not ended"
        return [_piece(piece) for piece in text.removesuffix("\n\n").split("\n\n")] if text else []


def _piece(text: str) -> tuple[Json, Any]:
    fields = dict(line.partition(":")[::2] for line in text.split("\n"))
    fields = {name: value.removeprefix(" ") for name, value in fields.items()}
    if fields.get("event", "message") != "message":
        return {"event": fields["event"], "data": fields["data"]}, None
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


REFUSED = {
    (way, name)
    for way in ("python", "rust", "node nodeHandler", "node fetch", "node run")
    for name in (
        "a length beyond every bound",
        "too many lines of a head",
        "bytes that no header may have",
        "one header says once how long the body is",
        "chunked is applied once",
    )
} | {(way, name) for way in ("node nodeHandler", "node fetch") for name in ("no Host at all", "a verb in lower case")}
"""Cases that the HTTP library before us refuses by itself, with a status and a text of its own."""
MERGED = ("node fetch", "a header that comes twice is refused, also with the same value")


def unobservable(case: Case, way: str) -> str | None:
    """Why a case cannot be run this way, if so."""
    steps = write(case.members["steps"])
    if way != "asgi" and '"close":' in steps:
        return "the end of all sessions is the end of the server"
    if (way, case.members["name"]) == MERGED:
        return "the Fetch API makes one header of several"
    return None


@pytest.fixture(scope="module")
def sites(programs: None) -> Iterator[dict[str, Site]]:
    """The sites that were opened, by their way."""
    opened: dict[str, Site] = {"asgi": Asgi(), "python": Native()}
    yield opened
    for site in opened.values():
        if isinstance(site, Elsewhere):
            site.close()


WAYS = ["asgi", "python", "rust", "node run", "node nodeHandler", "node fetch"]
CASES = list(wire_cases("http"))


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("way", WAYS)
async def test_case(case: Case, way: str, sites: dict[str, Site]) -> None:
    why = unobservable(case, way)
    if why is not None:
        pytest.skip(why)
    site = sites.get(way) or sites.setdefault(way, Elsewhere(*way.split()))
    host = Host(case, site)
    try:
        await (host.is_refused() if (way, case.members["name"]) in REFUSED else host.run())
    finally:
        await site.end()
