"""The ends of a process: threads leave before the interpreter does, and a forked process starts its own."""

import atexit
import os
import weakref

from ._core import Server

_servers: "weakref.WeakSet[Server]" = weakref.WeakSet()
_hooks: list[bool] = []


def watch(server: Server) -> None:
    """Sees to the threads of a server for as long as it lives."""
    if not _hooks:
        _hooks.append(True)
        atexit.register(_stop)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forked)
    _servers.add(server)


def _stop() -> None:
    for server in list(_servers):
        server.stop()


def _forked() -> None:
    for server in list(_servers):
        server.forked()
