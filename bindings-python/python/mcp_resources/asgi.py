"""An ASGI application for any ASGI server, or to mount in Starlette or FastAPI.

The core decides on every status, header and byte. This module passes them on, and verifies the token.
"""

import asyncio
import contextvars
import signal
import weakref
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ._core import Endpoint, Exchange, Identified, Server
from .auth import Auth, InvalidTokenError, Parts, Verify, checked, fields, parts, verified, verifier
from .driver import Driver
from .lifespan import Alone, Life
from .log import broken, unverified
from .loops import running_loop

if TYPE_CHECKING:
    from .server import ResourceServer

__all__ = ["AsgiApp"]

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

Head: TypeAlias = tuple[int, list[tuple[bytes, bytes]]]
Turn: TypeAlias = tuple[Head | None, bytes, bool, bool]
_Refused: TypeAlias = tuple[Head, bytes]
_NOTHING: Turn = (None, b"", False, False)

_ROOM = 256 * 1024
"""The most bytes that are taken from a response at a time."""

_LOOK = 0.25
"""The interval in which an open stream checks whether uvicorn is shutting down, in seconds."""


class AsgiApp(Protocol):
    """An application of the Asynchronous Server Gateway Interface, version 3."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request, or the lifespan of the application."""


class App:
    """The application of one server. Its sessions belong to the event loop of its requests."""

    def __init__(
        self, server: Server, auth: Auth | None, options: dict[str, Any], life: "tuple[Life, ResourceServer] | None"
    ) -> None:
        checked(auth)
        self._server = server
        self._life = life
        self._is_alive = life is None
        self._opening = Alone()
        self._verify = verifier(server, auth)
        self._options = options if auth is None else {**options, "auth": fields(auth)}
        self._web: _Web | None = None
        self._context = contextvars.copy_context()
        """Of the program that made the application: what serves all requests must not keep the context of the first."""
        Endpoint.check(server, self._options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request, or the lifespan of the application."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            if not self._is_alive:  # a mounted application may not receive lifespan events
                await asyncio.create_task(self._begin(), context=self._context.copy())
            with suppress(_Gone):
                await _Request(self._endpoint(), self._verify, receive, send).serve(scope)
        else:
            raise ValueError(f"a scope of type {scope['type']!r} is not served, only http and lifespan")

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self._begin()
                except Exception as error:
                    broken(error)
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    raise  # as Starlette does: its test client waits for ever if the application returns
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                self.stop()
                self._end()
                if self._life is not None and self._is_alive:
                    self._is_alive = False
                    await self._life[0].leave()
                await send({"type": "lifespan.shutdown.complete"})
                return

    def stop(self) -> None:
        """Ends the listens and notification streams of this application, which would otherwise never end."""
        if self._web is not None:
            self._web.endpoint.shutdown()

    async def _begin(self) -> None:
        """Opens the server's lifespan, once."""
        async with self._opening:
            if self._life is not None and not self._is_alive:
                life, server = self._life
                await life.enter(server)
                self._is_alive = True

    def _endpoint(self) -> "_Web":
        loop = running_loop()
        if self._web is None or self._web.loop is not loop:
            self._end()
            self._web = self._context.copy().run(_Web, self._server, self._options, loop, self.stop)
        return self._web

    def _end(self) -> None:
        web, self._web = self._web, None
        if web is not None:
            web.release()


class _Gone(Exception):
    """The client has left."""


class _Web(Driver):
    """The event loop behind an endpoint."""

    def __init__(
        self,
        server: Server,
        options: dict[str, Any],
        loop: asyncio.AbstractEventLoop,
        stop: Callable[[], None],
    ) -> None:
        super().__init__(loop)
        self.endpoint = self.channel = Endpoint(server, weakref.proxy(self), options)
        self.attach(self.endpoint)
        self._stop = stop
        self._waiting = 0
        self._look: asyncio.TimerHandle | None = None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Checks for the end of uvicorn while a response has nothing to write.

        uvicorn waits for open requests before it sends the lifespan event `shutdown`, but a listen never finishes by
        itself.
        """
        self._waiting += 1
        if self._look is None:
            self._look = self.loop.call_later(_LOOK, self._looks, context=self._context)
        try:
            yield
        finally:
            self._waiting -= 1

    def _looks(self) -> None:
        self._look = None
        if self._waiting == 0:
            return
        if _is_ending():
            self._stop()
        else:
            self._look = self.loop.call_later(_LOOK, self._looks, context=self._context)


def _is_ending() -> bool:
    """Whether uvicorn serves this process and is shutting down. Its server is found through its signal handlers.

    It shuts down after a signal or, with `limit_max_requests`, when its sockets are closed. A uvicorn that runs in a
    thread has no signal handlers and is not found; `timeout_graceful_shutdown` ends its streams.
    """
    handlers = (signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM))
    return any(_ends(getattr(handler, "__self__", None)) for handler in handlers)


def _ends(server: Any) -> bool:
    if getattr(server, "should_exit", False) is True:
        return True
    sockets = getattr(server, "servers", None)
    return isinstance(sockets, list) and bool(sockets) and not any(one.is_serving() for one in sockets)


class _Request:
    """One request: its head, its body, and the response as it comes."""

    def __init__(self, web: _Web, verify: Verify | None, receive: Receive, send: Send) -> None:
        self._web = web
        self._endpoint = web.endpoint
        self._verifier = verify
        self._receive = receive
        self._send = send

    async def serve(self, scope: Scope) -> None:
        client = scope.get("client")
        admitted = self._endpoint.admit(*_request(scope), scope["headers"], client[0] if client else None)
        if isinstance(admitted, tuple):
            return await self._answer(*admitted)
        identified = admitted.identify(*await self._verify(admitted.token))
        if isinstance(identified, tuple):
            return await self._answer(*identified)
        body = await self._body(identified)
        if isinstance(body, tuple):
            return await self._answer(*body)
        exchange, turn = self._endpoint.open(identified, body)
        await self._write(exchange, turn)

    async def _verify(self, token: str | None) -> tuple[Parts | None, bool | None]:
        if token is None or self._verifier is None:
            return None, None
        try:
            return parts(await verified(self._verifier, token)), None
        except InvalidTokenError:
            return None, False
        except Exception as error:
            unverified(error)
            return None, True

    async def _body(self, identified: Identified) -> bytes | _Refused:
        """The body, or the response if it is too large or too late."""
        try:
            async with asyncio.timeout(identified.body_timeout):
                chunk, has_more = await self._chunk()
                if identified.body_limit == 0:
                    return b""
                if has_more:
                    return await self._rest(identified, chunk)
                return chunk if len(chunk) <= identified.body_limit else identified.too_large()
        except TimeoutError:
            return identified.too_late()

    async def _rest(self, identified: Identified, first: bytes) -> bytes | _Refused:
        receiving = identified.receiving()
        chunks, has_more = [first], True
        try:
            refused = receiving.take(len(first))
            while has_more and refused is None:
                chunk, has_more = await self._chunk()
                refused = receiving.take(len(chunk))
                chunks.append(chunk)
            return refused or b"".join(chunks)
        finally:
            receiving.close()

    async def _chunk(self) -> tuple[bytes, bool]:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        return message.get("body", b""), message.get("more_body", False)

    async def _answer(self, head: Head, body: bytes) -> None:
        await self._begin(head)
        await self._send({"type": "http.response.body", "body": body})

    async def _begin(self, head: Head) -> None:
        status, headers = head
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def _write(self, exchange: Exchange, turn: Turn) -> None:
        """Writes the response until its end, or until the client has disconnected."""
        bell = _Bell(self._receive)
        end = False
        try:
            while True:
                head, body, end, _ = turn
                if head is not None:
                    await self._begin(head)
                if body or end:
                    await self._send({"type": "http.response.body", "body": body, "more_body": not end})
                if end:
                    return
                turn = bell.now(exchange)
                if turn == _NOTHING:
                    with self._web.waiting():
                        turn = await bell.next(exchange)
        finally:
            bell.stop()
            if not end:
                exchange.closed()


class _Bell:
    """Waits until there is something to write, or until the client has disconnected."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._woken = asyncio.Event()
        self._left: asyncio.Task[None] | None = None

    def now(self, exchange: Exchange) -> Turn:
        """The output that is ready now. Later output ends the wait of `next`."""
        exchange.register(self._woken.set)
        return exchange.deliver(_ROOM)

    async def next(self, exchange: Exchange) -> Turn:
        """Waits for further output."""
        while True:
            self._left = self._left or asyncio.ensure_future(self._watch())
            with suppress(TimeoutError):
                async with asyncio.timeout(exchange.deadline):
                    await self._woken.wait()
            self._woken.clear()
            if self._left.done():
                raise _Gone
            turn = self.now(exchange)
            if turn != _NOTHING:
                return turn

    def stop(self) -> None:
        """Ends the wait for the client."""
        if self._left is not None:
            self._left.cancel()

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._woken.set()


def _request(scope: Scope) -> tuple[str, str, str]:
    """The verb, the target below the path that the application is mounted at, and that path."""
    path: str = scope["path"]
    raw: bytes = scope.get("raw_path") or b""
    if b"%2f" in raw.lower():
        path = raw.partition(b"?")[0].decode("latin-1")  # an encoded slash separates nothing
    mount: str = scope.get("root_path", "").rstrip("/")
    query: bytes = scope.get("query_string", b"")
    if mount and (path == mount or path.startswith(f"{mount}/")):
        path = path.removeprefix(mount)
    return scope["method"], f"{path}?{query.decode('latin-1')}" if query else path, mount
