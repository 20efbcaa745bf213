"""The lifespan of a server: entered before the first request, left after the last one."""

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    from .server import ResourceServer

__all__ = ["Lifespan"]

_PAUSE = 0.01
"""The interval in which a task tries to get the lock, in seconds. It has to wait only at the start and the end."""

Manager: TypeAlias = AbstractAsyncContextManager[Any]
Lifespan: TypeAlias = "Callable[[ResourceServer], Manager | AsyncIterator[Any]]"
"""Called with the server. The value that it yields is `ctx.lifespan`."""


class Alone:
    """A lock for tasks of any event loop and thread.

    A lock of asyncio belongs to one event loop, but a server may be used on several: one for each test, or in threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    async def __aenter__(self) -> None:
        while not self._lock.acquire(blocking=False):
            await asyncio.sleep(_PAUSE)

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


class Life:
    """The open lifespan of a server: entered for the first transport that serves, left after the last one."""

    def __init__(self, make: Lifespan, given: Callable[[Any], None]) -> None:
        self._make = cast("Callable[[ResourceServer], Manager]", make)
        if inspect.isasyncgenfunction(make):
            self._make = asynccontextmanager(make)
        self._given = given
        self._alone = Alone()
        self._users = 0
        self._open: Manager | None = None

    @asynccontextmanager
    async def entered(self, server: "ResourceServer") -> AsyncIterator[None]:
        """Keeps the lifespan open during the block."""
        await self.enter(server)
        try:
            yield
        finally:
            await self.leave()

    def around(self, server: "ResourceServer", inner: Callable[[Any], Manager]) -> Callable[[Any], Manager]:
        """A lifespan of another server, inside this one."""

        @asynccontextmanager
        async def both(other: Any) -> AsyncIterator[Any]:
            async with self.entered(server), inner(other) as value:
                yield value

        return both

    async def enter(self, server: "ResourceServer") -> None:
        """Enters the lifespan, unless it is open already."""
        async with self._alone:
            if self._users == 0:
                manager = self._make(server)
                if inspect.iscoroutine(manager):
                    manager.close()
                    raise TypeError(
                        "lifespan is an async function without `yield`, expected one that yields while the server runs"
                    )
                if not hasattr(manager, "__aenter__"):
                    raise TypeError(
                        f"lifespan returned {manager!r}, expected an async context manager: decorate it with"
                        " @contextlib.asynccontextmanager"
                    )
                self._given(await manager.__aenter__())
                self._open = manager
            self._users += 1

    async def leave(self) -> None:
        """Leaves the lifespan after the last transport."""
        async with self._alone:
            self._users -= 1
            if self._users == 0 and self._open is not None:
                manager, self._open = self._open, None
                try:
                    await manager.__aexit__(None, None, None)
                finally:
                    self._given(None)
