"""The wire fixtures through the public API: `ResourceServer` with decorated functions, and `testing.Connection`.

What the server sent is written to `target/fixtures/python.out`; `tests/fixtures/compare.py` holds it equal to Rust's.
"""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from catalogs import Author, Open, edit, server
from mcp_resources import InvalidTemplateError, InvalidUriError, McpError, TemplateConflictError
from mcp_resources.testing import Connection
from vectors import ROOT
from wire import Case, Terms, cases, compare, outgoing, resolve, write

Json = dict[str, Any]
START = (0, 1_735_689_600_000)
"""Tick 0 at 2025-01-01T00:00:00Z."""
QUIET = ("watched", "unwatched", "notified")
"""Events that the Python API does not show."""
REFUSALS: dict[type[Exception], str] = {
    InvalidUriError: "invalid_uri",
    InvalidTemplateError: "invalid_template",
    TemplateConflictError: "template_conflict",
}
VERBS = [
    "receive",
    "stream",
    "request",
    "notify",
    "initialize",
    "respond",
    "progress",
    "log",
    "tick",
    "updated",
    "list_changed",
    "edit",
    "deliver",
    "connect",
    "close",
    "shutdown",
]


class Host:
    """One run of one case."""

    def __init__(self, case: Case) -> None:
        self.case = case
        catalog = case.catalog()
        self.terms = Terms(case, catalog)
        self.author = Author(generates=_mentions(case.members["steps"], "chunks"))
        self.server = server(catalog, self.author)
        self.connections: dict[str, Connection] = {}
        self.bound: dict[str, str] = {}
        self.now = START
        self.sent = b""
        """All of it."""
        self.refused: str | None = None
        self.step: Json = {}
        self.on = ""

    def run(self) -> None:
        self.connect("", self.case.members)
        for number, step in enumerate(self.case.steps()):
            differs = self.take(step)
            assert differs is None, f"step {number}: {differs}\n    {write(step)}"

    def end(self) -> None:
        self.author.leaving = True
        for connection in self.connections.values():
            if not connection.loop.is_closed():
                connection.close()

    def take(self, step: Json) -> str | None:
        """Takes one step. What is not as expected, if anything."""
        self.author.events.clear()
        self.refused = None
        out = self.act(step)
        self.sent += out
        events = [event for event in step.get("events", ()) if not set(event) & set(QUIET)]
        return (
            compare(events, self.happened(events), self.bound, "events")
            or self.check_sent(step, out)
            or self.check_refused(step)
        )

    def act(self, step: Json) -> bytes:
        self.step, self.on = step, step.get("on", "")
        verb = next(verb for verb in VERBS if verb in step)
        given = resolve(step[verb], self.bound)
        if verb in ("request", "notify"):
            capabilities = step.get("capabilities", self.case.members.get("capabilities", {}))
            verb, given = "receive", outgoing(given, self.case.revision, capabilities)
        out: bytes = getattr(self, f"_{verb}")(given)
        return out

    def happened(self, expected: list[Json]) -> list[Json]:
        """The events; `meta` is compared only where it is given."""
        events = []
        for number, event in enumerate(self.author.events):
            ((kind, members),) = event.items()
            wanted = expected[number].get(kind, {}) if number < len(expected) else {}
            if isinstance(members, dict) and not (isinstance(wanted, dict) and "meta" in wanted):
                members = {name: member for name, member in members.items() if name != "meta"}
            events.append({kind: members})
        return events

    def check_sent(self, step: Json, out: bytes) -> str | None:
        if "sends_text" in step:
            texts = "".join(line + "\n" for line in step["sends_text"])
            return None if texts == out.decode() else f"sent {out.decode()}"
        assert not out or out.endswith(b"\n"), "the last line has no end"
        sent = [json.loads(line) for line in out.decode().split("\n")[:-1]]
        expected = self.terms.message(resolve(step.get("sends", []), self.bound))
        return compare(expected, sent, self.bound, "sends")

    def check_refused(self, step: Json) -> str | None:
        if self.refused != "registration":
            return compare(step.get("refused"), self.refused, self.bound, "refused")
        # One class stands for the refusals that have no facts of their own.
        return None if step.get("refused") not in (None, *REFUSALS.values()) else f"refused: {step.get('refused')}"

    def connect(self, name: str, step: Json) -> None:
        self.connections[name] = self.opened()
        if self.case.legacy and step.get("handshake") is not False:
            self.on = name
            self._initialize(True)
            self.sent += self._receive({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def opened(self) -> Connection:
        """Another connection to the server."""
        return Connection(self.server, now=self.now)

    def settled(self, on: str, out: bytes = b"") -> bytes:
        """Lets handlers go on until nothing more happens."""
        connection = self.connections[on]
        for _ in range(0 if connection.loop.is_closed() else 4):
            out += connection.settle()
        return out

    def _receive(self, given: Any) -> bytes:
        match given:
            case {"raw": text}:
                line = text.encode()
            case {"base64": encoded}:
                line = base64.b64decode(encoded)
            case _:
                line = write(given).encode()
        return self._feed(line + b"\n")

    def _stream(self, given: str) -> bytes:
        return self._feed(given.encode())

    def _feed(self, data: bytes) -> bytes:
        self.author.on = self.on
        return self.settled(self.on, self.connections[self.on].receive(data))

    def _initialize(self, _given: bool) -> bytes:
        """The first half of the handshake: the answer names the revision."""
        params = {
            "protocolVersion": self.case.revision,
            "capabilities": self.case.members.get("capabilities", {}),
            "clientInfo": {"name": "client", "version": "1"},
        }
        out = self._receive({"jsonrpc": "2.0", "id": "handshake", "method": "initialize", "params": params})
        assert json.loads(out)["result"]["protocolVersion"] == self.case.revision
        self.sent += out
        return b""

    def _respond(self, given: Json) -> bytes:
        call = self._which(self.step.get("to"))
        if self.connections[call.on].loop.is_closed():
            return b""
        call.respond(given)
        return self.settled(call.on)

    def _progress(self, given: Json) -> bytes:
        call = self._which(given.get("to"))
        call.context.progress(given["progress"], given.get("total"), given.get("message"))
        return self.settled(call.on)

    def _log(self, given: Json) -> bytes:
        call = self._which(given.get("to"))
        call.context.send_log(given["level"], write(given["data"]), given.get("logger"))
        return self.settled(call.on)

    def _which(self, number: int | None) -> Open:
        calls = self.author.open
        return next(call for call in calls if not call.answer.done()) if number is None else calls[number]

    def _tick(self, given: int) -> bytes:
        self.now = (self.now[0] + given, self.now[1] + given)
        out = b""
        for name, connection in sorted(self.connections.items()):
            if not connection.loop.is_closed():
                self.author.on = name
                out = self.settled(name, out + connection.tick(given))
        return out

    def _updated(self, given: str) -> bytes:
        self.server.notify_updated(given)
        return self.settled(self.on)

    def _list_changed(self, given: Any) -> bytes:
        self.server.notify_list_changed(given)
        return self.settled(self.on)

    def _edit(self, given: Json) -> bytes:
        try:
            edit(self.server, given, self.author)
        except (McpError, TypeError) as error:
            self.refused = REFUSALS.get(type(error), "registration")
        return self.settled(self.on)

    def _deliver(self, given: int | None) -> bytes:
        connection = self.connections[self.on]
        return connection.deliver() if given is None else connection.deliver(given)

    def _connect(self, given: str) -> bytes:
        self.connect(given, self.step)
        return b""

    def _close(self, given: str) -> bytes:
        self.author.leaving = True
        self.connections[given].close()
        self.author.leaving = False
        return b""

    def _shutdown(self, _given: bool) -> bytes:
        self.server._core.shutdown()
        return self.settled(self.on)


def unobservable(case: Case) -> str | None:
    """Why a case cannot be run through the public API, if so."""
    steps = case.members["steps"]
    if case.members.get("peer", "stdio") != "stdio" or any(step.get("peer", "stdio") != "stdio" for step in steps):
        return "the Python API has no connection without a pipe yet"
    if any("as" in step for step in steps):
        return "the process at the other end of a pipe is the local user"
    return None


@pytest.fixture(scope="module")
def record() -> Iterator[list[bytes]]:
    lines: list[bytes] = []
    yield lines
    folder = ROOT / "target" / "fixtures"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "python.out").write_bytes(b"".join(lines))


@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_case(case: Case, record: list[bytes]) -> None:
    why = unobservable(case)
    if why is not None:
        pytest.skip(why)
    host = Host(case)
    try:
        host.run()
    finally:
        host.end()
    record.append(f"# {case}\n".encode() + host.sent + b"\n")


def _mentions(value: Any, name: str) -> bool:
    if isinstance(value, dict):
        return name in value or any(_mentions(item, name) for item in value.values())
    return isinstance(value, list) and any(_mentions(item, name) for item in value)
