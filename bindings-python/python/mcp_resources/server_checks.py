"""Checks of the options of a server that stay in Python, so that the core does not check them."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from . import checks
from .guard import check_policy
from .results import CacheHint


def check_options(options: Mapping[str, Any]) -> None:
    """Checks the options that are functions or mappings.

    Raises:
        TypeError: one has the wrong type.
    """
    hints = {
        "encoder": "",
        "redact": "; detectors belong to the policy: guard={'redact': […]}",
        "lifespan": " that takes the server, decorated with @contextlib.asynccontextmanager",
    }
    for name, hint in hints.items():
        given = options.get(name)
        if name == "lifespan" and (hasattr(given, "__aenter__") or inspect.isasyncgen(given)):
            raise TypeError("lifespan is an open context manager, expected the function that makes one: without ()")
        if given is not None and not callable(given):
            raise TypeError(f"{name} is {given!r}, expected a function{hint}")
    if options.get("redact") is not None:
        checks.plain_function("redact", options["redact"], "it is called on the thread of the handler")
    if callable(options.get("audit")):
        checks.plain_function("audit", options["audit"], "it is called on a thread of its own")
    _check_keys(options.get("keys", ()))
    if options.get("guard") is not None:
        check_policy("guard", options["guard"])
    for name in ("list_cache", "discover_cache"):
        if not isinstance(options.get(name, _NO_HINT), CacheHint):
            raise TypeError(f'{name} is {options[name]!r}, expected a CacheHint, such as CacheHint(60_000, "private")')
    extensions = options.get("extensions", {})
    if not isinstance(extensions, Mapping):
        raise TypeError(f"extensions is {extensions!r}, expected a dict of settings by names")


_NO_HINT = CacheHint()


def _check_keys(keys: object) -> None:
    """Refuses secrets of a wrong type. The message does not repeat them: an error may end in a log."""
    if isinstance(keys, str | bytes | bytearray) or not isinstance(keys, Iterable):
        raise TypeError(f"keys is of type `{type(keys).__name__}`, expected a list of bytes, such as [secret]")
    if isinstance(keys, list | tuple):
        for at, key in enumerate(keys):
            if isinstance(key, str):
                raise TypeError(f"keys[{at}] is a text, expected bytes, such as secret.encode()")
