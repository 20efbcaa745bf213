"""Exit and fork: threads end before the interpreter does, and a forked process starts its own threads."""

import atexit
import os
import weakref

from ._core import Caller, Server, SharedEvents

_servers: "weakref.WeakSet[Server | SharedEvents]" = weakref.WeakSet()
_callers: "weakref.WeakSet[Caller]" = weakref.WeakSet()
_hooks: list[bool] = []


def watch(server: Server | SharedEvents) -> None:
    """Stops the threads of a server at exit, and renews them after a fork."""
    _hook()
    _servers.add(server)


def watch_client(caller: Caller) -> None:
    """Ends the processes of a client at exit, if it was not closed."""
    _hook()
    _callers.add(caller)


def _hook() -> None:
    if not _hooks:
        _hooks.append(True)
        atexit.register(_stop)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forked)


def _stop() -> None:
    for caller in list(_callers):
        caller.shut()
    for server in list(_servers):
        server.stop()


def _forked() -> None:
    for server in list(_servers):
        server.forked()
