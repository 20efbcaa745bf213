"""Where a case of the HTTP fixtures is served: by the ASGI application, over sockets of this process, or by another.

A site takes requests, lets the author act, and tells what the author was asked. It compares nothing.
"""

import asyncio
import base64
import json
import queue
import subprocess
import threading
from collections.abc import Callable
from typing import Any, Protocol

import h11
from asgi_call import PATIENCE, Call
from catalogs import Author, Open, edit, server
from mcp_resources import Auth, Context, InvalidTokenError, Verified
from vectors import ROOT
from wire import Case, write

Json = dict[str, Any]
START = (0, 1_735_689_600_000)
TURNS = 40
"""Turns of the loop after which nothing more happens by itself."""
STARTING = 30.0
"""How long a server of another process may take to start and to answer, in seconds."""
QUIET = 0.015
"""How long to wait, in seconds, for what is not to come over a socket."""


class Response(Protocol):
    """The response to one request so far."""

    status: int
    headers: dict[str, str]
    body: bytes
    done: bool

    @property
    def over(self) -> bool:
        """Whether nothing more can come: the end, or the connection broke."""

    def leave(self) -> None:
        """The client is gone."""


class Site(Protocol):
    """See the module."""

    events: list[Json]
    """The calls of handlers since this was last cleared."""

    async def start(self, case: Case) -> None:
        """Serves a case, and no longer the one before."""

    def request(self, verb: str, target: str, headers: list[tuple[bytes, bytes]], body: bytes) -> Response:
        """Sends a request."""

    async def act(self, verb: str, given: Any, step: Json) -> None:
        """Performs the action of a step."""

    async def settle(self, happened: Callable[[], bool], *, is_quiet: bool) -> None:
        """Waits until all has happened; `is_quiet` where nothing is expected to."""

    async def end(self) -> None:
        """Serves nothing any longer."""


class _Here:
    """A server of this process, with its handlers."""

    def __init__(self) -> None:
        self.events: list[Json] = []
        self.passed, self._asked = 0, 0

    def _make(self, case: Case) -> Json:
        """Makes the server. Returns the options of its endpoint."""
        self.case = case
        self.author = Author(generates=False)
        self.events = self.author.events
        self.server = server(case.catalog(), self.author)
        self.passed, self._asked = 0, 0
        self.server._core.set_time(*START)
        options = dict(case.members.get("rules", {}))
        for name in ("hosts", "origins"):
            if options.get(name) == "any":
                options[name] = "*"
        if "polling" in options:
            options["polling"] = (options["polling"]["after"], options["polling"]["retry"])
        if "sse24" in options:
            options["sse24"] = True
        if "auth" in options:
            pairs = [(broader, narrower) for broader, narrower in options["auth"].get("implied_scopes", ())]
            options["auth"] = Auth(verify=self._verify, **(options["auth"] | {"implied_scopes": pairs}))
        return options

    async def _verify(self, token: str) -> Verified:
        known = self.case.members.get("tokens", {}).get(token)
        if known is None:
            raise InvalidTokenError
        return Verified(known["principal"], known.get("scopes", ()), deny=known.get("deny", ()))

    async def act(self, verb: str, given: Any, step: Json) -> None:
        match verb:
            case "respond":
                self._which(step.get("to")).respond(given)
            case "progress":
                context = self._which(given.get("to")).context
                context.progress(given["progress"], given.get("total"), given.get("message"))
            case "log":
                context = self._which(given.get("to")).context
                context.send_log(given["level"], write(given["data"]), given.get("logger"))
            case "ask":
                self._ask(self._which(given.get("to")).context, given)
            case "updated":
                self.server.notify_updated(given)
            case "list_changed":
                self.server.notify_list_changed(given)
            case "edit":
                edit(self.server, given, self.author)
            case "tick":
                self.passed += given
                self.server._core.set_time(*(start + self.passed for start in START))
            case "shutdown":
                self.server._core.shutdown()

    def _ask(self, context: Context, given: Json) -> None:
        """Sends a request to the client, as the handler of a read does."""
        self._asked += 1
        number = self._asked

        def replied(reply: "asyncio.Future[Any]") -> None:
            reply.exception()  # looked at: a failure is as good as a result here
            self.events.append({"replied": number})

        asyncio.ensure_future(context.ask(given["method"], given["params"])).add_done_callback(replied)

    def _which(self, number: int | None) -> Open:
        calls = self.author.open
        return next(call for call in calls if not call.answer.done()) if number is None else calls[number]


class Asgi(_Here):
    """The ASGI application, called as its server calls it."""

    async def start(self, case: Case) -> None:
        options = self._make(case)
        self.app: Any = self.server.asgi(**options)
        self._calls: list[Call] = []
        # The loop's timers and the engine have one clock, which only `tick` moves.
        self._loop: Any = asyncio.get_running_loop()
        self._begin = self._loop.time()
        self._loop.time = lambda: self._begin + self.passed / 1000

    def request(self, verb: str, target: str, headers: list[tuple[bytes, bytes]], body: bytes) -> Response:
        self._calls.append(Call(self.app, verb, target, headers, body))
        return self._calls[-1]

    async def act(self, verb: str, given: Any, step: Json) -> None:
        if verb == "close":
            self.app._web.endpoint.close()
        else:
            await super().act(verb, given, step)

    async def settle(self, happened: Callable[[], bool], *, is_quiet: bool) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def end(self) -> None:
        self.author.leaving = True
        for call in self._calls:
            call.task.cancel()
        self.app._end()
        await self.settle(lambda: True, is_quiet=True)
        del self._loop.time


