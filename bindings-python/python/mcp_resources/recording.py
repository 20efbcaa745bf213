"""The thread that gives a function of the author's what is recorded.

Its loop is Python and not Rust: when the interpreter ends, a thread that is inside the function dies where it stands,
which is safe only for frames of Python.
"""

import threading
from collections.abc import Callable
from typing import Any

from ._core import Records
from .log import unrecorded


def recorder(function: Callable[[dict[str, Any]], object]) -> Callable[[Records], None]:
    """What starts a thread that calls `function` with each entry."""

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
