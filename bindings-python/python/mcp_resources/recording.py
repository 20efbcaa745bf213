"""The thread that calls the audit function.

Its loop is in Python and not in Rust: when the interpreter exits, it stops the thread wherever it is, which is safe
only in Python frames.
"""

import threading
from collections.abc import Callable
from typing import Any

from ._core import Records
from .log import unrecorded


def recorder(function: Callable[[dict[str, Any]], object]) -> Callable[[Records], None]:
    """Returns a function that starts a thread, which calls `function` with each record."""

    def start(records: Records) -> None:
        threading.Thread(target=_run, args=(records, function), name="mcp-resources-audit", daemon=True).start()

    return start


def _run(records: Records, function: Callable[[dict[str, Any]], object]) -> None:
    import json

    for lines in iter(records.next, None):
        for line in lines:
            try:
                function(json.loads(line))
            except BaseException as error:
                unrecorded(error)
