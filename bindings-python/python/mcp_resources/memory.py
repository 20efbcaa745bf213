"""The server's end of the pipe between a server and its client in one process."""

import asyncio
import socket
import weakref

from ._core import Channel
from .driver import Driver
from .log import broken
from .loops import running_loop
from .server import ResourceServer

_tasks: set[asyncio.Task[None]] = set()


class Served:
    """A server that serves one client of the same process, on the event loop of the client."""

    def __init__(self, server: ResourceServer) -> None:
        self.server = server
        self._task: asyncio.Task[None] | None = None
        self._started: asyncio.Future[None] | None = None

    def start(self, loop: asyncio.AbstractEventLoop, descriptor: int | None) -> None:
        """Serves the pipe until the client closes it."""
        if descriptor is not None:
            self._started = loop.create_future()
            self._task = loop.create_task(_serve(self.server, socket.socket(fileno=descriptor), self._started))
            _tasks.add(self._task)
            self._task.add_done_callback(_tasks.discard)

    async def started(self) -> None:
        """Waits until the lifespan of the server is open. Raises its exception if it fails."""
        if self._started is not None:
            await asyncio.shield(self._started)

    async def ended(self) -> None:
        """Waits until all requests are finished and the lifespan is left."""
        if self._task is not None:
            await asyncio.wait([self._task])


async def _serve(server: ResourceServer, pipe: socket.socket, started: "asyncio.Future[None]") -> None:
    with pipe:
        pipe.setblocking(False)
        life = server._life
        try:
            if life is not None:
                await life.enter(server)
        except Exception as error:
            broken(error)
            started.set_exception(error)
            started.exception()  # `broken` has logged it: asyncio must not log it again
            return
        try:
            loop = running_loop()
            _, protocol = await loop.create_connection(lambda: _Protocol(server, loop), sock=pipe)
            started.set_result(None)
            await protocol.over
        finally:
            if life is not None:
                await life.leave()


class _Protocol(Driver, asyncio.Protocol):
    """Connects a channel of the server to a transport of asyncio."""

    def __init__(self, server: ResourceServer, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.over: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.Transport | None = None
        self._channel = self.channel = Channel(server._core, weakref.proxy(self), stdio=False)
        self.attach(self._channel)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The pipe is open."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Passes bytes of the client to the channel."""
        self._channel.feed(data)

    def connection_lost(self, _error: Exception | None) -> None:
        """Cancels open requests after the client has closed the pipe."""
        self._transport = None
        self._channel.stop()
        self._channel.cancel_all()
        self.release()
        if not self.over.done():
            self.over.set_result(None)

    def output(self) -> None:
        """Writes the output of the channel."""
        written = self._channel.take()
        if self._transport is not None:
            self._transport.write(written)
