"""Standard input and output on an event loop of asyncio, or any that has its interface.

The loop owns the pipe; the core reads, dispatches and writes. Here is only what happens now and then: waiting for room,
time, and the end.
"""

import asyncio
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ._core import Channel, Server
from .watchdog import Watchdog

_CHUNK = 65536
_AHEAD = 4


async def serve(server: Server, *, signals: bool = False) -> None:
    """Serves until the end of input, a signal, or its own cancellation; then lets what is in flight finish."""
    loop = asyncio.get_running_loop()
    driver = Driver(server, loop)
    if signals:
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(NotImplementedError, RuntimeError):  # not the main thread, or no signals here
                loop.add_signal_handler(number, driver.interrupt)
    try:
        driver.open()
        await driver.stopping.wait()
    finally:
        await driver.close()


def starter(loop: asyncio.AbstractEventLoop) -> tuple[Callable[..., asyncio.Task[Any]], bool]:
    """What starts a coroutine as a task of the loop, and whether it runs the first step at once."""
    if sys.version_info >= (3, 12) and loop.get_task_factory() is None:
        return functools.partial(asyncio.Task, loop=loop, eager_start=True), True
    return loop.create_task, False


class Driver:
    """What the core asks of the event loop. Called on the loop's thread, except `wake`."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.stopping = asyncio.Event()
        self.start, self.eager = starter(loop)
        self._server = server
        self._idle = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._polled = (False, False)
        self._reader: _Reader | None = None
        self.channel = Channel(server, self, stdio=True)
        self.watchdog = Watchdog(loop, lambda: self.channel.suspended)

    def open(self) -> None:
        """Begins to read."""
        self.change(True, False)

    def change(self, read: bool, write: bool) -> None:
        """Waits for input, and for room for output, or no longer."""
        reads, writes = self._polled
        if read != reads:
            self._wait_for_input(read)
        if write and not writes:
            self.loop.add_writer(self.channel.output, self.channel.writable)
        elif writes and not write:
            self.loop.remove_writer(self.channel.output)
        self._polled = read, write

    def alarm(self, delay: float) -> None:
        """Calls back after `delay` seconds, instead of when it was asked to before."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(delay, self.channel.timer)

    def soon(self) -> None:
        """Writes in the next turn of the loop."""
        self.loop.call_soon(self.channel.flush)

    def wake(self) -> None:
        """Lets the loop look at the channel. From any thread."""
        with suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(self.channel.wake)

    def output(self) -> None:
        """There is something to take; on stdio the core writes it."""

    def suspended(self) -> None:
        """A handler was suspended."""
        if not self.watchdog.watching:
            self.watchdog.watch()

    def ended(self) -> None:
        """The client has closed its end, or is gone."""
        self.stopping.set()

    def idle(self) -> None:
        """After the end: nothing is in flight, and all is written."""
        self._idle.set()

    def interrupt(self) -> None:
        """A signal: open listens end with their results."""
        self._server.shutdown()
        self.stopping.set()

    async def close(self) -> None:
        """Lets what is in flight finish within the grace, cancels the rest, and writes what the client still takes."""
        self.channel.stop()
        grace = self._server.grace / 1000
        try:
            if not await self._wait(grace):
                self.channel.cancel_all()
                await self._wait(grace)
        finally:
            self.channel.close()
            self.change(False, False)
            self.watchdog.stop()
            if self._timer is not None:
                self._timer.cancel()

    async def _wait(self, seconds: float) -> bool:
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
            self.loop.remove_reader(self.channel.input)
        else:
            try:
                self.loop.add_reader(self.channel.input, self.channel.readable)
            except (OSError, NotImplementedError):  # a regular file, or a loop that cannot wait for descriptors
                self._reader = _Reader(self.loop, self.channel)


class _Reader:
    """A thread that reads what the loop cannot wait for, a few chunks ahead."""

    def __init__(self, loop: asyncio.AbstractEventLoop, channel: Channel) -> None:
        self._loop = loop
        self._channel = channel
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
                self._loop.call_soon_threadsafe(self._feed, chunk)
            self._loop.call_soon_threadsafe(self._channel.end)

    def _read(self) -> bytes:
        self._going.wait()
        self._room.acquire()
        try:
            return os.read(self._channel.input, _CHUNK)
        except OSError:
            return b""

    def _feed(self, chunk: bytes) -> None:
        self._room.release()
        self._channel.feed(chunk)
