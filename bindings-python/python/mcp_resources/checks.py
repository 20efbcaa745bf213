"""Checks of arguments: a wrong value is refused where it is passed, with the value, the reason and the fix."""

import inspect
from collections.abc import Iterable, Mapping

__all__: list[str] = []


def shown(value: object) -> str:
    """A value in an error message: its `repr`, shortened."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def text(name: str, given: object) -> None:
    """Refuses a value that is not a `str`."""
    if not isinstance(given, str):
        raise TypeError(f"{name} is {shown(given)}, expected a text")


def texts(name: str, given: object) -> list[str]:
    """A list of texts; one text is not the list of its characters.

    Raises:
        TypeError: it is one text, no iterable, or one of its items is not a text.
    """
    if isinstance(given, str):
        raise TypeError(f"{name} is {given!r}, expected a list of texts, such as [{given!r}]")
    if not isinstance(given, Iterable):
        raise TypeError(f"{name} is {shown(given)}, expected a list of texts")
    found = [*given]
    for at, item in enumerate(found):
        text(f"{name}[{at}]", item)
    return found


def mapping(name: str, given: object, example: str) -> None:
    """Refuses a value that is not a mapping."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} is {shown(given)}, expected a dict, such as {example}")


def plain_function(name: str, given: object, why: str) -> None:
    """Refuses a value that cannot be called, and an `async def`, whose result would be a coroutine."""
    if not callable(given):
        raise TypeError(f"{name} is {shown(given)}, expected a function")
    if inspect.iscoroutinefunction(given):
        title = getattr(given, "__name__", repr(given))
        raise TypeError(f"{name} is the async function {title}, expected a plain one (def): {why}")
