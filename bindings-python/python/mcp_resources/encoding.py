"""JSON text of Python values: those of the module `json`, and other common types."""

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, cast

__all__ = ["Encoder", "NotJson", "is_bytes", "to_json"]

Encoder: TypeAlias = Callable[[Any], object]
"""Called with each value that has no JSON form. Returns one that has, or `NotImplemented` for the default."""

_DEEPEST = 100
"""The deepest nesting in which a fault is located."""


class NotJson(TypeError):
    """A value has no JSON form. The message names its place and its type."""


def to_json(value: object, encoder: Encoder | None = None, name: str = "the result") -> str:
    """Serializes a value as JSON. `name` is its name in error messages.

    In addition to the types of the module `json`: pydantic models, dataclasses, attrs classes, enums, sets, mappings,
    rows of `sqlite3`; `date`, `time` and `datetime` as ISO 8601; `UUID`, `Path` and `Decimal` as texts; arrays and
    numbers of numpy, `array`, `ctypes` and `memoryview`.

    Raises:
        NotJson: the value, or a value in it, has no JSON form.
    """
    dump = getattr(value, "model_dump_json", None)
    if dump is not None and encoder is None and not isinstance(value, type):
        return cast(str, dump())
    try:
        return _writer(encoder)(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotJson(_fault(value, encoder, name) or str(error)) from None


def is_bytes(value: object) -> bool:
    """Whether a value is served as bytes: `bytes`, or a buffer whose elements are bytes, as the core decides it.

    The buffer of a number, or of an array of numbers, is their machine representation, which no client expects.
    """
    if isinstance(value, bytes | bytearray):
        return True
    try:
        with memoryview(cast(Any, value)) as view:
            # A time of numpy has a buffer of eight bytes, but is a number by its own account.
            element, is_sequence = view.format.lstrip("@=<>!"), getattr(value, "ndim", view.ndim) > 0
    except (TypeError, ValueError, BufferError):
        return False
    return is_sequence and (element in ("B", "c") or (element == "b" and not hasattr(type(value), "tolist")))


@functools.lru_cache(maxsize=16)
def _writer(encoder: Encoder | None) -> Callable[[object], str]:
    import json  # imported late, so that a server starts fast

    default = _default if encoder is None else functools.partial(_hooked, encoder)
    return json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=default).encode


def _hooked(encoder: Encoder, value: object) -> object:
    encoded = encoder(value)
    return _default(value) if encoded is NotImplemented else encoded


def _default(value: object) -> object:
    cls: Any = type(value)
    thing: Any = value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return list(value)
    for knows, plain in _FORMS:
        if knows(cls):
            return plain(thing)
    raise NotJson(f"{cls.__qualname__} has no JSON form")


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
    (lambda cls: cls.__module__ in ("uuid", "decimal") or hasattr(cls, "__fspath__"), str),
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
    default = _default if encoder is None else functools.partial(_hooked, encoder)
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
            if not (key is None or isinstance(key, str | int | float)):
                yield f"{path} has the key {_short(key)}, a {type(key).__qualname__}; keys are texts, such as str(key)"
            yield from _faults(item, _member(path, key), default, depth - 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _faults(item, f"{path}[{index}]", default, depth - 1)
    else:
        yield from _other(value, path, default, depth)


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
