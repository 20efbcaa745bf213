"""The bus between the processes of a server, for servers of the official SDK.

Law: listeners are called on the event loop on which they were registered, and publishing never waits for the bus.
"""

import asyncio
import importlib
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from ._core import SharedEvents
from .lifecycle import watch
from .log import failed, warned
from .loops import running_loop

__all__ = ["SubscriptionBus"]

_AT_ONCE = 256
"""Events in one step of an event loop, so that the streams of clients can send what they have between two steps."""

_Listener = Callable[[Any], None]


class SubscriptionBus:
    """The `SubscriptionBus` of the official SDK, shared by all processes of a server.

    ```python
    bus = SubscriptionBus("redis://localhost:6379/0", name="notes", keys=[secret])
    server = MCPServer("notes", subscriptions=bus)
    ```

    Servers of this library with the same `name`, `keys` and bus tell it of their changes and hear of its events.
    """

    def __init__(self, url: str, *, name: str, keys: Iterable[bytes]) -> None:
        """Connects, without waiting for it.

        Args:
            url: the bus, as the option `bus` of `ResourceServer` has it.
            name: the name of the server, which all of its processes share.
            keys: secrets of at least 16 bytes that all of its processes share. They seal the messages.

        Raises:
            TypeError: an argument has another type.
            RegistrationError: the URL has another form, or a key is too short, or there is none.
        """
        self._name = name
        self._core = SharedEvents(url, name, [*keys])
        self._listeners: dict[object, tuple[asyncio.AbstractEventLoop, _Listener]] = {}
        self._process = 0
        watch(self._core)

    async def publish(self, event: Any) -> None:
        """Tells all listeners of all processes of an event of the SDK, such as `ResourceUpdated(uri)`."""
        self._core.announce(type(event).__name__, getattr(event, "uri", None))
        self._deliver([event])
        await asyncio.sleep(0)

    def subscribe(self, listener: _Listener) -> Callable[[], None]:
        """Calls `listener` with each event, on the running event loop. Returns a function that ends this."""
        token = object()
        self._listeners[token] = (running_loop(), listener)
        if self._process != os.getpid():
            self._process = os.getpid()
            threading.Thread(
                target=_run, args=(self._core, weakref.ref(self)), name="mcp-resources-events", daemon=True
            ).start()

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

    def close(self) -> None:
        """Leaves the bus. Events of this process still reach its own listeners."""
        self._core.stop()

    def _deliver(self, events: Sequence[Any]) -> None:
        for token, (loop, listener) in list(self._listeners.items()):
            step = partial(_step, loop, listener, events, 0)
            try:
                if asyncio._get_running_loop() is loop:
                    step()
                else:
                    loop.call_soon_threadsafe(step)
            except RuntimeError:  # the loop is closed
                self._listeners.pop(token, None)

    def _heard(self, found: Sequence[tuple[str, str | None]], lines: Sequence[str]) -> None:
        for line in lines:
            warned(self._name, line)
        events = importlib.import_module("mcp.server.subscriptions")
        made = [getattr(events, kind)() if uri is None else getattr(events, kind)(uri) for kind, uri in found]
        self._deliver(made)


def _step(loop: asyncio.AbstractEventLoop, listener: _Listener, events: Sequence[Any], begin: int) -> None:
    for event in events[begin : begin + _AT_ONCE]:
        try:
            listener(event)
        except Exception as error:
            failed(getattr(listener, "__name__", "a listener"), repr(event), error)
    if begin + _AT_ONCE < len(events):
        loop.call_soon(partial(_step, loop, listener, events, begin + _AT_ONCE))


def _run(core: SharedEvents, bus: "weakref.ref[SubscriptionBus]") -> None:
    for found, lines in iter(core.next, None):
        own = bus()
        if own is None:
            return
        own._heard(found, lines)
        del own
