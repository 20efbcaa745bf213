"""An ASGI application: any server of that interface carries it, Starlette and FastAPI mount it.

The core decides every status, header and byte; here they are moved, and the token is verified.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, Protocol, TypeAlias

from ._core import Endpoint, Exchange, Identified, Server
from .auth import Auth, InvalidToken, Parts, fields, parts
from .driver import Driver
from .log import unverified

__all__ = ["AsgiApp"]

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

Head: TypeAlias = tuple[int, list[tuple[bytes, bytes]]]
Turn: TypeAlias = tuple[Head | None, bytes, bool, bool]
_NOTHING: Turn = (None, b"", False, False)

_ROOM = 256 * 1024
"""How much is taken at a time for a client that reads."""


class AsgiApp(Protocol):
    """An application of the Asynchronous Server Gateway Interface, version 3."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request, or the life of the application."""


class App:
    """The application of one server. Its sessions live on the event loop of its requests."""

    def __init__(self, server: Server, auth: Auth | None, options: dict[str, Any]) -> None:
        self._server = server
        self._auth = auth
        self._options = options if auth is None else {**options, "auth": fields(auth)}
        self._web: _Web | None = None
        Endpoint.check(server, self._options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request, or the life of the application."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            with suppress(_Gone):
                await _Request(self._endpoint(), self._auth, receive, send).serve(scope)
        else:
            raise ValueError(f"a scope of type {scope['type']!r} is not served")

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                self._server.shutdown()
                self._end()
                await send({"type": "lifespan.shutdown.complete"})
                return

    def _endpoint(self) -> Endpoint:
        loop = asyncio.get_running_loop()
        if self._web is None or self._web.loop is not loop:
            self._end()
            self._web = _Web(self._server, self._options, loop)
        return self._web.endpoint

    def _end(self) -> None:
        web, self._web = self._web, None
        if web is not None:
            web.release()


class _Gone(Exception):
    """The client has left."""


class _Web(Driver):
    """The event loop behind an endpoint."""

    def __init__(self, server: Server, options: dict[str, Any], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.endpoint = self.channel = Endpoint(server, self, options)


class _Request:
    """One request: its head, its body, and the response as it comes."""

    def __init__(self, endpoint: Endpoint, auth: Auth | None, receive: Receive, send: Send) -> None:
        self._endpoint = endpoint
        self._auth = auth
        self._receive = receive
        self._send = send

    async def serve(self, scope: Scope) -> None:
        admitted = self._endpoint.admit(scope["method"], _target(scope), scope["headers"])
        if isinstance(admitted, tuple):
            return await self._answer(*admitted)
        identified = admitted.identify(*await self._verify(admitted.token))
        if isinstance(identified, tuple):
            return await self._answer(*identified)
        body = await self._body(identified)
        if body is None:
            return await self._answer(*identified.too_large())
        exchange, turn = self._endpoint.open(identified, body)
        await self._write(exchange, turn)

    async def _verify(self, token: str | None) -> tuple[Parts | None, bool | None]:
        if token is None or self._auth is None:
            return None, None
        try:
            return parts(await self._auth.verify(token)), None
        except InvalidToken:
            return None, False
        except Exception as error:
            unverified(error)
            return None, True

    async def _body(self, identified: Identified) -> bytes | None:
        """The body; `None` if it is too large."""
        limit, size = identified.body_limit, 0
        chunks: list[bytes] = []
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            chunk = message.get("body", b"") if limit else b""
            size += len(chunk)
            if size > limit:
                return None
            chunks.append(chunk)
            if not message.get("more_body", False):
                return b"".join(chunks)

    async def _answer(self, head: Head, body: bytes) -> None:
        await self._begin(head)
        await self._send({"type": "http.response.body", "body": body})

    async def _begin(self, head: Head) -> None:
        status, headers = head
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def _write(self, exchange: Exchange, turn: Turn) -> None:
        """Writes what comes, until the end or until the client is gone."""
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
                turn = await bell.next(exchange)
        finally:
            bell.stop()
            if not end:
                exchange.closed()


class _Bell:
    """Rings when there is something to write, on any thread, or when the client has left."""

    def __init__(self, receive: Receive) -> None:
        self._loop = asyncio.get_running_loop()
        self._receive = receive
        self._rung = asyncio.Event()
        self._left: asyncio.Task[None] | None = None

    async def next(self, exchange: Exchange) -> Turn:
        """The next turn that has something."""
        while True:
            exchange.register(self._ring)
            turn = exchange.deliver(_ROOM)
            if turn != _NOTHING:
                return turn
            self._left = self._left or asyncio.ensure_future(self._watch())
            with suppress(TimeoutError):
                async with asyncio.timeout(exchange.deadline):
                    await self._rung.wait()
            self._rung.clear()
            if self._left.done():
                raise _Gone

    def stop(self) -> None:
        """Nobody waits any longer."""
        if self._left is not None:
            self._left.cancel()

    def _ring(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._rung.set)

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._rung.set()


def _target(scope: Scope) -> str:
    """The path as the application was mounted: what stands before it belongs to whoever mounted it."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    query: bytes = scope.get("query_string", b"")
    path = path.removeprefix(root) if root and path.startswith(root) else path
    return f"{path}?{query.decode('latin-1')}" if query else path
