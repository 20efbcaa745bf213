"""A client in the same process, for your own tests. It sends the same messages to a server as a real client.

async with Client(server) as client:
    assert await client.read_text("greeting://world") == "Hello, world!"
"""

import asyncio
import base64
import json
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

from . import checks
from ._core import Channel, TestClient
from .driver import Driver
from .loops import running_loop
from .results import Completion, Contents
from .server import ResourceServer

__all__ = ["Client", "Connection", "InputNeeded", "Notification", "ServerError"]

MODERN = "2026-07-28"


def __dir__() -> list[str]:
    """What an editor or a notebook offers: the names of this module, not those that it imports."""
    return __all__


class ServerError(Exception):
    """An error response of the server, with its `code`, `message` and `data`.

    `kind` is the word for the error in its data, such as `not_found`, or `None`.
    """

    def __init__(self, code: int, message: str, data: dict[str, Any]) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data
        self.kind: str | None = data.get("kind")


class InputNeeded(Exception):
    """The server asks for input before it answers a read.

    Repeat the read with `inputs` for these `requests`, and `state`.
    """

    def __init__(self, requests: dict[str, Any], state: str | None) -> None:
        super().__init__(", ".join(requests))
        self.requests = requests
        self.state = state


class Notification:
    """A notification of the server: its kind, the id of the request that it belongs to, and its params.

    The kinds: `updated`, `list_changed`, `acknowledged`, `progress`, `log`, `cancelled`, `other`.
    """

    __slots__ = ("id", "kind", "params")

    def __init__(self, kind: str, id: int | None, params: dict[str, Any]) -> None:
        self.kind = kind
        self.id = id
        self.params = params

    def __repr__(self) -> str:
        return f"Notification({self.kind!r}, {self.id!r}, {self.params!r})"


class Listen:
    """An open listen: the `id` of its request, and `honoured`, the subscriptions that the server accepted."""

    def __init__(self, client: "Client", id: int, honoured: dict[str, Any]) -> None:
        self.id = id
        self.honoured = honoured
        self._client = client

    async def next(self, timeout: float = 5.0) -> Notification:
        """Returns the next notification of this listen.

        Args:
            timeout: how long to wait, in seconds. Default 5.

        Raises:
            TimeoutError: none came.
        """
        return await self._client.notification(timeout, of=self.id)


def _sender(
    principal: str | None,
    scopes: Iterable[str],
    claims: Mapping[str, object] | None,
    headers: Mapping[str, str] | None,
) -> tuple[str, list[str], str | None, list[tuple[str, str]]]:
    """The sender of the requests, as the core takes it."""
    if principal is not None:
        checks.text("principal", principal)
    if isinstance(scopes, str):
        raise TypeError(f"scopes is {scopes!r}, expected a list of texts, such as [{scopes!r}]")
    if claims is not None:
        checks.mapping("claims", claims, "{'team': 'red'}")
    if headers is not None:
        checks.mapping("headers", headers, "{'x-tenant': 'red'}")
    own = None if claims is None else json.dumps(dict(claims))
    return principal or "", list(scopes), own, [*(headers or {}).items()]


