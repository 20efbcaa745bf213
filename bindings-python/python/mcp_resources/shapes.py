"""Converts results of the protocol and of other SDKs to contents.

These are a `dict` with `contents`, as on the wire; `ReadResourceResult`, `TextResourceContents` and
`BlobResourceContents` of the official SDK, and its `ReadResourceContents`; `ResourceResult` and `ResourceContent` of
FastMCP. Classes are recognised by their name and package, because importing them would slow down every server. An
object of any other class is data, whatever its attributes are called.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

__all__ = ["Part", "is_of_packages", "is_of_sdk", "parts"]

Part = tuple[str | None, str | None, object, Mapping[str, object] | None]
"""URI, media type, text or bytes, `_meta`."""

_RESULT = {"contents", "_meta", "meta", "ttlMs", "cacheScope", "resultType"}
_ENTRY = {"uri", "mimeType", "text", "blob", "_meta"}

_PACKAGES = ("mcp", "mcp_types", "fastmcp")
_RESULTS = ("ReadResourceResult", "ResourceResult")
_CONTENTS = ("TextResourceContents", "BlobResourceContents", "ReadResourceContents", "ResourceContent")


def parts(value: Any) -> list[Part] | None:
    """The contents of `value`; `None` if it has none of these shapes.

    Raises:
        ValueError: a blob is not base64.
    """
    if isinstance(value, dict):
        entries = value.get("contents")
        if isinstance(entries, list) and entries and value.keys() <= _RESULT and all(map(_is_on_wire, entries)):
            return [_from_wire(entry, at) for at, entry in enumerate(entries)]
        return None
    if is_of_packages(type(value), _CONTENTS):
        return [_from_object(value, 0)]
    entries = value.contents if is_of_packages(type(value), _RESULTS) else value
    if not isinstance(entries, list | tuple) or not entries:
        return None
    if not all(is_of_packages(type(entry), _CONTENTS) for entry in entries):
        return None
    return [_from_object(entry, at) for at, entry in enumerate(entries)]


def is_of_sdk(cls: type) -> bool:
    """Whether objects of this class are contents, or a result with contents, of another SDK."""
    return is_of_packages(cls, _RESULTS + _CONTENTS)


def is_of_packages(cls: type, names: tuple[str, ...]) -> bool:
    """Whether a class, or one that it is derived from, is one of these of another SDK."""
    return any(one.__name__ in names and one.__module__.split(".")[0] in _PACKAGES for one in cls.__mro__)


def _is_on_wire(entry: object) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("uri"), str) or not entry.keys() <= _ENTRY:
        return False
    return isinstance(entry.get("text"), str) != isinstance(entry.get("blob"), str)


def _from_wire(entry: dict[str, Any], at: int) -> Part:
    body = entry["text"] if "text" in entry else _decoded(entry["blob"], at)
    return entry["uri"], entry.get("mimeType"), body, entry.get("_meta")


def _from_object(entry: Any, at: int) -> Part:
    mime_type = getattr(entry, "mime_type", None) or getattr(entry, "mimeType", None)
    meta = getattr(entry, "meta", None)
    if hasattr(entry, "content"):
        return None, mime_type, entry.content, meta
    text = getattr(entry, "text", None)
    return str(entry.uri), mime_type, _decoded(entry.blob, at) if text is None else text, meta


def _decoded(blob: str, at: int) -> bytes:
    try:
        return base64.b64decode(blob, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"contents[{at}].blob is not base64; return bytes, which are encoded for you") from None
