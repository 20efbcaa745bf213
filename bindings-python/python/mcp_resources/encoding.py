"""JSON text of Python values: those of the module `json`, and other common types."""

import collections
import collections.abc
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, cast

from .spelling import duration

__all__ = ["Encoder", "NotJson", "bytes_of", "is_bytes", "to_json"]

Encoder: TypeAlias = Callable[[Any], object]
"""Called with each value that has no JSON form. Returns one that has, or `NotImplemented` for the default."""

_DEEPEST = 100
"""The deepest nesting in which a fault is located."""


class NotJson(TypeError):
    """A value has no JSON form. The message names its place and its type."""


def to_json(value: object, encoder: Encoder | None = None, name: str = "the result") -> str:
    """Serializes a value as JSON. `name` is its name in error messages.

    In addition to the types of the module `json`: pydantic models, dataclasses, attrs classes, enums, sets, `deque`,
    `range`, views of a dict, mappings, rows of `sqlite3`; `date`, `time`, `datetime` and `timedelta` as ISO 8601;
    `UUID`, `Path`, `Decimal` and IP addresses as texts; arrays and numbers of numpy, `array`,
    `ctypes` and `memoryview`. A key of a dict may be any of these that is a text or a number.

    Raises:
        NotJson: the value, or a value in it, has no JSON form.
    """
    dump = getattr(value, "model_dump_json", None)
    if dump is not None and encoder is None and not isinstance(value, type):
        return cast(str, dump())
    try:
        return _written(value, encoder)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotJson(_fault(value, encoder, name) or str(error)) from None


def _written(value: object, encoder: Encoder | None) -> str:
    try:
        return _writer(encoder)(value)
    except NotJson:
        raise
    except TypeError:
        # A key of another type than the module `json` takes.
        return _writer(encoder)(_with_json_keys(value, _converter(encoder), _DEEPEST))


def _with_json_keys(value: object, default: Callable[[object], object], depth: int) -> object:
    if value is None or depth == 0 or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        pairs = [(_key(key, default), _with_json_keys(item, default, depth - 1)) for key, item in value.items()]
        found = dict(pairs)
        if len(found) < len(pairs):
            raise NotJson("two keys of a dict have the same text")
        return found
    if isinstance(value, list | tuple):
        return [_with_json_keys(item, default, depth - 1) for item in value]
    return _with_json_keys(default(value), default, depth - 1)


def _key(key: object, default: Callable[[object], object]) -> str | int | float | None:
    """A key as the module `json` takes it.

    Raises:
        NotJson: it is neither a text nor a number.
    """
    plain = key
    if not _is_key(key):
        plain = default(key)
        if plain is not key and not _is_key(plain):
            plain = default(plain)
    if not _is_key(plain):
        raise NotJson(f"the key {_short(key)} is no text")
    return plain  # type: ignore[return-value]


def _is_key(key: object) -> bool:
    return key is None or isinstance(key, str | int | float)


def bytes_of(value: object) -> bytes | None:
    """The bytes of a buffer whose elements are bytes; `None` for any other object.

    The buffer of a number, or of an array of numbers, is their machine representation, which no client expects.
    """
    try:
        view = memoryview(cast(Any, value))
    except (TypeError, ValueError, BufferError):
        return None
    with view:
        # A time of numpy has a buffer of eight bytes, but is a number by its own account.
        element, is_sequence = view.format.lstrip("@=<>!"), getattr(value, "ndim", view.ndim) > 0
        # Signed bytes are those of a library such as pyarrow, unless the object knows that they are numbers.
        is_byte = element in ("B", "c") or (element == "b" and not hasattr(type(value), "tolist"))
        return view.tobytes() if is_sequence and is_byte else None


def is_bytes(value: object) -> bool:
    """Whether a value is served as bytes: `bytes`, or a buffer of bytes."""
    return isinstance(value, bytes | bytearray) or bytes_of(value) is not None


def compact(value: object) -> str:
    """Serializes a value that was JSON before, without spaces: the limits of the core count bytes."""
    return _compact()(value)


@functools.cache
def _compact() -> Callable[[object], str]:
    import json

    return json.JSONEncoder(separators=(",", ":")).encode


@functools.lru_cache(maxsize=16)
def _writer(encoder: Encoder | None) -> Callable[[object], str]:
    import json  # imported late, so that a server starts fast

    default = _converter(encoder)
    return json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=default).encode


def _converter(encoder: Encoder | None) -> Callable[[object], object]:
    """Converts a value that has no JSON form."""
    return _default if encoder is None else functools.partial(_hooked, encoder)


def _hooked(encoder: Encoder, value: object) -> object:
    encoded = encoder(value)
    return _default(value) if encoded is NotImplemented else encoded


def _default(value: object) -> object:
    cls: Any = type(value)
    thing: Any = value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, _COLLECTIONS):
        return list(value)
    for knows, plain in _FORMS:
        if knows(cls):
            return plain(thing)
    raise NotJson(f"{cls.__qualname__} has no JSON form")


_COLLECTIONS = (
    set,
    frozenset,
    collections.deque,
    range,
    collections.abc.KeysView,
    collections.abc.ValuesView,
    collections.abc.ItemsView,
)

