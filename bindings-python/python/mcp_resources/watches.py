"""The thread that calls the `on_watch` functions.

Its loop is in Python for the reason given in `recording`. The thread holds only a weak reference to the functions,
because they may hold the server.
"""

import inspect
import threading
import weakref
from collections.abc import Callable

from ._core import Server
from ._core import Watches as Changes
from .log import failed

__all__: list[str] = []

Watcher = Callable[[str, bool], object]


class Watches:
    """The `on_watch` functions of one server, by the URI or template that they are registered for."""

    def __init__(self, core: Server) -> None:
        self._core = weakref.ref(core)
        self._functions: dict[str, list[Watcher]] = {}
        self._names: dict[str, str] = {}

    def add(self, uri: str, function: Watcher) -> None:
        """Registers a function for the resource or template `uri`."""
        if not callable(function):
            raise TypeError(f"on_watch takes the function itself, got {function!r}")
        if inspect.iscoroutinefunction(function):
            raise TypeError(
                "on_watch takes a plain function: it is called on a thread of its own, not on the event loop"
            )
        core = self._core()
        if core is not None:
            self._names[uri] = core.watch(uri, _starter(weakref.ref(self)))
            self._functions.setdefault(self._names[uri], []).append(function)

    def remove(self, uri: str) -> None:
        """Removes the functions of a resource or template that was removed."""
        self._functions.pop(self._names.pop(uri, ""), None)

    def tell(self, name: str, uri: str, is_watched: bool) -> None:
        """Calls the functions of the resource or template that serves `uri`."""
        for function in self._functions.get(name, ()):
            try:
                function(uri, is_watched)
            except Exception as error:
                failed(getattr(function, "__name__", "on_watch"), uri, error)


def _starter(watches: "weakref.ref[Watches]") -> Callable[[Changes], None]:
    def start(changes: Changes) -> None:
        threading.Thread(target=_run, args=(changes, watches), name="mcp-resources-watch", daemon=True).start()

    return start


def _run(changes: Changes, watches: "weakref.ref[Watches]") -> None:
    for batch in iter(changes.next, None):
        own = watches()
        if own is None:
            return
        for change in batch:
            own.tell(*change)
        del own
