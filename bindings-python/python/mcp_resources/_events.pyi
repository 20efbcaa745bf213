"""The part of `_core` for servers of other libraries on a bus: types only."""

from collections.abc import Sequence
from typing import final

@final
class SharedEvents:
    """The events of all processes of a server of another library."""

    def __new__(cls, url: str, name: str, keys: Sequence[bytes]) -> SharedEvents: ...
    def announce(self, kind: str, uri: str | None) -> None:
        """Tells the other processes of an event: the name of its class, and its URI."""
    def next(self) -> tuple[list[tuple[str, str | None]], list[str]] | None:
        """Waits for events of other processes, and lines for the log. `None` ends the thread."""
    def stop(self) -> None: ...
    def forked(self) -> None: ...
