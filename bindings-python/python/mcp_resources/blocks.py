"""The results that a tool or prompt can return besides texts and JSON values; and their conversion for the core."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack

from ._core import Resource, unexpected
from .checks import shown
from .encoding import Encoder, is_bytes, to_json
from .results import Buffer, Completion, Contents, InputRequired, MethodResult, ReadResult

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["Audio", "Embedded", "Image", "PromptMessage", "PromptResult", "ResourceLink", "Text", "ToolResult"]

Hints: TypeAlias = Mapping[str, object]
BlockParts: TypeAlias = tuple[str, object, str | None, str | None, str | None, str | None, Hints | None]
"""Kind, body, media type, URI, `_meta` of contents, `_meta` of the block, and hints."""


class BlockOptions(TypedDict, total=False):
    """Hints about a block of content, for clients."""

    audience: Iterable[Literal["user", "assistant"]] | None
    """Who the block is meant for: `user`, `assistant` or both. Default: not stated."""
    priority: float | None
    """The importance, from 0 (optional) to 1 (required). Default: not stated."""
    last_modified: "datetime | str | None"
    """The time of the last change: a `datetime` with a time zone, or ISO 8601 text. Default: not stated."""
    meta: Mapping[str, object] | None
    """Members of `_meta`. Default: none."""


class _Block:
    """One block of a result."""

    __slots__ = ()

    def _parts(self) -> BlockParts:
        raise NotImplementedError


class Text(_Block):
    """A text with hints. A text without hints is a `str`.

    Args:
        text: the text.
        options: see `BlockOptions`.

    Raises:
        TypeError: an argument has the wrong type.
    """

    __slots__ = ("options", "text")

    def __init__(self, text: str, **options: Unpack[BlockOptions]) -> None:
        if not isinstance(text, str):
            raise TypeError(f"Text takes a text, got {shown(text)}; write Text(str(…))")
        self.text = text
        self.options = _checked("Text", options)

    def __repr__(self) -> str:
        return f"Text({self.text!r})"

    def _parts(self) -> BlockParts:
        return _made("text", self.text, self.options)


class Image(_Block):
    """An image.

    Args:
        bytes: the bytes of its file.
        mime_type: the media type. Default `image/png`.
        options: see `BlockOptions`.

    Raises:
        TypeError: an argument has the wrong type.
    """

    __slots__ = ("bytes", "mime_type", "options")

    def __init__(self, bytes: Buffer, mime_type: str = "image/png", **options: Unpack[BlockOptions]) -> None:
        _check_media("Image", bytes, mime_type, "image/png")
        self.bytes = bytes
        self.mime_type = mime_type
        self.options = _checked("Image", options)

    def __repr__(self) -> str:
        return f"Image({shown(self.bytes)}, {self.mime_type!r})"

    def _parts(self) -> BlockParts:
        return _made("image", self.bytes, self.options, self.mime_type)


class Audio(_Block):
    """A sound. Clients of revision 2024-11-05 get a text that says so instead.

    Args:
        bytes: the bytes of its file.
        mime_type: the media type. Default `audio/wav`.
        options: see `BlockOptions`.

    Raises:
        TypeError: an argument has the wrong type.
    """

    __slots__ = ("bytes", "mime_type", "options")

    def __init__(self, bytes: Buffer, mime_type: str = "audio/wav", **options: Unpack[BlockOptions]) -> None:
        _check_media("Audio", bytes, mime_type, "audio/wav")
        self.bytes = bytes
        self.mime_type = mime_type
        self.options = _checked("Audio", options)

    def __repr__(self) -> str:
        return f"Audio({shown(self.bytes)}, {self.mime_type!r})"

    def _parts(self) -> BlockParts:
        return _made("audio", self.bytes, self.options, self.mime_type)


class ResourceLink(_Block):
    """A link to a resource that the client may read. `ResourceHandler.link` makes one to a resource of this server.

    Clients before revision 2025-06-18 get the URI with its name and description as a text.

    Args:
        resource: the URI, or a `Resource`.
        details: those of a `Resource`, if a URI is given.

    Raises:
        TypeError: a detail does not exist, or its value has the wrong type.
    """

    __slots__ = ("resource",)

    def __init__(self, resource: Resource | str, **details: Any) -> None:
        if isinstance(resource, Resource) and details:
            raise TypeError(f"{next(iter(details))} belongs to the Resource: Resource({resource.uri!r}, …)")
        if not isinstance(resource, Resource | str):
            raise TypeError(f"ResourceLink takes a URI or a Resource, got {shown(resource)}")
        self.resource = resource if isinstance(resource, Resource) else Resource(resource, **details)

    @property
    def uri(self) -> str:
        """The URI of the resource."""
        return self.resource.uri

    def __repr__(self) -> str:
        return f"ResourceLink({self.resource!r})"

    def _parts(self) -> BlockParts:
        return _made("link", self.resource, {})


class Embedded(_Block):
    """The contents of a resource, as part of the result.

    Args:
        contents: the contents, with their `uri`.
        options: see `BlockOptions`.

    Raises:
        TypeError: the contents have no URI, or an argument has the wrong type.
    """

    __slots__ = ("contents", "options")

    def __init__(self, contents: Contents, **options: Unpack[BlockOptions]) -> None:
        if not isinstance(contents, Contents) or not isinstance(contents.uri, str):
            given = "Contents without a uri" if isinstance(contents, Contents) else shown(contents)
            raise TypeError(f'Embedded takes Contents, got {given}; write Embedded(Contents(…, uri="note://today"))')
        self.contents = contents
        self.options = _checked("Embedded", options)

    def __repr__(self) -> str:
        return f"Embedded({self.contents!r})"

    def _parts(self) -> BlockParts:
        own = self.contents
        if isinstance(own.body, str) or is_bytes(own.body):
            return _made("resource", own.body, self.options, own.mime_type, own)
        return _made("resource", to_json(own.body), self.options, own.mime_type or "application/json", own)


Block: TypeAlias = Text | Image | Audio | ResourceLink | Embedded


class ToolResult:
    """The whole result of a tool.

    Args:
        content: a text, a block, or a list of both. Default: none.
        structured: the structured result, any JSON value. Default: none.
        is_error: whether the tool failed in a way that the model can mend. Default `False`.
        meta: members of `_meta`. Default: none.

    Raises:
        TypeError: `content` is something else.
    """

    __slots__ = ("content", "is_error", "meta", "structured")

    def __init__(
        self,
        content: "str | Block | Iterable[str | Block]" = (),
        *,
        structured: object = ...,
        is_error: bool = False,
        meta: Mapping[str, object] | None = None,
    ) -> None:
        self.content = _several("ToolResult", content)
        self.structured = structured
        self.is_error = is_error
        self.meta = meta


class PromptMessage:
    """One message of a prompt.

    Args:
        content: a text, or a block.
        role: who says it: `user` or `assistant`. Default `user`.

    Raises:
        TypeError: `content` is something else.
    """

    __slots__ = ("content", "role")

    def __init__(self, content: "str | Block", role: Literal["user", "assistant"] = "user") -> None:
        self.content = _one(content, "the content of PromptMessage")
        if role not in ("user", "assistant"):
            raise TypeError(f"role is {shown(role)}, expected 'user' or 'assistant'")
        self.role = role


class PromptResult:
    """The whole result of a prompt.

    Args:
        messages: a text, a message, or a list of them.
        description: a description for people. Default: none.
        meta: members of `_meta`. Default: none.

    Raises:
        TypeError: `messages` is something else.
    """

    __slots__ = ("description", "messages", "meta")

    def __init__(
        self,
        messages: "str | Block | PromptMessage | Iterable[str | Block | PromptMessage]",
        *,
        description: str | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> None:
        self.messages = _messages(messages)
        self.description = description
        self.meta = meta


def _checked(name: str, options: BlockOptions) -> BlockOptions:
    """The options of a block. The core checks most of their values."""
    known = [*BlockOptions.__annotations__]
    for option in options:
        if option not in known:
            raise TypeError(f"{name}: {unexpected('option', option, known)}")
    meta = options.get("meta")
    if meta is not None and not isinstance(meta, Mapping):
        raise TypeError(f"meta is {shown(meta)}, expected a dict")
    return options


def _check_media(name: str, given: object, mime_type: object, example: str) -> None:
    if not is_bytes(given):
        raise TypeError(f"{name} takes bytes, got {shown(given)}; read a file with Path(…).read_bytes()")
    if not isinstance(mime_type, str):
        raise TypeError(f"mime_type is {shown(mime_type)}, expected a media type, such as {example!r}")


def _made(
    kind: str, body: object, options: Mapping[str, Any], mime_type: str | None = None, contents: Contents | None = None
) -> BlockParts:
    uri = None if contents is None else contents.uri
    inner = None if contents is None else _meta(contents.meta)
    hints = {name: value for name, value in options.items() if name != "meta" and value is not None}
    return kind, body, mime_type, uri, inner, _meta(options.get("meta")), hints or None


def _meta(given: Mapping[str, object] | None) -> str | None:
    """JSON text of `_meta`."""
    return None if given is None else to_json(given, None, "meta")


def _several(name: str, given: Any) -> list[_Block]:
    """The blocks of a text, a block or an iterable of both."""
    if isinstance(given, str | _Block):
        return [_one(given, name)]
    if is_bytes(given) or isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"{name} takes a text or blocks such as Image, got {shown(given)}")
    return [_one(item, f"item {at} of {name}") for at, item in enumerate(given)]


def _one(item: object, where: str) -> _Block:
    if isinstance(item, str):
        return Text(item)
    if isinstance(item, _Block):
        return item
    raise TypeError(f"{where} is {shown(item)}, expected a text, Image, Audio, ResourceLink or Embedded")


def _messages(given: Any) -> list[PromptMessage]:
    is_one = isinstance(given, str | PromptMessage | _Block) or _of_sdk(given) is not None
    if not is_one and (is_bytes(given) or isinstance(given, Mapping) or not isinstance(given, Iterable)):
        raise TypeError(f"the prompt returned {shown(given)}, expected a text, PromptMessage(…), or a list of them")
    items: list[Any] = [given] if is_one else list(given)
    return [item if isinstance(item, PromptMessage) else _of_sdk(item) or PromptMessage(item) for item in items]


def _of_sdk(item: object) -> PromptMessage | None:
    from .sdk_results import message

    return None if isinstance(item, str | _Block) else message(item)


# Called by the core.


class Shape:
    """How the result of a tool becomes JSON.

    Args:
        dump: makes plain JSON values of a result that is annotated with a type. `None` for other results.
        encoder: that of the server.
    """

    __slots__ = ("dump", "encoder")

    def __init__(self, dump: Any, encoder: Encoder | None) -> None:
        self.dump = dump
        self.encoder = encoder


_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (InputRequired, "input"),
    (MethodResult, "method"),
    (Completion, "completion"),
    ((Contents, ReadResult), "contents"),
)
_NO_SHAPE = Shape(None, None)


def result_parts(value: object, shape: Shape | None, is_tool: bool) -> tuple[str, object]:
    """The kind of a result of a tool or prompt, and its parts as plain tuples if it has any."""
    for types, kind in _KINDS:
        if isinstance(value, types):
            return kind, None
    if isinstance(value, list | tuple) and any(isinstance(item, Contents) for item in value):
        return "contents", None
    if isinstance(value, PromptResult | PromptMessage):
        return "prompt", _prompt(value)
    if isinstance(value, ToolResult) or is_tool:
        return "tool", _tool(value, shape or _NO_SHAPE)
    return "prompt", _prompt(value)


def _prompt(value: Any) -> object:
    result = value if isinstance(value, PromptResult) else PromptResult(value)
    messages = [(message.role, message.content._parts()) for message in result.messages]
    return messages, result.description, _meta(result.meta)


def _tool(value: object, shape: Shape) -> object:
    from .sdk_results import tool_result

    if shape.dump is None and not isinstance(value, str | ToolResult | _Block):
        value = tool_result(value) or value
    if isinstance(value, ToolResult):
        structured = None if value.structured is ... else to_json(value.structured, shape.encoder)
        return [block._parts() for block in value.content], structured, value.is_error, _meta(value.meta)
    if isinstance(value, _Block):
        return [value._parts()], None, False, None
    if isinstance(value, list | tuple) and any(isinstance(item, _Block) for item in value):
        return [_one(item, f"item {at} of the list")._parts() for at, item in enumerate(value)], None, False, None
    if shape.dump is None and isinstance(value, str):
        return [Text(value)._parts()], None, False, None
    if shape.dump is None and value is None:
        return [], None, False, None
    if is_bytes(value):
        raise TypeError(
            f"the tool returned {shown(value)}; bytes have no content of their own: return Image(…), Audio(…) or"
            " Embedded(…)"
        )
    text = to_json(value if shape.dump is None else shape.dump(value), shape.encoder)
    plain = value if isinstance(value, str) else text
    return [Text(plain)._parts()], text, False, None
