"""Logs the handler that blocks the event loop, while it does.

As long as handlers are suspended on the loop, a thread checks ten times a second whether the loop still runs callbacks.
"""

import asyncio
import threading
import time
from collections.abc import Callable

from .log import held

INTERVAL = 0.1
_QUIET = 20
"""The number of intervals without a suspended handler after which checking ends."""


class Watchdog:
    """Watches one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, in_flight: Callable[[], int]) -> None:
        self._loop = loop
        self._in_flight = in_flight
        self._wanted = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._seen = 0.0
        self.watching = False

    def watch(self) -> None:
        """Starts checking, after a handler was suspended."""
        self.watching = True
        self._wanted.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="mcp-resources-watchdog", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stopped = True
        self._wanted.set()

    def _run(self) -> None:
        while not self._stopped:
            self._wanted.wait()
            quiet = 0
            while quiet < _QUIET and not self._stopped:
                quiet = 0 if self._in_flight() else quiet + 1
                self._look()
            self._wanted.clear()
            self.watching = False

    def _look(self) -> None:
        asked = time.monotonic()
        try:
            self._loop.call_soon_threadsafe(self._sign)
        except RuntimeError:  # the loop is closed
            self._stopped = True
            return
        time.sleep(INTERVAL)
        if self._seen >= asked:
            return
        task = asyncio.current_task(self._loop)
        while self._seen < asked and not self._stopped and not self._loop.is_closed():
            time.sleep(INTERVAL / 10)
        if task is not None:
            held(task.get_name(), time.monotonic() - asked)

    def _sign(self) -> None:
        self._seen = time.monotonic()