_Form: TypeAlias = tuple[Callable[[Any], bool], Callable[[Any], object]]
_FORMS: tuple[_Form, ...] = (
    (lambda cls: hasattr(cls, "model_dump"), lambda model: model.model_dump(mode="json")),
    (
        lambda cls: hasattr(cls, "__dataclass_fields__"),
        lambda record: {name: getattr(record, name) for name in record.__dataclass_fields__},
    ),
    (
        lambda cls: hasattr(cls, "__attrs_attrs__"),
        lambda record: {field.name: getattr(record, field.name) for field in record.__attrs_attrs__},
    ),
    (lambda cls: hasattr(cls, "isoformat"), lambda time: time.isoformat()),
    (lambda cls: hasattr(cls, "__members__"), lambda member: member.value),
    (lambda cls: hasattr(cls, "total_seconds") and hasattr(cls, "microseconds"), duration),
    (lambda cls: cls.__module__ in ("uuid", "decimal", "ipaddress") or hasattr(cls, "__fspath__"), str),
    # A row of sqlite3: its iterator yields values, not keys.
    (
        lambda cls: hasattr(cls, "keys") and hasattr(cls, "__getitem__"),
        lambda row: {k: row[k] for k in list(row.keys())},
    ),
    (lambda cls: hasattr(cls, "tolist") and hasattr(cls, "dtype"), lambda array: _of_numpy(array)),
    (lambda cls: hasattr(cls, "typecode") and hasattr(cls, "tounicode"), lambda array: _of_array(array)),
    (lambda cls: cls is memoryview, lambda view: _of_memoryview(view)),
    (lambda cls: hasattr(cls, "_length_") and hasattr(cls, "_type_"), list),
    (lambda cls: cls.__module__.startswith("ctypes") and hasattr(cls, "value"), lambda number: number.value),
    (lambda cls: hasattr(cls, "_fields_") and hasattr(cls, "from_buffer"), lambda record: _of_structure(record)),
)
"""Types are recognised by their attributes, because importing them would slow down every server."""


def _of_numpy(value: Any) -> object:
    """The values of a number or an array. Times are texts as `datetime` has them; some are no `datetime`."""
    if value.dtype.kind == "M":
        return value.astype(str).tolist()
    plain = value.tolist()
    return float(value) if plain is value or (value.dtype.char == "g" and value.ndim == 0) else plain


def _of_array(value: Any) -> object:
    return value.tounicode() if value.typecode in ("u", "w") else value.tolist()


def _of_memoryview(view: memoryview) -> object:
    if is_bytes(view):
        raise NotJson("bytes have no JSON form")
    return view.tolist()


def _of_structure(record: Any) -> object:
    """The fields of a structure of `ctypes`, also of those that it is derived from."""
    fields = [field for cls in reversed(type(record).__mro__) for field in vars(cls).get("_fields_", ())]
    return {field[0]: getattr(record, field[0]) for field in fields}


def _fault(value: object, encoder: Encoder | None, name: str) -> str | None:
    """The place of the first value without a JSON form, and the reason."""
    default = _converter(encoder)
    return next(_faults(value, name, default, _DEEPEST), None)


def _faults(value: object, path: str, default: Callable[[object], object], depth: int) -> Iterator[str]:
    if value is None or isinstance(value, str | bool | int):
        return
    if depth == 0:
        yield f"{path[:40]}… is nested too deeply, or contains itself"
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield f"{path} is {value}, which JSON does not have; use None, or a text"
    elif isinstance(value, dict):
        for key, item in value.items():
            if not _has_text(key, default):
                yield f"{path} has the key {_short(key)}, a {type(key).__qualname__}; keys are texts, such as str(key)"
            yield from _faults(item, _member(path, key), default, depth - 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _faults(item, f"{path}[{index}]", default, depth - 1)
    else:
        yield from _other(value, path, default, depth)


def _has_text(key: object, default: Callable[[object], object]) -> bool:
    try:
        _key(key, default)
    except Exception:
        return False
    return True


def _other(value: object, path: str, default: Callable[[object], object], depth: int) -> Iterator[str]:
    try:
        plain = default(value)
    except NotJson:
        yield f"{path} is {_short(value)}, {_article(value)}, which has no JSON form; {_remedy(value)}"
    except Exception as error:
        yield f"{path} is {_short(value)}, which cannot be made into JSON: {error}"
    else:
        if plain is not value:
            yield from _faults(plain, path, default, depth - 1)


def _member(path: str, key: object) -> str:
    name = str(key)
    return f"{path}.{name}" if name.isidentifier() else f"{path}[{name!r}]"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def _article(value: object) -> str:
    name = type(value).__qualname__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


def _remedy(value: object) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return "return bytes alone or in Contents, or encode them as base64 text"
    if hasattr(value, "__await__"):
        return "await it, or write the handler as `async def`"
    if isinstance(value, BaseException) or (isinstance(value, type) and issubclass(value, BaseException)):
        return "raise it instead"
    if hasattr(value, "__anext__"):
        return "write the handler itself as `async def` with `yield`, or gather it"
    if hasattr(value, "read"):
        return "return what it contains: its read()"
    if hasattr(value, "__next__"):
        return "return list(…) of it, or write the handler itself with `yield`"
    if callable(value):
        return "call it"
    if hasattr(value, "status_code") and hasattr(value, "content"):
        return "return its .text, .content or .json()"
    return "convert it, or give the server an encoder="
