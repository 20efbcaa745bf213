"""Variables of templates: types, allowed values and descriptions from annotations, and typed arguments.

Law: a value has one text. The compiled part refuses other texts of the types that it knows. For what pydantic and
further types convert, the text of the result is compared with what the client sent.
"""

import collections
import contextlib
import functools
import types
import typing
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    MutableSequence,
    MutableSet,
    Sequence,
    Set,
)
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin

from . import checks
from .errors import RegistrationError
from .spelling import texts, to_text

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

    def __init__(self, given: Param | None = None) -> None:
        self.param = given or Param()
        self.convert: Convert | None = None
        """Converts the text; `None` leaves it as it is."""
        self.whole = False
        """Whether `convert` takes a whole list or map instead of each item."""
        self.kind: Literal["scalar", "list", "map"] | None = None
        """The kind of the variable, if the annotation determines it."""
        self.optional = False
        """Whether the annotation allows `None`, for a variable that is missing."""

    def declare(self, other: Param) -> None:
        """Adds what is not known yet."""
        param = self.param
        self.param = Param(
            param.description if param.description is not None else other.description,
            type=param.type or other.type,
            values=param.values if param.values is not None else other.values,
            pattern=param.pattern if param.pattern is not None else other.pattern,
        )


Convert: TypeAlias = Callable[[Any], object]


class _Bare(NamedTuple):
    """An annotation without its wrappers."""

    type: Any
    """The type: no `Annotated`, alias, `NewType` or `None`."""
    metadata: tuple[object, ...] = ()
    """What only pydantic can use of the metadata."""

    @property
    def whole(self) -> Any:
        return Annotated[(self.type, *self.metadata)] if self.metadata else self.type


_LISTS = (list, Sequence, MutableSequence, Collection, Iterable)
_COLLECTIONS: dict[object, Callable[[list[Any]], Collection[Any]]] = {
    **dict.fromkeys(_LISTS, list),
    tuple: tuple,
    set: set,
    MutableSet: set,
    Set: frozenset,
    frozenset: frozenset,
    collections.deque: collections.deque,
}
_MAPS = (dict, Mapping, MutableMapping, collections.OrderedDict)


@functools.cache
def _types() -> dict[object, tuple[ParamType, Convert | None]]:
    from datetime import date, datetime  # imported late, so that importing the package is fast
    from uuid import UUID

    return {
        str: ("string", None),
        int: ("integer", int),
        float: ("number", float),
        bool: ("boolean", "true".__eq__),
        UUID: ("uuid", UUID),
        date: ("date", date.fromisoformat),
        datetime: ("date-time", datetime.fromisoformat),
    }


def analyse(annotation: object, given: Param | None = None) -> Analysis:
    """Analyses an annotation; `given` takes precedence over it.

    Raises:
        RegistrationError: no text can be converted to the type.
    """
    result = Analysis(given)
    bare = _bare(annotation, result)
    if bare.type in (Any, object):
        return result
    origin, args = get_origin(bare.type) or bare.type, get_args(bare.type)
    if _is_one_of(origin, _MAPS):
        result.kind = "map"
        _map(bare, args or (str, str), result)
    elif _is_one_of(origin, tuple(_COLLECTIONS)):
        result.kind = "list"
        _collection(bare, _COLLECTIONS[origin], args, result)
    else:
        result.kind = "scalar"
        result.convert = _scalar(bare, result)
    return result


def _is_one_of(found: object, known: Iterable[object]) -> bool:
    return any(found is one for one in known)