class Client:
    """A client of one server, in the same process. An async context manager.

    Args:
        server: the server.
        revision: the protocol revision to use. One before 2026-07-28 begins with a handshake. Default: the newest.
        capabilities: the capabilities that the client declares. Default: none.
        principal: the identity that a verified token would have. Default: the local process, as on stdio.
        scopes: the scopes of the token. Default: none.
        claims: the claims of the token. Default: none.
        headers: the headers of an HTTP request. Default: none.

    Raises:
        TypeError: `server` is not a `ResourceServer`, or `capabilities` not a mapping.
        ValueError: there is no such revision.
    """

    def __init__(
        self,
        server: ResourceServer,
        *,
        revision: str = MODERN,
        capabilities: Mapping[str, object] | None = None,
        principal: str | None = None,
        scopes: Iterable[str] = (),
        claims: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(server, ResourceServer):
            given = f"the class {server.__name__}" if isinstance(server, type) else f"{server!r:.80}"
            raise TypeError(
                f"testing.Client takes a ResourceServer, got {given}; mcp_resources.Client takes commands and URLs"
            )
        if capabilities is not None:
            checks.mapping("capabilities", capabilities, "{'sampling': {}}")
        self._sender = _sender(principal, scopes, claims, headers)
        self._server = server
        self._core = server._core
        self._client = TestClient(revision, json.dumps(capabilities or {}))
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._notifications: list[Notification] = []
        self._arrived = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_open = False
        self.server_info: dict[str, Any] = {}
        """The self-description of the server: the result of the handshake or of discovery."""

    async def __aenter__(self) -> Self:
        if self._server._life is not None:
            await self._server._life.enter(self._server)
        try:
            await self._connect()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def _connect(self) -> None:
        self._loop = running_loop()
        self._driver = _Memory(self._loop, self._receive)
        channel = Channel(self._core, weakref.proxy(self._driver), stdio=False, sender=self._sender)
        self._channel = self._driver.channel = channel
        self._driver.attach(self._channel)
        self._is_open = True
        handshake = self._client.handshake
        if handshake is None:
            self.server_info = await self.request("discover")
        else:
            self.server_info = await self._answer(handshake)
            self._write()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._is_open:
            self._is_open = False
            self._channel.stop()
            self._driver.release()
        for answer in self._answers.values():
            answer.cancel()
        if self._server._life is not None:
            await self._server._life.leave()

    @property
    def in_flight(self) -> int:
        """The number of requests that wait for a handler."""
        return self._channel.in_flight

    async def list_resources(self) -> list[dict[str, Any]]:
        """Lists all resources, from all pages, as the server sent them."""
        return await self._pages("list", "resources")

    async def list_templates(self) -> list[dict[str, Any]]:
        """Lists all templates, from all pages, as the server sent them."""
        return await self._pages("list_templates", "resourceTemplates")

    async def read(
        self, uri: str, *, inputs: Mapping[str, Mapping[str, object]] | None = None, state: str | None = None
    ) -> list[Contents]:
        """Reads a resource. Returns all its contents.

        Args:
            uri: the URI of the resource.
            inputs: the answers to requests of the server, by their keys. Default: none.
            state: the state that came with the requests, if the first read was made before. Default: none.

        Raises:
            InputNeeded: the server asks for something that `inputs` does not have.
            ServerError: the server answered with an error.
        """
        params: dict[str, Any] = {"uri": uri}
        if state is not None:
            params |= {"inputResponses": dict(inputs or {}), "requestState": state}
        result = await self.request("read", params)
        if "contents" not in result:
            needed = InputNeeded(result.get("inputRequests", {}), result.get("requestState"))
            if inputs is None or state == needed.state or not needed.requests.keys() <= inputs.keys():
                raise needed
            return await self.read(uri, inputs=inputs, state=needed.state)
        return [_contents(entry) for entry in result["contents"]]

    async def read_text(self, uri: str) -> str:
        """Reads a resource whose contents are one text. Returns the text.

        Raises:
            TypeError: the contents are not one text.
            ServerError: the server answered with an error.
        """
        found = await self.read(uri)
        if len(found) != 1:
            raise TypeError(f"{uri} has {len(found)} contents, expected one text; use read")
        if not isinstance(found[0].body, str):
            raise TypeError(f"{uri} is bytes, not a text; use read")
        return found[0].body

    async def complete(
        self, template: str, variable: str, value: str, arguments: Mapping[str, str] | None = None
    ) -> Completion:
        """Completes a variable of a template. Returns the suggested values, best first.

        Args:
            template: the text of the template.
            variable: the name of the variable.
            value: the text typed so far.
            arguments: the values of other variables that are chosen already. Default: none.

        Raises:
            ServerError: the server answered with an error.
        """
        params: dict[str, Any] = {
            "ref": {"type": "ref/resource", "uri": template},
            "argument": {"name": variable, "value": value},
        }
        if arguments is not None:
            params["context"] = {"arguments": dict(arguments)}
        found = (await self.request("complete", params))["completion"]
        return Completion(found["values"], total=found.get("total"), has_more=found.get("hasMore"))

    async def subscribe(self, uri: str) -> None:
        """Subscribes to a resource (revisions before 2026-07-28; use `listen` for others)."""
        if self._client.handshake is None:
            raise RuntimeError(
                f"subscribe belongs to revisions before {MODERN}, which this client uses; use listen([uri])"
            )
        await self.request("subscribe", {"uri": uri})

    async def unsubscribe(self, uri: str) -> None:
        """Ends a subscription (revisions before 2026-07-28)."""
        await self.request("unsubscribe", {"uri": uri})

    @asynccontextmanager
    async def listen(self, uris: Iterable[str] = (), *, list_changed: bool = False) -> AsyncIterator[Listen]:
        """Listens to changes of resources and of the list (revision 2026-07-28; use `subscribe` for others).

        Args:
            uris: the URIs of the resources. Default: none.
            list_changed: whether to listen to changes of the list. Default `False`.

        Raises:
            ServerError: the server refuses.
        """
        if isinstance(uris, str):
            raise TypeError(f"listen takes a list of URIs, got the text {uris!r}; write [{uris!r}]")
        if self._client.handshake is not None:
            raise RuntimeError(
                f"listen belongs to revision {MODERN}, and this client uses an older one; use subscribe(uri)"
            )
        wanted: dict[str, Any] = {"resourceSubscriptions": [*uris], "resourcesListChanged": list_changed}
        id, answer = self.send("listen", {"notifications": wanted})
        acknowledged = asyncio.ensure_future(self.notification(of=id))
        answer.add_done_callback(lambda _: acknowledged.cancel())
        try:
            first = await acknowledged
        except asyncio.CancelledError:
            if not answer.done() or answer.cancelled():
                raise
            answer.result()  # refused: raises the error of the server
            first = await self.notification(of=id)  # it came together with the end
        try:
            yield Listen(self, id, first.params["notifications"])
        finally:
            self.cancel(id)

    async def notification(self, timeout: float = 5.0, *, of: int | None = None) -> Notification:
        """Returns the next notification.

        Args:
            timeout: how long to wait, in seconds. Default 5.
            of: the id of the request that it must belong to. Default: any.

        Raises:
            TimeoutError: none came.
        """
        try:
            async with asyncio.timeout(timeout), self._arrived:
                while True:
                    for at, notification in enumerate(self._notifications):
                        if of is None or notification.id == of:
                            return self._notifications.pop(at)
                    await self._arrived.wait()
        except TimeoutError:
            raise TimeoutError(f"no notification came within {timeout} s") from None

    async def request(
        self, method: str, params: Mapping[str, object] | None = None, *, meta: Mapping[str, object] | None = None
    ) -> dict[str, Any]:
        """Sends a request. Returns its result.

        Args:
            method: a method, or the short name of a method of this library, such as `read`, `list` or `set_level`.
            params: its params. Default: empty.
            meta: members of `_meta`. Default: none.

        Raises:
            ServerError: the server answered with an error.
        """
        id, answer = self.send(method, params, meta=meta)
        try:
            result: dict[str, Any] = await answer
        except asyncio.CancelledError:
            self.cancel(id)
            raise
        return result

    def send(
        self, method: str, params: Mapping[str, object] | None = None, *, meta: Mapping[str, object] | None = None
    ) -> tuple[int, "asyncio.Future[dict[str, Any]]"]:
        """Sends a request. Returns its id, and a future of its result."""
        if not self._is_open:
            raise RuntimeError("the client is not open; write `async with Client(server) as client:` and use it inside")
        id = self._client.send(method, json.dumps(params or {}), json.dumps(meta or {}))
        return id, self._answer(id)

    def cancel(self, id: int) -> None:
        """Cancels a request."""
        answer = self._answers.pop(id, None)
        if answer is not None:
            answer.cancel()
        self._client.cancel(id)
        self._write()

    async def _pages(self, ask: str, member: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        params: dict[str, object] = {}
        while True:
            page = await self.request(ask, params)
            items += page[member]
            if "nextCursor" not in page:
                return items
            params = {"cursor": page["nextCursor"]}

    def _answer(self, id: int) -> "asyncio.Future[dict[str, Any]]":
        answer = self._answers[id] = self._loop.create_future()
        self._write()
        return answer

    def _write(self) -> None:
        self._channel.feed(self._client.output())

    def _receive(self) -> None:
        for kind, id, body in self._client.received(self._channel.take()):
            self._take(kind, id, body)

    def _take(self, kind: str, id: int | None, body: str) -> None:
        content = json.loads(body)
        if kind not in ("result", "error"):
            self._notifications.append(Notification(kind, id, content))
            task = self._loop.create_task(self._tell())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        answer = self._answers.pop(id, None) if id is not None else None
        if answer is None or answer.done():
            return
        if kind == "result":
            answer.set_result(content)
        else:
            answer.set_exception(ServerError(content["code"], content["message"], content.get("data") or {}))

    async def _tell(self) -> None:
        async with self._arrived:
            self._arrived.notify_all()


class Connection:
    """The bytes of one connection, without I/O, clock or threads, for tests of the exact bytes.

    Time passes only with `tick`. A `def` handler runs at once; an `async def` handler that waits continues during
    `settle`, on an event loop of the connection. Cannot be used while an event loop is running.

    Args:
        server: the server. Its clock is replaced.
        now: the time of its clock, as milliseconds of a steady clock and since 1970. Default: both 0.
    """

    def __init__(self, server: ResourceServer, *, now: tuple[int, int] = (0, 0)) -> None:
        self.loop = asyncio.new_event_loop()
        self._core = server._core
        self._tick, self._unix = now
        self._core.set_time(*now)
        self._driver = _Still(self.loop)
        self._channel = Channel(self._core, weakref.proxy(self._driver), stdio=False, threads=False, delivers=False)
        self._driver.channel = self._channel
        self._driver.attach(self._channel)

    def receive(self, data: bytes) -> bytes:
        """Passes bytes of the client to the server, in any chunks. Returns the bytes that the server writes."""
        self._channel.feed(data)
        return self.settle()

    def settle(self) -> bytes:
        """Lets handlers continue as far as they can. Returns the bytes that the server writes."""
        for _ in range(3):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()
        return self._channel.take()

    def tick(self, milliseconds: int) -> bytes:
        """Lets time pass, in milliseconds. Returns the bytes that the server writes."""
        self._tick += milliseconds
        self._unix += milliseconds
        self._core.set_time(self._tick, self._unix)
        self._channel.timer()
        return self.settle()

    def deliver(self, room: int = 1 << 20) -> bytes:
        """Returns pending notifications: a further one is added while there are fewer than `room` bytes."""
        self._channel.deliver(room)
        return self._channel.take()

    def end(self) -> bytes:
        """Ends the input. Returns the bytes that the server writes."""
        self._channel.end()
        return self.settle()

    def close(self) -> None:
        """Closes the connection: open requests are cancelled."""
        self._driver.release()
        self.settle()
        self.loop.close()

    @property
    def in_flight(self) -> int:
        """The number of requests that wait for a handler."""
        return self._channel.in_flight


def _contents(entry: dict[str, Any]) -> Contents:
    body = entry["text"] if "text" in entry else base64.b64decode(entry["blob"], validate=True)
    return Contents(body, uri=entry["uri"], mime_type=entry.get("mimeType"), meta=entry.get("_meta"))


class _Memory(Driver):
    """The loop behind a channel whose output is taken in the same process."""

    def __init__(self, loop: asyncio.AbstractEventLoop, output: Callable[[], None]) -> None:
        super().__init__(loop)
        self._output = output

    def output(self) -> None:
        self._output()

    def release(self) -> None:
        super().release()
        self._output = lambda: None  # it holds the client, and the client the channel


class _Still(Driver):
    """The same, where time stands still and output waits to be taken."""

    def alarm(self, delay: float) -> None:
        pass

    def soon(self) -> None:
        pass
