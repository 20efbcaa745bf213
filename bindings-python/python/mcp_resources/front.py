"""The ways to run a server of the SDK. On stdio our pipe is in front: our reads are answered here, the rest passes on.

Law: this module carries messages between the pipe and the SDK's loop, as `stdio_server` of that library does.
"""

import asyncio
import importlib
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Self

from .loops import no_running_loop, running_loop
from .options import HttpOptions
from .stdio import Stdio, stop_on_signals

if TYPE_CHECKING:
    from .attach import Attachment

LoopFactory = Callable[[], asyncio.AbstractEventLoop] | None


def run(attached: "Attachment", transport: str, options: dict[str, Any], loop_factory: LoopFactory) -> None:
    """Runs the server by its own means; on stdio, behind our pipe."""
    if attached.app is attached.low:
        raise RuntimeError(
            "this is a low-level server, which the program runs itself; run() needs MCPServer or FastMCP"
        )
    if transport == "stdio":
        no_running_loop("serve_stdio()")
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(serve(attached, signals=True))
    _check(attached, options)
    attached.app.run("streamable-http", **options)


def asgi(attached: "Attachment", options: dict[str, Any]) -> Any:
    """The ASGI application of the server."""
    _check(attached, options)
    return (getattr(attached.app, "http_app", None) or attached.app.streamable_http_app)(**options)


async def serve(attached: "Attachment", *, signals: bool = False) -> None:
    """Serves stdio until its end, a signal, or cancellation; then lets open requests finish, those of the SDK too."""
    pipe = _Front(attached)
    if signals:
        stop_on_signals(pipe)
    theirs = asyncio.ensure_future(_serve_theirs(attached, pipe))
    theirs.add_done_callback(pipe.left)
    try:
        pipe.change(True, False)
        await pipe.stopping.wait()
        attached.core.shutdown()
        await pipe.settled()
        await asyncio.wait([theirs], timeout=pipe.grace)
    finally:
        is_over = theirs.done()
        theirs.cancel()
        (failed,) = await asyncio.gather(theirs, return_exceptions=True)
        await pipe.close()
    if is_over and failed is not None:  # what ends late is cut off, and may fail with anything
        raise failed


async def _serve_theirs(attached: "Attachment", pipe: "_Front") -> None:
    """Runs the server as it does itself on standard input and output."""
    async with AsyncExitStack() as stack:
        if manager := getattr(attached.app, "_lifespan_manager", None):  # of FastMCP
            await stack.enter_async_context(manager())
            context = importlib.import_module("fastmcp.server.context")
            stack.callback(context.reset_transport, context.set_transport("stdio"))
        low = attached.low
        await low.run(_Input(pipe), _Output(pipe), low.create_initialization_options())


def _check(attached: "Attachment", options: dict[str, Any]) -> None:
    """Refuses options of ours that mean nothing to the other server."""
    others = {*HttpOptions.__annotations__, "auth", "tls"} - {"host", "port", "path"}
    if wrong := sorted(others.intersection(options)):
        name = type(attached.app).__name__
        raise TypeError(f"{wrong[0]} belongs to a server without attach: give {name} what it takes instead")


class _Front(Stdio):
    """The pipe. It answers what is ours."""

    def __init__(self, attached: "Attachment") -> None:
        super().__init__(attached.server._core, running_loop(), before=attached.core)
        self.message = attached.message
        self.parse = attached.types.jsonrpc_message_adapter.validate_json
        self.is_over = False
        self.arrived = asyncio.Event()
        self._room = asyncio.Event()

    def lines(self) -> None:
        """Lines wait for the SDK."""
        self.arrived.set()

    def change(self, read: bool, write: bool) -> None:
        super().change(read, write)
        if not write:
            self._room.set()

    async def send(self, text: str) -> None:
        """Sends a line of the SDK. Waits while the client does not read."""
        if self.channel is None:  # after the end
            return
        self.served.send(text)
        while self.served.is_full:
            await asyncio.sleep(0)  # what this turn has sent is written
            self._room.clear()
            if self.served.is_full:
                await self._room.wait()

    async def settled(self) -> None:
        """Waits for the answers of both, at most for `Limits.grace`. Then the SDK gets no more lines."""
        self.served.stop()
        await self.wait_until_idle(self.grace)
        self.is_over = True
        self.arrived.set()

    def left(self, _: object) -> None:
        """The SDK has ended."""
        self.stopping.set()
        self.served.left()


class _Stream:
    """One of the streams of the SDK's loop."""

    def __init__(self, pipe: _Front) -> None:
        self._pipe = pipe

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes nothing: the pipe ends with the task."""


class _Input(_Stream):
    """The client's messages."""

    _lines: Iterator[bytes] = iter(())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        pipe = self._pipe
        while (line := next(self._lines, None)) is None:
            pipe.arrived.clear()
            if lines := pipe.served.lines():
                self._lines = iter(lines)
            elif pipe.is_over:
                raise StopAsyncIteration
            else:
                await pipe.arrived.wait()
        try:
            return pipe.message(pipe.parse(line, by_name=False))
        except Exception as error:  # the SDK logs it
            return error

    receive = __anext__


class _Output(_Stream):
    """The SDK's messages."""

    async def send(self, item: Any) -> None:
        await self._pipe.send(item.message.model_dump_json(by_alias=True, exclude_unset=True))
