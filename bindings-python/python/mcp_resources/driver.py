"""The event loop as the core uses it: that of asyncio, or any with its interface."""

import asyncio
import contextvars
import functools
import select
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from ._core import Channel, EmbeddedLoop, Endpoint, HttpServer, Wakeup


class Driver:
    """The event loop of one channel. All methods are called on the thread of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._context = contextvars.copy_context()
        """Of the start. A callback of the loop would otherwise keep the context of the request that it is made in."""
        self.channel: Channel | Endpoint | EmbeddedLoop | None = None
        """`None` after it was closed. The channel holds only a weak proxy of its driver, so that there is no cycle."""
        self.eager = sys.version_info >= (3, 12) and loop.get_task_factory() is None
        """Whether `start` runs a coroutine up to its first wait."""
        eager: Callable[..., asyncio.Task[Any]] = functools.partial(
            cast(Any, asyncio.Task), loop=loop, eager_start=True
        )
        self.start: Callable[..., asyncio.Task[Any]] = eager if self.eager else loop.create_task
        self._timer: asyncio.TimerHandle | None = None

    def change(self, read: bool, write: bool) -> None:
        """Starts or stops to wait for input, and for room for output."""

    def alarm(self, delay: float) -> None:
        """Sets the timer to `delay` seconds from now. Replaces the previous one."""
        self._silence()
        if self.channel is not None:
            self._timer = self.loop.call_later(delay, self.channel.timer, context=self._context)

    def soon(self) -> None:
        """Writes in the next turn of the loop."""
        if isinstance(self.channel, Channel):
            self.loop.call_soon(self.channel.flush, context=self._context)

    def attach(self, served: Channel | Endpoint | EmbeddedLoop | HttpServer) -> None:
        """Lets other threads wake the loop."""
        watch(self.loop, served.wakeup)

    def output(self) -> None:
        """Called when there is output to take, if the core does not write it itself."""

    def lines(self) -> None:
        """Called when lines wait for another server."""

    def suspended(self) -> None:
        """Called when a handler waits and none did before."""

    def ended(self) -> None:
        """Called when the client has closed its end."""

    def idle(self) -> None:
        """Called after the end, when all requests are finished and all output is written."""

    def release(self) -> None:
        """Closes the channel and drops it."""
        self._silence()
        channel, self.channel = self.channel, None
        if channel is not None:
            channel.close()

    def _silence(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def watch(loop: asyncio.AbstractEventLoop, wakeup: Wakeup) -> None:
    """Lets the loop watch for threads that have something for it."""
    try:
        loop.add_reader(wakeup, _work, loop, wakeup)
    except NotImplementedError:  # a loop that cannot wait for descriptors
        _Listener(loop, wakeup)


def _work(loop: asyncio.AbstractEventLoop, wakeup: Wakeup) -> None:
    """Does the work of a wakeup. Stops to watch it if its channel is gone."""
    if not wakeup.work():
        loop.remove_reader(wakeup)


class _Listener:
    """A thread that watches a wakeup for an event loop that cannot watch descriptors."""

    def __init__(self, loop: asyncio.AbstractEventLoop, wakeup: Wakeup) -> None:
        self._loop = loop
        self._wakeup = wakeup
        self._context = contextvars.copy_context()  # the thread has one of its own, which is empty
        self._signals = threading.Semaphore(0)
        self._watches = True
        threading.Thread(target=self._run, name="mcp-resources-wakeup", daemon=True).start()

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._wakeup, select.POLLIN)
        with suppress(RuntimeError):  # the loop is closed
            while self._watches:
                poll.poll()
                self._loop.call_soon_threadsafe(self._work, context=self._context)
                self._signals.acquire()

    def _work(self) -> None:
        try:
            self._watches = self._wakeup.work()
        finally:
            self._signals.release()
