"""Converts results of tools and prompts in the shape of the protocol or of other SDKs.

These are a `dict` with `content`, as on the wire; `CallToolResult`, `TextContent` and the like, and `PromptMessage`
of the official SDK; `ToolResult`, `Image`, `Audio`, `File` and `Message` of FastMCP. Classes are recognised by name
and package, because importing them would slow down every server. An object of any other class is data.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

from .blocks import Audio, Block, Embedded, Image, PromptMessage, ResourceLink, Text, ToolResult
from .checks import shown
from .results import Contents
from .shapes import is_of_packages

__all__ = ["is_of_sdk", "message", "tool_result"]

_RESULTS = ("CallToolResult", "ToolResult")
_BLOCKS = ("TextContent", "ImageContent", "AudioContent", "ResourceLink", "EmbeddedResource")
_HELPERS = ("Image", "Audio", "File")
_MESSAGES = ("PromptMessage", "Message", "UserMessage", "AssistantMessage")
_MEMBERS = {"content", "structuredContent", "isError", "_meta", "resultType"}
_HELPS = ("to_image_content", "to_audio_content", "to_resource_content")


def is_of_sdk(cls: type) -> bool:
    """Whether objects of this class are results of a tool or prompt, or parts of one, of another SDK."""
    return is_of_packages(cls, (*_RESULTS, *_BLOCKS, *_HELPERS, *_MESSAGES))


def tool_result(value: Any) -> ToolResult | None:
    """The result of a tool; `None` if it has none of these shapes.

    Raises:
        TypeError: it has such a shape, and a member that cannot be sent.
    """
    if isinstance(value, dict):
        return _from_wire(value)
    if is_of_packages(type(value), _RESULTS):
        structured = getattr(value, "structured_content", None)
        given = {} if structured is None else {"structured": structured}
        is_error = getattr(value, "is_error", None) or getattr(value, "isError", None) or False
        blocks = [_block(item) for item in value.content]
        return ToolResult(blocks, is_error=is_error, meta=getattr(value, "meta", None), **given)
    items = value if isinstance(value, list | tuple) else [value]
    kinds = [kind for kind in {type(item) for item in items} if is_of_packages(kind, _BLOCKS + _HELPERS)]
    if not kinds:
        return None
    return ToolResult([_block(item) if type(item) in kinds else item for item in items])


def message(value: Any) -> PromptMessage | None:
    """The message of a prompt; `None` if it has none of these shapes."""
    if is_of_packages(type(value), _MESSAGES):
        value = _plain(value)
    if not isinstance(value, dict) or value.keys() != {"role", "content"}:
        return None
    content = value["content"]
    return PromptMessage(content if isinstance(content, str) else _of_wire(content), value["role"])


def _from_wire(value: dict[str, Any]) -> ToolResult | None:
    content = value.get("content")
    if not isinstance(content, list) or not content or not value.keys() <= _MEMBERS:
        return None
    if not all(isinstance(block, dict) and block.get("type") in _MADE for block in content):
        return None
    given = {"structured": value["structuredContent"]} if value.get("structuredContent") is not None else {}
    blocks = [_of_wire(block) for block in content]
    return ToolResult(blocks, is_error=value.get("isError") is True, meta=value.get("_meta"), **given)


def _block(value: Any) -> Block:
    for name in _HELPS:
        if hasattr(value, name):
            return _of_wire(_plain(getattr(value, name)()))
    return _of_wire(_plain(value))


def _plain(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _of_wire(block: Mapping[str, Any]) -> Block:
    kind = block.get("type")
    if kind not in _MADE:
        raise TypeError(f"a block has the type {shown(kind)}, expected one of {', '.join(_MADE)}")
    given = block.get("annotations") or {}
    words = {"audience": "audience", "priority": "priority", "lastModified": "last_modified"}
    options = {words[name]: hint for name, hint in given.items() if name in words}
    try:
        return _MADE[kind](block, options | ({"meta": block["_meta"]} if block.get("_meta") else {}))
    except KeyError as missing:
        raise TypeError(f"a block of the type {kind!r} has no {missing.args[0]!r}") from None


def _link(block: Mapping[str, Any], options: dict[str, Any]) -> ResourceLink:
    words = {"name": "name", "title": "title", "description": "description", "mimeType": "mime_type", "size": "size"}
    details = {words[name]: value for name, value in block.items() if name in words}
    return ResourceLink(block["uri"], **details, **options)


def _embedded(block: Mapping[str, Any], options: dict[str, Any]) -> Embedded:
    own = block["resource"]
    body = own["text"] if "text" in own else _decoded(own["blob"])
    return Embedded(Contents(body, uri=own["uri"], mime_type=own.get("mimeType"), meta=own.get("_meta")), **options)


def _decoded(data: Any) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise TypeError(f"the bytes of a block are {shown(data)}, which is not base64") from None


_MADE: dict[Any, Callable[[Mapping[str, Any], dict[str, Any]], Block]] = {
    "text": lambda block, options: Text(block["text"], **options),
    "image": lambda block, options: Image(_decoded(block["data"]), block["mimeType"], **options),
    "audio": lambda block, options: Audio(_decoded(block["data"]), block["mimeType"], **options),
    "resource_link": _link,
    "resource": _embedded,
}
