"""The threads that run `def` handlers, so that a slow one blocks nobody.

The loop of a thread is Python and not Rust: when the interpreter ends, a thread that is inside a handler dies where it
stands, which is safe only for frames of Python.
"""

import atexit
import os
import threading
from itertools import count
from typing import Any

from ._core import Queue

_numbers = count(1)


def size() -> int:
    """How many threads there may be."""
    return min(32, (os.cpu_count() or 1) + 4)


def spawn(queue: Queue) -> None:
    """Starts one more thread. It ends with the interpreter."""
    if queue.threads == 1:
        atexit.register(queue.stop)
    threading.Thread(target=_work, args=(queue,), name=f"mcp-resources-{next(_numbers)}", daemon=True).start()


def _work(queue: Queue) -> None:
    queue.enter()
    run: Any
    args: Any
    kwargs: Any
    pending: Any
    for run, args, kwargs, pending in iter(queue.next, None):
        try:
            result = run(*args) if kwargs is None else run(*args, **kwargs)
        except BaseException as error:
            pending.fail(error)
        else:
            pending.succeed(result)
        run = args = kwargs = pending = result = None  # nothing big is held while the thread is idle
