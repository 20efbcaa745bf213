"""What an author opens before the first request and closes after the last: pools, clients, models."""

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
"""How long a task waits before it looks again, in seconds: what is waited for happens once in the life of a server."""

Manager: TypeAlias = AbstractAsyncContextManager[Any]
Lifespan: TypeAlias = "Callable[[ResourceServer], Manager | AsyncIterator[Any]]"
"""Called with the server; what it yields is `ctx.lifespan`."""


class Alone:
    """One task at a time, on whatever loops and threads tasks run.

    A lock of asyncio belongs to the loop on which a task first waits for it. A server is used on several loops: one for
    each test, or in threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    async def __aenter__(self) -> None:
        while not self._lock.acquire(blocking=False):
            await asyncio.sleep(_PAUSE)

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


class Life:
    """Entered by each transport that serves, opened for the first and closed after the last."""

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
        """Open while inside."""
        await self.enter(server)
        try:
            yield
        finally:
            await self.leave()

    async def enter(self, server: "ResourceServer") -> None:
        """Opens it, unless it is open already."""
        async with self._alone:
            if self._users == 0:
                manager = self._make(server)
                if not hasattr(manager, "__aenter__"):
                    raise TypeError(
                        f"lifespan returned {manager!r}, expected an async context manager: decorate it with"
                        " @contextlib.asynccontextmanager"
                    )
                self._given(await manager.__aenter__())
                self._open = manager
            self._users += 1

    async def leave(self) -> None:
        """Closes it when the last user leaves."""
        async with self._alone:
            self._users -= 1
            if self._users == 0 and self._open is not None:
                manager, self._open = self._open, None
                try:
                    await manager.__aexit__(None, None, None)
                finally:
                    self._given(None)