def _bare(annotation: Any, result: Analysis) -> _Bare:
    """Removes the wrappers, and records what they say."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        for item in args[1:]:
            _describe(item, result)
        inner = _bare(args[0], result)
        return _Bare(inner.type, (*inner.metadata, *filter(_is_for_pydantic, args[1:])))
    if type(annotation).__name__ == "TypeAliasType":
        return _bare(annotation.__value__, result)
    if isinstance(annotation, typing.NewType):
        return _bare(annotation.__supertype__, result)
    if origin in (Union, types.UnionType) and type(None) in args:
        result.optional = True
        rest = tuple(arg for arg in args if arg is not type(None))
        return _bare(Union[rest], result)  # noqa: UP007
    if origin in (Union, types.UnionType) and all(get_origin(arg) is Literal for arg in args):
        return _Bare(Literal[tuple(value for arg in args for value in get_args(arg))])
    return _Bare(annotation)


def _describe(item: Any, result: Analysis) -> None:
    """Takes the description of a `Param`, a `Field` of pydantic, a `Doc`, or a text."""
    if isinstance(item, Param):
        result.declare(item)
        return
    found = item if isinstance(item, str) else None
    for name in ("description", "documentation"):
        text = getattr(item, name, None)
        found = text if isinstance(text, str) else found
    if found is not None:
        result.declare(Param(found))


def _is_for_pydantic(item: Any) -> bool:
    return not isinstance(item, Param | str) and not hasattr(item, "documentation")


def _scalar(bare: _Bare, result: Analysis) -> Convert | None:
    """Declares the type of one text, and returns its conversion."""
    if bare.type in (Any, object) and not bare.metadata:
        return None
    adapter = _Adapter(bare.whole) if bare.metadata and _needs_pydantic(bare) else None
    if adapter is not None and not adapter.reads_texts_of(bare.type):
        return adapter.one
    known = _known(bare.type, result)
    if known is None:
        return (adapter or _Adapter(bare.whole)).one
    convert, kind = known
    if kind != result.param.type:
        convert = _only(convert)
    return convert if adapter is None else adapter.after(convert)


def _needs_pydantic(bare: _Bare) -> bool:
    """Whether pydantic is there. Without it, metadata that restricts a value must not be ignored."""
    try:
        import pydantic  # noqa: F401
    except ImportError:
        owner = next((item for item in bare.metadata if _module(item) == "annotated_types"), None)
        if owner is not None:
            raise RegistrationError(f"{owner!r} restricts a value; install pydantic, which checks it") from None
        return False
    return True


def _module(item: object) -> str:
    return type(item).__module__.partition(".")[0]


def _known(kind: Any, result: Analysis) -> tuple[Convert | None, ParamType] | None:
    """Declares a type whose texts are known; `None` for others."""
    found = next(((name, convert) for own, (name, convert) in _types().items() if own is kind), None)
    if found is not None:
        result.declare(Param(type=found[0]))
        return found[1], found[0]
    if get_origin(kind) is Literal:
        members = get_args(kind)
        if None in members:
            result.optional = True
        choices = [(value, value) for value in members if value is not None]
    elif isinstance(kind, type) and issubclass(kind, Enum):
        choices = [(member.value, member) for member in kind]
    else:
        return None
    by_text: dict[str, object] = {}
    for value, member in choices:
        try:
            text = to_text(value)
        except (TypeError, ValueError) as error:
            raise RegistrationError(f"{member!r}: {error}") from None
        if by_text.setdefault(text, member) is not member:
            raise RegistrationError(f"{by_text[text]!r} and {member!r} have the same text in a URI, {text!r}")
    result.declare(Param(type="string", values=[*by_text]))
    return by_text.__getitem__, "string"


def _collection(bare: _Bare, make: Callable[[list[Any]], Any], args: tuple[Any, ...], result: Analysis) -> None:
    is_fixed = make is tuple and bool(args) and args[-1] is not Ellipsis
    is_optional = result.optional
    items = _bare(args[0] if args and not is_fixed else str, result)
    result.optional = is_optional
    each = [_only(_scalar(_bare(arg, result), Analysis())) for arg in args] if is_fixed else _scalar(items, result)
    if make is list and not bare.metadata and not isinstance(each, list):
        result.convert = each
        return
    result.whole = True

    def made(given: list[str]) -> object:
        if not isinstance(each, list):
            return make([item if each is None else each(item) for item in given])
        if len(given) != len(each):
            raise ValueError(f"expected {len(each)} values, not {len(given)}")
        return tuple(own(item) for own, item in zip(each, given, strict=True))

    adapter = _Adapter(bare.whole) if bare.metadata and _needs_pydantic(bare) else None
    result.convert = made if adapter is None else adapter.after(made)


def _map(bare: _Bare, args: tuple[Any, ...], result: Analysis) -> None:
    keys = _scalar(_bare(args[0], Analysis()), Analysis())
    values = _scalar(_bare(args[1], result), result)
    if keys is None and not bare.metadata:
        result.convert = values
        return
    result.whole = True
    key, value = _only(keys), values or str

    def made(given: dict[str, str]) -> object:
        return {key(name): value(text) for name, text in given.items()}

    adapter = _Adapter(bare.whole) if bare.metadata and _needs_pydantic(bare) else None
    result.convert = made if adapter is None else adapter.after(made)


def _only(convert: Convert | None) -> Convert:
    """A conversion that refuses a text which is not that of its result."""
    if convert is None:
        return str

    def checked(text: str) -> object:
        return _same(text, convert(text))

    return checked


def _same(given: Any, value: object, forms: Iterable[object] = ()) -> object:
    """The value, if the client has sent its text, or that of the first of its `forms` that has one.

    A value without a text is the type's own affair.

    Raises:
        ValueError: its text is another one.
    """
    text = None
    for form in (*forms, value):
        with contextlib.suppress(TypeError):
            text = texts(form)
            break
    if text is None:
        return value
    is_unordered = isinstance(value, Set) and isinstance(given, list)
    if is_unordered and set(text) == set(given):
        return value
    if isinstance(given, str) and not isinstance(text, str):
        return value  # a collection or mapping, made from one text
    if text != given:
        # Without the text: what a validator makes of a value may be none of the client's business.
        raise ValueError("expected the only spelling of this value, as the server writes it")
    return value


class _Adapter:
    """A type that pydantic validates."""

    def __init__(self, annotation: Any) -> None:
        try:
            from pydantic import TypeAdapter, ValidationError
            from pydantic.errors import PydanticUserError
        except ImportError:
            raise RegistrationError(
                f"{annotation!r} is not a type of a variable: use str, int, float, bool, an Enum, Literal, UUID, date,"
                " datetime or a list of those, or install pydantic"
            ) from None
        try:
            self._adapter: TypeAdapter[object] = TypeAdapter(annotation)
        except PydanticUserError as error:
            raise RegistrationError(f"{annotation!r} is not a type of a variable: {error}") from error
        self._refused = ValidationError

    def reads_texts_of(self, kind: Any) -> bool:
        """Whether it only restricts `kind`, or what becomes of it, and does not read texts in its own way."""
        schema: Any = self._adapter.core_schema
        shared: dict[str, Any] = {}
        while schema["type"] in (*_WRAPPERS, "definition-ref"):
            shared |= {own["ref"]: own for own in schema.get("definitions", ())}
            schema = shared[schema["schema_ref"]] if schema["type"] == "definition-ref" else schema["schema"]
        is_enum = isinstance(kind, type) and issubclass(kind, Enum)
        return schema["type"] in _SCHEMAS and (schema["type"] == "enum") == is_enum

    def one(self, text: Any) -> object:
        """Converts a text.

        Raises:
            ValueError: it is not valid, or not the text of its value.
        """
        value = self._validated(text)
        return _same(text, value, self._forms(value))

    def after(self, convert: Convert | None) -> Convert:
        """A conversion whose result is validated."""

        def both(given: Any) -> object:
            value = self._validated(given if convert is None else convert(given))
            return _same(given, value, self._forms(value))

        return both

    def _validated(self, given: Any) -> object:
        try:
            return self._adapter.validate_python(given)
        except self._refused as error:
            message = error.errors(include_url=False, include_input=False)[0]["msg"]
            raise ValueError(message.removeprefix("Value error, ")) from None

    def _forms(self, value: object) -> Iterator[object]:
        """The value as its type serializes it."""
        modes: tuple[Literal["python", "json"], ...] = ("python", "json")
        for mode in modes:
            with contextlib.suppress(Exception):
                yield self._adapter.dump_python(value, mode=mode, round_trip=True, warnings=False)


_WRAPPERS = ("function-after", "nullable", "default", "definitions")
_SCHEMAS = ("int", "float", "bool", "str", "uuid", "date", "datetime", "enum", "literal")
"""The types of pydantic's core that are read as here."""
