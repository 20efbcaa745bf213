"""The one text of a value in a URI: what a handler's annotation reads back as the same value.

Equal values have equal texts, and the compiled part refuses other texts. So a rule about a URI, a subscription and a
cached result hold for every request for the same value.
"""

import os
from collections.abc import Mapping, Set
from enum import Enum
from typing import Any

from . import checks

__all__ = ["texts", "to_text"]

_DIGITS = 400
"""The longest text of a `Decimal`: one of few digits may stand for a number of millions."""


def texts(value: Any) -> Any:
    """The text of a variable's value; a list of texts for a collection, a dict of them for a mapping.

    Raises:
        TypeError: a value has no text of its own.
        ValueError: it is a number that is not finite.
    """
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {to_text(key): to_text(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_text(item) for item in value]
    if isinstance(value, Set):
        return [to_text(item) for item in _ordered(value)]
    return to_text(value)


def to_text(value: Any) -> str:
    """The text of one value.

    Raises:
        TypeError: it has no text of its own.
        ValueError: it is a number that is not finite.
    """
    if type(value) is str:
        return value
    if isinstance(value, Enum):
        return to_text(value.value)
    if hasattr(value, "dtype") and hasattr(value, "item") and not getattr(value, "shape", ()):  # numpy
        return to_text(value.item())
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return number(value)
    return _other(value)


def number(value: float) -> str:
    """The shortest text that reads back as this number, as JavaScript writes it (RFC 8785).

    Raises:
        ValueError: it is not finite.
    """
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"{value} is no value of a variable: it is not finite")
    if value == 0:
        return "0"
    sign, value = ("-", -value) if value < 0 else ("", value)
    mantissa, _, exponent = float.__repr__(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if digits[1:] else ""
    return f"{sign}{digits[0]}{rest}e{point - 1:+d}"


def duration(value: Any) -> str:
    """A `timedelta` as an ISO 8601 duration."""
    sign, value = ("-", -value) if value.days < 0 else ("", value)
    minutes, seconds = divmod(value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{value.microseconds:06d}".rstrip("0") if value.microseconds else ""
    days = f"{value.days}D" if value.days else ""
    parts = f"{hours}H" * bool(hours) + f"{minutes}M" * bool(minutes)
    parts += f"{seconds}{fraction}S" if seconds or fraction else ""
    return f"{sign}P{days}T{parts}" if parts else f"{sign}P{days or 'T0S'}"


def _ordered(values: Set[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=to_text)


def _other(value: Any) -> str:
    """The text of a value of another type. Types are recognised late, so that importing the package is fast."""
    import datetime
    import decimal

    if isinstance(value, datetime.datetime | datetime.time):
        return _time(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return duration(value)
    if isinstance(value, decimal.Decimal):
        return _decimal(value)
    if hasattr(value, "get_secret_value"):
        return to_text(value.get_secret_value())
    path = os.fspath(value) if hasattr(value, "__fspath__") else None
    if isinstance(path, str):
        return path
    cls: Any = type(value)
    # A text made by `object.__str__` shows an address, or what the object is made of.
    is_text = cls.__str__ is not object.__str__ and not hasattr(cls, "model_dump")
    if is_text and not isinstance(value, bytes | bytearray | memoryview | BaseException | type):
        return str(value)
    raise TypeError(
        f"{checks.shown(value)} has no text of its own, so it is no value of a variable; use str(…) of a part"
    )


def _time(value: Any) -> str:
    import datetime

    offset = value.utcoffset()
    zone = "" if offset is None else "Z"
    value = value.replace(tzinfo=None)
    if offset and isinstance(value, datetime.datetime):
        value -= offset
    elif offset:
        value = (datetime.datetime.combine(datetime.date(2000, 1, 2), value) - offset).time()
    text: str = value.isoformat()
    return (text.rstrip("0") if "." in text else text) + zone


def _decimal(value: Any) -> str:
    if not value.is_finite():
        raise ValueError(f"{value} is no value of a variable: it is not finite")
    if not value:
        return "0"
    if abs(value.adjusted()) > _DIGITS or len(value.as_tuple().digits) > _DIGITS:
        raise ValueError(f"{checks.shown(value)} is no value of a variable: it has more than {_DIGITS} digits")
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
