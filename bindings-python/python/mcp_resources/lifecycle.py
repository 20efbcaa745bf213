"""The ends of a process: threads leave before the interpreter does, and a forked process starts its own."""

import atexit
import os
import weakref

from ._core import Caller, Server

_servers: "weakref.WeakSet[Server]" = weakref.WeakSet()
_callers: "weakref.WeakSet[Caller]" = weakref.WeakSet()
_hooks: list[bool] = []


def watch(server: Server) -> None:
    """Sees to the threads of a server for as long as it lives."""
    _hook()
    _servers.add(server)


def watch_client(caller: Caller) -> None:
    """Sees to it that a client that was not closed leaves no process behind."""
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
