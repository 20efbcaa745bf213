"""Converts results of the protocol and of other SDKs to contents. They are recognised by their members, not imported.

These are a `dict` with `contents`, as on the wire; `ReadResourceResult`, `TextResourceContents` and
`BlobResourceContents` of the official SDK, and its `ReadResourceContents`; `ResourceResult` and `ResourceContent` of
FastMCP.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

__all__ = ["Part", "parts"]

Part = tuple[str | None, str | None, object, Mapping[str, object] | None]
"""URI, media type, text or bytes, `_meta`."""

_RESULT = {"contents", "_meta", "meta", "ttlMs", "cacheScope", "resultType"}


def parts(value: object) -> list[Part] | None:
    """The contents of `value`; `None` if it has none of these shapes.

    Raises:
        ValueError: a blob is not base64.
    """
    if isinstance(value, dict):
        entries = value.get("contents")
        if isinstance(entries, list) and entries and value.keys() <= _RESULT and all(map(_is_on_wire, entries)):
            return [_from_wire(entry, at) for at, entry in enumerate(entries)]
        return None
    if _is_contents(value):
        return [_from_object(value, 0)]
    entries = value if isinstance(value, list | tuple) else getattr(value, "contents", None)
    if not isinstance(entries, list | tuple) or not entries or not all(map(_is_contents, entries)):
        return None
    return [_from_object(entry, at) for at, entry in enumerate(entries)]


def _is_on_wire(entry: object) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("uri"), str):
        return False
    return isinstance(entry.get("text"), str) != isinstance(entry.get("blob"), str)


def _is_contents(entry: object) -> bool:
    if isinstance(entry, dict | str | bytes) or entry is None or isinstance(entry, type):
        return False
    if hasattr(entry, "content") and hasattr(entry, "mime_type"):
        return isinstance(entry.content, str | bytes)
    if not hasattr(entry, "uri") or not (hasattr(entry, "mimeType") or hasattr(entry, "mime_type")):
        return False
    return isinstance(getattr(entry, "text", None), str) or isinstance(getattr(entry, "blob", None), str)


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