class _Sockets:
    """Requests over sockets, each on a connection of its own."""

    port = 0

    def __init__(self) -> None:
        self._requests: list[Exchanged] = []

    def request(self, verb: str, target: str, headers: list[tuple[bytes, bytes]], body: bytes) -> Response:
        self._requests.append(Exchanged(self.port, verb, target, headers, body))
        return self._requests[-1]

    async def settle(self, happened: Callable[[], bool], *, is_quiet: bool) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not happened():
                    await asyncio.sleep(0.001)
        except TimeoutError:
            return  # what is missing is for the comparison to say
        await asyncio.sleep(QUIET if is_quiet else 0.001)

    async def _leave(self) -> None:
        for request in self._requests:
            request.leave()
        await asyncio.gather(*(request.task for request in self._requests), return_exceptions=True)
        self._requests.clear()


class Native(_Sockets, _Here):
    """`serve_http` of this process: threads of the core's own."""

    def __init__(self) -> None:
        _Sockets.__init__(self)
        _Here.__init__(self)

    async def start(self, case: Case) -> None:
        options = self._make(case)
        listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._serving = asyncio.ensure_future(self.server.serve_http(port=0, started=listening.set_result, **options))
        await asyncio.wait((listening, self._serving), return_when=asyncio.FIRST_COMPLETED)
        if self._serving.done():
            self._serving.result()
        self.port = int(listening.result().split(":")[2].split("/")[0])

    async def end(self) -> None:
        self.author.leaving = True
        await self._leave()
        self._serving.cancel()
        await asyncio.gather(self._serving, return_exceptions=True)


class Elsewhere(_Sockets):
    """Another process, told what to do: `tests/fixtures/serve-http`."""

    def __init__(self, *command: str) -> None:
        super().__init__()
        self.events: list[Json] = []
        self._answers: queue.Queue[Json | None] = queue.Queue()
        serve = ROOT / "tests" / "fixtures" / "serve-http"
        self._process = subprocess.Popen([serve, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)
        self._reading.join(PATIENCE)
        self._process.stdout.close()

    async def start(self, case: Case) -> None:
        given = {name: case.members[name] for name in ("rules", "tokens") if name in case.members}
        self.port = self._tell({"serve": given | {"catalog": case.catalog()}})["port"]
        self.events.clear()

    async def act(self, verb: str, given: Any, step: Json) -> None:
        self._tell({verb: given} | ({"to": step["to"]} if "to" in step else {}))

    async def end(self) -> None:
        await self._leave()

    def _tell(self, what: Json) -> Json:
        assert self._process.stdin is not None
        self._process.stdin.write(write(what).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._answers.get(timeout=STARTING)
        assert answer is not None, "the server ended"
        return answer

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if "event" in message:
                self.events.append(message["event"])
            else:
                self._answers.put(message)
        self._answers.put(None)


class Exchanged:
    """A request over a socket of its own, written as it is given, and what came back."""

    def __init__(self, port: int, verb: str, target: str, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.done = False
        names = {name.lower() for name, _ in headers}
        if body and not names & {b"content-length", b"transfer-encoding"}:
            headers = [*headers, (b"content-length", b"%d" % len(body))]
        lines = [f"{verb} {target} HTTP/1.1".encode(), *(name + b": " + value for name, value in headers)]
        self._sent = b"\r\n".join([*lines, b"", body])
        self._parser = h11.Connection(h11.CLIENT)
        # What is really sent may be nothing that the library would send: it is told of a request of the same verb.
        method = verb if verb.isupper() else "GET"
        for event in (h11.Request(method=method, target="/", headers=[("host", "x")]), h11.EndOfMessage()):
            self._parser.send(event)
        self.task = asyncio.ensure_future(self._run(port))

    @property
    def over(self) -> bool:
        """See `Response`."""
        return self.task.done()

    def leave(self) -> None:
        """The client is gone."""
        self.task.cancel()

    async def _run(self, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(self._sent)
            while not self.done:
                event = self._parser.next_event()
                if event is h11.NEED_DATA:
                    self._parser.receive_data(await reader.read(1 << 16))
                else:
                    self._take(event)
        except h11.RemoteProtocolError:
            return  # the server broke off
        finally:
            writer.close()

    def _take(self, event: Any) -> None:
        match event:
            case h11.Response():
                self.status = event.status_code
                self.headers = {name.decode(): value.decode() for name, value in event.headers}
            case h11.Data():
                self.body += bytes(event.data)
            case h11.EndOfMessage() | h11.ConnectionClosed():
                self.done = True


def bytes_of(value: str | Json) -> bytes:
    """A text, or `{"base64"}`."""
    return value.encode() if isinstance(value, str) else base64.b64decode(value["base64"])
