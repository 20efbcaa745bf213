"""Standard input and output on an event loop.

The event loop owns the pipe; the core reads, dispatches and writes. This module handles the rest: waiting for room in
the output, timers, and the end.
"""

import asyncio
import contextvars
import os
import select
import signal
import threading
import weakref
from contextlib import suppress

from ._core import Channel, Embedding, Server
from .driver import Driver
from .loops import running_loop
from .watchdog import Watchdog

_CHUNK = 65536
_AHEAD = 4


async def serve(server: Server, *, signals: bool = False) -> None:
    """Serves until the end of input, a signal, or cancellation; then lets open requests finish."""
    loop = running_loop()
    driver = Stdio(server, loop)
    if signals:
        stop_on_signals(driver)
    try:
        driver.change(True, False)
        await driver.stopping.wait()
    finally:
        await driver.close()


def stop_on_signals(driver: "Stdio") -> None:
    """Stops at a signal, where signals can be handled."""
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError, RuntimeError):  # not the main thread, or no signals here
            driver.loop.add_signal_handler(number, driver.interrupt)


class Stdio(Driver):
    """The pipe of one client. `before`: the other server that gets what is not ours."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop, before: Embedding | None = None) -> None:
        super().__init__(loop)
        self.stopping = asyncio.Event()
        self.grace = server.grace / 1000
        """`Limits.grace` in seconds."""
        self._idle = asyncio.Event()
        self._polled = (False, False)
        self._reader: _Reader | None = None
        self.served = self.channel = Channel(server, weakref.proxy(self), stdio=True, before=before)
        self.attach(self.served)
        self._watchdog = Watchdog(loop, lambda: self.served.suspended)

    def change(self, read: bool, write: bool) -> None:
        """Starts or stops to wait for input, and for room for output."""
        reads, writes = self._polled
        if read != reads:
            self._wait_for_input(read)
        if write and not writes:
            self.loop.add_writer(self.served.output, self.served.writable)
        elif writes and not write:
            self.loop.remove_writer(self.served.output)
        self._polled = read, write

    def suspended(self) -> None:
        """Watches for handlers that block."""
        if not self._watchdog.watching:
            self._watchdog.watch()

    def ended(self) -> None:
        """The client has closed its end."""
        self.stopping.set()

    def idle(self) -> None:
        """After the end, all is answered and written."""
        self._idle.set()

    def interrupt(self) -> None:
        """Stops reading input, after a signal."""
        self.stopping.set()

    async def close(self) -> None:
        """Ends open listens, lets open requests finish within `Limits.grace`, and cancels the rest.

        Output is written as long as the client reads.
        """
        self.served.stop()
        try:
            if not await self.wait_until_idle(self.grace):
                self.served.cancel_all()
                await self.wait_until_idle(self.grace)
        finally:
            self.release()
            self.change(False, False)
            self._watchdog.stop()
            del self.served

    async def wait_until_idle(self, seconds: float) -> bool:
        """Waits until all requests are answered and written; `False` after this time."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def _wait_for_input(self, read: bool) -> None:
        if self._reader is not None:
            self._reader.pause(not read)
        elif not read:
            self.loop.remove_reader(self.served.input)
        else:
            try:
                self.loop.add_reader(self.served.input, self.served.readable)
            except (OSError, NotImplementedError):  # a regular file, or a loop that cannot wait for descriptors
                self._reader = _Reader(self.loop, self.served)


class _Reader:
    """A thread that reads input that the event loop cannot wait for, a few chunks ahead."""

    def __init__(self, loop: asyncio.AbstractEventLoop, channel: Channel) -> None:
        self._loop = loop
        self._channel = channel
        self._context = contextvars.copy_context()  # the thread has one of its own, which is empty
        self._room = threading.Semaphore(_AHEAD)
        self._going = threading.Event()
        self._going.set()
        threading.Thread(target=self._run, name="mcp-resources-input", daemon=True).start()

    def pause(self, paused: bool) -> None:
        if paused:
            self._going.clear()
        else:
            self._going.set()

    def _run(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            while chunk := self._read():
                self._loop.call_soon_threadsafe(self._feed, chunk, context=self._context)
            self._loop.call_soon_threadsafe(self._channel.end, context=self._context)

    def _read(self) -> bytes:
        self._going.wait()
        self._room.acquire()
        while True:
            try:
                return os.read(self._channel.input, _CHUNK)
            except BlockingIOError:
                select.select([self._channel.input], [], [])
            except OSError:
                return b""

    def _feed(self, chunk: bytes) -> None:
        self._room.release()
        self._channel.feed(chunk)
