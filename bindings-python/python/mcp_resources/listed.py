"""The iterators of a client: entries of lists, changes of resources, names of servers."""

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from .errors import McpError
from .results import Contents

if TYPE_CHECKING:
    from ._core import Stream
    from .client import Client

__all__ = ["Change", "ListedResource", "ListedTemplate"]

Item = TypeVar("Item")


def loads(text: str) -> Any:
    """Parses JSON text of a server. Whole numbers that are too long for `int` become floats."""
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(text, parse_int=float)


class _Listed:
    """An entry of a list, parsed at the first access. A member with a wrong type is `None`."""

    __slots__ = ("_json", "_key", "_raw", "server")

    def __init__(self, server: str, key: str, text: str) -> None:
        self.server = server
        """The name of the server."""
        self._key = key
        self._json = text
        self._raw: dict[str, Any] | None = None

    @property
    def raw(self) -> dict[str, Any]:
        """The whole entry, as the server sent it."""
        if self._raw is None:
            self._raw = loads(self._json)
        return self._raw

    @property
    def name(self) -> str:
        """The name for programs; the URI or template if it has none."""
        return self._member("name", str) or self._key

    @property
    def title(self) -> str | None:
        """The name for people."""
        return self._member("title", str)

    @property
    def description(self) -> str | None:
        """The description."""
        return self._member("description", str)

    @property
    def mime_type(self) -> str | None:
        """The media type."""
        return self._member("mimeType", str)

    @property
    def annotations(self) -> dict[str, Any] | None:
        """The annotations: `audience`, `priority` and `lastModified`."""
        return self._member("annotations", dict)

    @property
    def meta(self) -> dict[str, Any] | None:
        """Members of `_meta`."""
        return self._member("_meta", dict)

    def _member(self, name: str, of: type[Item]) -> Item | None:
        value = self.raw.get(name)
        return value if type(value) is of else None

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}({self._key!r}, server={self.server!r})"


class ListedResource(_Listed):
    """A resource in a list."""

    __slots__ = ()

    @property
    def uri(self) -> str:
        """The URI."""
        return self._key

    @property
    def size(self) -> int | None:
        """The size in bytes, if the server states it."""
        return self._member("size", int)


class ListedTemplate(_Listed):
    """A template in a list."""

    __slots__ = ()

    @property
    def uri_template(self) -> str:
        """The text of the template."""
        return self._key


class Change:
    """The contents of a watched resource: once at the beginning, and after each change.

    `contents` has the form of `Client.read`; it is `None` if the resource was removed.
    """

    __slots__ = ("contents", "server", "uri")

    def __init__(self, server: str, uri: str, contents: str | bytes | list[Contents] | None) -> None:
        self.uri = uri
        """The URI of the changed resource. It may lie under the URI that is watched."""
        self.contents = contents
        self.server = server
        """The name of the server."""

    def __repr__(self) -> str:
        return f"Change({self.uri!r}, {self.contents!r})"


class _Iterator(Generic[Item]):
    """An async iterator over values of the compiled part. It fetches a value only when it is awaited."""

    def __init__(self, client: "Client", stream: "Stream", make: Callable[..., Item]) -> None:
        self._client = client
        self._stream = stream
        self._make = make
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    def __aiter__(self) -> Self:
        return self

    async def aclose(self) -> None:
        """Ends the iteration, as `break` does."""
        self._stream.close()
        for number, future in self._waiting.items():
            self._client._caller.cancel(number)
            if not future.done():
                future.set_result(None)

    async def _next(self) -> Any:
        future, caller = self._client._future(), self._client._caller
        number = caller.next(future, self._stream)
        if number is None:
            raise StopAsyncIteration
        self._waiting[number] = future
        try:
            found = await future
        except asyncio.CancelledError:
            caller.cancel(number)
            raise
        finally:
            del self._waiting[number]
        if found is None:
            self._stream.close()
            raise StopAsyncIteration
        return found


class ListedIterator(_Iterator[Item]):
    """The entries of a list, from all pages of all servers."""

    def __init__(self, client: "Client", stream: "Stream", make: Callable[..., Item]) -> None:
        super().__init__(client, stream, make)
        self._items: list[tuple[str, str, str]] = []

    async def __anext__(self) -> Item:
        if not self._items:
            self._items = await self._next()
            self._items.reverse()
        return self._make(*self._items.pop())


class ChangeIterator(_Iterator[Change]):
    """The changes of a watched resource."""

    async def __anext__(self) -> Change:
        return self._make(*await self._next())


class NameIterator(_Iterator[str]):
    """Names of servers."""

    async def __anext__(self) -> str:
        try:
            return self._make(await self._next())
        except McpError:
            if self._client.is_closed:
                raise StopAsyncIteration from None
            raise
