"""The threads that run `def` handlers, so that a slow one blocks nobody.

The loop of a thread is Python and not Rust: when the interpreter ends, a thread that is inside a handler dies where it
stands, which is safe only for frames of Python.
"""

import os
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

from ._core import Queue
from .log import threadless

_numbers = count(1)


def size() -> int:
    """How many threads there may be."""
    return min(32, (os.cpu_count() or 1) + 4)


def spawn(queue: Queue) -> None:
    """Starts one more thread. It ends with the server, or with the interpreter.

    Where the system has no further thread, the jobs wait for those that there are; if there is none, they run here.
    """
    thread = threading.Thread(target=_work, args=(queue,), name=f"mcp-resources-{next(_numbers)}", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        threadless(error)
        if not queue.failed():
            _run(queue.next_here)


def _work(queue: Queue) -> None:
    queue.enter()
    _run(queue.next)


def _run(next: Callable[[], Any]) -> None:
    run: Any
    args: Any
    kwargs: Any
    pending: Any
    for run, args, kwargs, pending in iter(next, None):
        try:
            result = run(*args) if kwargs is None else run(*args, **kwargs)
        except BaseException as error:
            pending.fail(error)
        else:
            pending.succeed(result)
        run = args = kwargs = pending = result = None  # nothing big is held while the thread is idle
