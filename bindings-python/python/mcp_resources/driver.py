"""What the core asks of an event loop of asyncio, or any that has its interface."""

import asyncio
import functools
import select
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from ._core import Channel, Endpoint, HttpServer, Wakeup


class Driver:
    """One channel's event loop. All is called on the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.channel: Channel | Endpoint | None = None
        """`None` once it is closed. The channel is given a weak proxy of its driver, so neither keeps the other."""
        self.eager = sys.version_info >= (3, 12) and loop.get_task_factory() is None
        """Whether `start` runs a coroutine up to where it waits."""
        eager: Callable[..., asyncio.Task[Any]] = functools.partial(
            cast(Any, asyncio.Task), loop=loop, eager_start=True
        )
        self.start: Callable[..., asyncio.Task[Any]] = eager if self.eager else loop.create_task
        self._timer: asyncio.TimerHandle | None = None

    def change(self, read: bool, write: bool) -> None:
        """Waits for input, and for room for output, or no longer."""

    def alarm(self, delay: float) -> None:
        """Calls back after `delay` seconds, instead of when it was asked to before."""
        self._silence()
        if self.channel is not None:
            self._timer = self.loop.call_later(delay, self.channel.timer)

    def soon(self) -> None:
        """Writes in the next turn of the loop."""
        if isinstance(self.channel, Channel):
            self.loop.call_soon(self.channel.flush)

    def attach(self, served: Channel | Endpoint | HttpServer) -> None:
        """Lets the loop watch for threads that have something for it."""
        watch(self.loop, served.wakeup)

    def output(self) -> None:
        """There is something to take, where the core does not write it itself."""

    def suspended(self) -> None:
        """A handler waits, and none did before."""

    def ended(self) -> None:
        """The client has closed its end, or is gone."""

    def idle(self) -> None:
        """After the end: nothing is in flight, and all is written."""

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
    """What is served may be gone: the loop then watches no longer."""
    if not wakeup.work():
        loop.remove_reader(wakeup)


class _Listener:
    """A thread that listens for a loop that cannot."""

    def __init__(self, loop: asyncio.AbstractEventLoop, wakeup: Wakeup) -> None:
        self._loop = loop
        self._wakeup = wakeup
        self._heard = threading.Semaphore(0)
        self._watches = True
        threading.Thread(target=self._run, name="mcp-resources-wakeup", daemon=True).start()

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._wakeup, select.POLLIN)
        with suppress(RuntimeError):  # the loop is closed
            while self._watches:
                poll.poll()
                self._loop.call_soon_threadsafe(self._work)
                self._heard.acquire()

    def _work(self) -> None:
        try:
            self._watches = self._wakeup.work()
        finally:
            self._heard.release()
