"""The worker threads for `def` handlers, so that a slow handler does not block others.

The loop of a thread is in Python and not in Rust: when the interpreter exits, it stops the thread wherever it is, which
is safe only in Python frames.
"""

import os
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

from ._core import Queue
from .functions import gathered, is_generator
from .log import threadless

_numbers = count(1)


def size() -> int:
    """The largest number of threads."""
    return min(32, (os.cpu_count() or 1) + 4)


def spawn(queue: Queue) -> None:
    """Starts one more thread. It ends with the server or the interpreter.

    If the system refuses another thread, jobs wait for the existing ones; if there are none, jobs run here.
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
            if is_generator(result) and (gather := pending.gather()) is not None:
                result = run(gathered, gather, result)  # of a function behind a decorator
        except BaseException as error:
            pending.fail(error)
        else:
            pending.succeed(result)
        run = args = kwargs = pending = result = gather = None  # free them while the thread waits
