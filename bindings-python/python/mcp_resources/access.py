"""Functions that decide who may use a resource, as the core calls them: with a principal and many URIs at once."""

import asyncio
import inspect
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from ._core import Function
from .errors import RegistrationError
from .functions import CONTEXT, Mode, Slot, Slots, check, full_name, underlying

Converts: TypeAlias = Mapping[str, tuple[Callable[[Any], object] | None, bool]]
"""The conversions of the handler's parameters, and whether they take a whole list."""

_ARGUMENTS = ("principal", "parameters")
_AT_ONCE = 32
"""The calls of an async function that run at the same time."""
_log = logging.getLogger("mcp_resources")


def access(function: Callable[..., Any], converts: Converts, *, batch: bool, inline: bool) -> Function:
    """Prepares a function that decides who may use a resource.

    Raises:
        RegistrationError: it does not take a principal and parameters.
    """
    check(function)
    slots = Slots(function)
    own = [parameter for parameter in slots.parameters() if parameter.default is parameter.empty]
    if len(own) != len(_ARGUMENTS) and not slots.takes_any:
        taken = ", ".join(parameter.name for parameter in own) or "nothing"
        given = "a list of dicts" if batch else "a dict"
        raise RegistrationError(
            f"{full_name(function)}: it takes ({taken}), but is called with (principal, parameters): the identity of"
            f" the person, and {given} of the variables"
        )
    target = underlying(function)
    is_async = inspect.iscoroutinefunction(target)
    many = _Batched(function, converts) if batch else _Each(function, converts)
    call: Callable[..., Any] = many.ask_later if is_async else many.ask
    sources: list[Slot] = [("value", None, name, None, False, None) for name in ("principal", "questions")]
    if slots.context is not None:
        sources.append((CONTEXT[0], slots.context, *CONTEXT[2:]))
    mode: Mode = "async" if is_async else "inline" if inline else "pool"
    return Function(full_name(function), call, mode, None, None, sources)


class _Questions:
    """The questions of one call, and their answers: `None` after a failure."""

    def __init__(self, function: Callable[..., Any], converts: Converts) -> None:
        self.function = function
        self.converts = converts
        self.name = full_name(function)

    def typed(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values as the handler gets them."""
        return {name: self._convert(name, value) for name, value in values.items()}

    def _convert(self, name: str, value: Any) -> object:
        convert, whole = self.converts.get(name, (None, False))
        if convert is None:
            return value
        if isinstance(value, list) and not whole:
            return [convert(item) for item in value]
        if isinstance(value, dict) and not whole:
            return {key: convert(item) for key, item in value.items()}
        return convert(value)

    def decided(self, answer: object) -> bool | None:
        """The answer, if it is one."""
        if isinstance(answer, bool):
            return answer
        hint = "; write async def" if inspect.isawaitable(answer) else ""
        if inspect.iscoroutine(answer):
            answer.close()
        _log.error("%s returned %.80r, expected True or False, so the answer is no%s", self.name, answer, hint)
        return None

    def failed(self, error: Exception) -> None:
        """Logs a failure: the answer is no."""
        _log.error("%s failed, so the answer is no", self.name, exc_info=error)


class _Each(_Questions):
    """A function for one URI at a time. A failure concerns its own URI alone."""

    def ask(self, principal: str, questions: Iterable[Mapping[str, Any]], **context: Any) -> list[bool | None]:
        return [self._one(principal, values, context) for values in questions]

    def _one(self, principal: str, values: Mapping[str, Any], context: dict[str, Any]) -> bool | None:
        try:
            return self.decided(self.function(principal, self.typed(values), **context))
        except Exception as error:
            self.failed(error)
            return None

    async def ask_later(
        self, principal: str, questions: Iterable[Mapping[str, Any]], **context: Any
    ) -> list[bool | None]:
        answers: list[bool | None] = []
        for part in _parts(questions):
            answers += await asyncio.gather(*(self._one_later(principal, values, context) for values in part))
        return answers

    async def _one_later(self, principal: str, values: Mapping[str, Any], context: dict[str, Any]) -> bool | None:
        try:
            return self.decided(await self.function(principal, self.typed(values), **context))
        except Exception as error:
            self.failed(error)
            return None


class _Batched(_Questions):
    """A function for many URIs at once."""

    def ask(self, principal: str, questions: Iterable[Mapping[str, Any]], **context: Any) -> list[bool | None]:
        asked = [self.typed(values) for values in questions]
        return self._all(self.function(principal, asked, **context), len(asked))

    async def ask_later(
        self, principal: str, questions: Iterable[Mapping[str, Any]], **context: Any
    ) -> list[bool | None]:
        asked = [self.typed(values) for values in questions]
        return self._all(await self.function(principal, asked, **context), len(asked))

    def _all(self, answers: Any, count: int) -> list[bool | None]:
        if not isinstance(answers, list) or len(answers) != count:
            raise TypeError(f"{self.name} returned {answers!r:.80}, expected a list of {count} bools")
        return [self.decided(answer) for answer in answers]


def _parts(questions: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], ...]]:
    rest = iter(questions)
    while part := tuple(itertools.islice(rest, _AT_ONCE)):
        yield part
