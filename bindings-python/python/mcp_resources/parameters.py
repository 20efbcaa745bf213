"""Variables of templates: types, allowed values and descriptions from annotations (S-16), and typed arguments."""

import functools
import operator
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args

from . import checks
from .errors import RegistrationError

__all__ = ["Param"]

ParamType: TypeAlias = Literal["string", "integer", "number", "boolean", "date", "date-time", "uuid"]


class Param:
    """The type and the description of a variable: in `Annotated[…, Param(…)]`, or in `parameters={name: Param(…)}`.

    The server refuses other values, completes `values`, and publishes all of it with the template.

    Args:
        description: a description of the variable, for people and models. Default: none.
        type: the type of the value. Default: that of the annotation, else any text.
        values: the values that are allowed. Default: those of an `Enum` or `Literal`, else all.
        pattern: a regular expression that the whole value must match. Default: none.

    Raises:
        TypeError: there is no such type, or `values` is not a list of texts.
    """

    __slots__ = ("description", "pattern", "type", "values")

    def __init__(
        self,
        description: str | None = None,
        *,
        type: ParamType | None = None,
        values: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        if type is not None and type not in get_args(ParamType):
            raise TypeError(f"type is {type!r}, expected one of {', '.join(get_args(ParamType))}")
        if values is not None:
            checks.texts("values", values)
        self.description = description
        self.type = type
        self.values = values
        self.pattern = pattern


class Analysis:
    """The type of an annotation, and how a text becomes a value of it."""

    __slots__ = ("convert", "kind", "optional", "param", "whole")

    def __init__(self) -> None:
        self.param = Param()
        self.convert: Callable[[Any], object] | None = None
        """Converts the text; `None` leaves it as it is."""
        self.whole = False
        """Whether `convert` takes a whole list or map instead of each item."""
        self.kind: Literal["scalar", "list", "map"] | None = None
        """The kind of the variable, if the annotation determines it."""
        self.optional = False
        """Whether the annotation allows `None`, for a variable that is missing."""


@functools.cache
def _types() -> dict[object, tuple[ParamType, Callable[[str], object] | None]]:
    from datetime import date, datetime  # imported late, so that importing the package is fast
    from uuid import UUID

    return {
        int: ("integer", int),
        float: ("number", float),
        bool: ("boolean", "true".__eq__),
        UUID: ("uuid", UUID),
        date: ("date", date.fromisoformat),
        datetime: ("date-time", datetime.fromisoformat),
    }


def analyse(annotation: object) -> Analysis:
    """Analyses an annotation.

    Raises:
        RegistrationError: no text can be converted to the type.
    """
    result = Analysis()
    rest = _strip(annotation, result)
    if rest is Any or rest is object:
        return result
    origin, args = typing.get_origin(rest), typing.get_args(rest)
    if rest in (list, dict):
        origin = rest
    if origin in (list, Sequence) or origin is Sequence:
        result.kind = "list"
        _scalar(_strip(args[0], result) if args else str, result)
    elif origin in (dict, Mapping):
        result.kind = "map"
        _scalar(_strip(args[1], result) if args else str, result)
    else:
        inner = args[0] if origin is Annotated else rest
        result.kind = "list" if typing.get_origin(inner) is list or inner is list else "scalar"
        result.whole = result.kind == "list"
        _scalar(rest, result)
    return result


def _strip(annotation: object, result: Analysis) -> object:
    """Removes `Annotated` and `None`, and records them. Types with other metadata are left to pydantic."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        own = [item for item in args[1:] if isinstance(item, Param)]
        for param in own:
            result.param = param
        if len(own) < len(args) - 1:
            others = tuple(item for item in args[1:] if not isinstance(item, Param))
            return Annotated[(args[0], *others)]
        return _strip(args[0], result)
    if origin in (Union, types.UnionType) and type(None) in args:
        result.optional = True
        return _strip(functools.reduce(operator.or_, (arg for arg in args if arg is not type(None))), result)
    return annotation


def _scalar(annotation: object, result: Analysis) -> None:
    param = result.param
    if annotation is str:
        result.param = _completed(param, "string", None)
    elif annotation in _types():
        kind, result.convert = _types()[annotation]
        result.param = _completed(param, kind, None)
    elif typing.get_origin(annotation) is Literal:
        _choice({str(value): value for value in typing.get_args(annotation)}, result)
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        _choice({str(member.value): member for member in annotation}, result)
    elif annotation not in (Any, object):
        result.convert = _adapter(annotation)


def _choice(choices: dict[str, object], result: Analysis) -> None:
    result.convert = choices.__getitem__
    result.param = _completed(result.param, "string", list(choices))


def _completed(param: Param, kind: ParamType, values: Sequence[str] | None) -> Param:
    return Param(
        param.description,
        type=param.type or kind,
        values=param.values if param.values is not None else values,
        pattern=param.pattern,
    )


def _adapter(annotation: Any) -> Callable[[Any], object]:
    try:
        from pydantic import TypeAdapter, ValidationError
        from pydantic.errors import PydanticUserError
    except ImportError:
        raise RegistrationError(
            f"{annotation!r} is not a type of a variable: use str, int, float, bool, an Enum, Literal, UUID, date,"
            " datetime or a list of those, or install pydantic"
        ) from None
    try:
        adapter: TypeAdapter[object] = TypeAdapter(annotation)
    except PydanticUserError as error:
        raise RegistrationError(f"{annotation!r} is not a type of a variable: {error}") from error

    def convert(text: Any) -> object:
        try:
            return adapter.validate_python(text)
        except ValidationError as error:
            message = error.errors(include_url=False, include_input=False)[0]["msg"]
            raise ValueError(message.removeprefix("Value error, ")) from None

    return convert
