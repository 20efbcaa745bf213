"""The results that a tool or prompt can return besides texts and JSON values; and their conversion for the core."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from ._core import Resource
from .checks import shown
from .encoding import Encoder, is_bytes, to_json
from .results import Buffer, Completion, Contents, InputRequired, MethodResult, ReadResult

__all__ = ["Audio", "Embedded", "Image", "PromptMessage", "PromptResult", "ResourceLink", "Text", "ToolResult"]

Audience: TypeAlias = Iterable[Literal["user", "assistant"]]
Hints: TypeAlias = dict[str, object]
BlockParts: TypeAlias = tuple[str, object, str | None, str | None, str | None, str | None, Hints | None]
"""Kind, body, media type, URI, `_meta` of contents, `_meta` of the block, and hints."""


class _Block:
    """One block of a result. The hints are those of a resource."""

    __slots__ = ("audience", "last_modified", "meta", "priority")

    def __init__(
        self,
        *,
        audience: Audience | None = None,
        priority: float | None = None,
        last_modified: Any = None,
        meta: Mapping[str, object] | None = None,
    ) -> None:
        self.audience = audience
        self.priority = priority
        self.last_modified = last_modified
        self.meta = meta
        if meta is not None and not isinstance(meta, Mapping):
            raise TypeError(f"meta is {shown(meta)}, expected a dict")

    def _parts(self) -> BlockParts:
        raise NotImplementedError

    def _made(
        self, kind: str, body: object, contents: Contents | None = None, mime_type: str | None = None
    ) -> BlockParts:
        uri = inner = None
        if contents is not None:
            uri, mime_type = contents.uri, contents.mime_type
            inner = None if contents.meta is None else to_json(contents.meta, None, "meta")
        given = {"audience": self.audience, "priority": self.priority, "last_modified": self.last_modified}
        hints = {name: value for name, value in given.items() if value is not None}
        meta = None if self.meta is None else to_json(self.meta, None, "meta")
        return kind, body, mime_type, uri, inner, meta, hints or None


class Text(_Block):
    """A text, for a list of blocks or with hints. A text alone needs no `Text`.

    Args:
        text: the text.
        hints: `audience`, `priority`, `last_modified` and `meta`, as of a resource.

    Raises:
        TypeError: `text` is no text.
    """

    __slots__ = ("text",)

    def __init__(self, text: str, **hints: Any) -> None:
        super().__init__(**hints)
        if not isinstance(text, str):
            raise TypeError(f"Text takes a text, got {shown(text)}; write Text(str(…))")
        self.text = text

    def __repr__(self) -> str:
        return f"Text({self.text!r})"

    def _parts(self) -> BlockParts:
        return self._made("text", self.text)


class _Media(_Block):
    """Bytes with a media type."""

    __slots__ = ("data", "mime_type")

    def __init__(self, data: Buffer, mime_type: str, **hints: Any) -> None:
        super().__init__(**hints)
        name = type(self).__name__
        if not is_bytes(data):
            raise TypeError(f"{name} takes bytes, got {shown(data)}; read a file with Path(…).read_bytes()")
        if not isinstance(mime_type, str):
            raise TypeError(f"mime_type is {shown(mime_type)}, expected a media type, such as {self._example!r}")
        self.data = data
        self.mime_type = mime_type

    _example = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({shown(self.data)}, {self.mime_type!r})"

    def _parts(self) -> BlockParts:
        return self._made(type(self).__name__.lower(), self.data, None, self.mime_type)


class Image(_Media):
    """An image.

    Args:
        data: the bytes of its file.
        mime_type: the media type. Default `image/png`.
        hints: `audience`, `priority`, `last_modified` and `meta`, as of a resource.

    Raises:
        TypeError: `data` is not bytes.
    """

    __slots__ = ()
    _example = "image/png"

    def __init__(self, data: Buffer, mime_type: str = "image/png", **hints: Any) -> None:
        super().__init__(data, mime_type, **hints)


class Audio(_Media):
    """A sound. Clients of revision 2024-11-05 get a text that says so.

    Args:
        data: the bytes of its file.
        mime_type: the media type. Default `audio/wav`.
        hints: `audience`, `priority`, `last_modified` and `meta`, as of a resource.

    Raises:
        TypeError: `data` is not bytes.
    """

    __slots__ = ()
    _example = "audio/wav"

    def __init__(self, data: Buffer, mime_type: str = "audio/wav", **hints: Any) -> None:
        super().__init__(data, mime_type, **hints)


class ResourceLink(_Block):
    """A link to a resource, which the client may read. `ResourceHandler.link` makes one to a resource of this server.

    Clients before revision 2025-06-18 get the URI with its name and description as a text.

    Args:
        resource: the resource, or its URI.
        details: those of a `Resource`, if a URI is given.

    Raises:
        TypeError: a detail does not exist, or its value has the wrong type.
    """

    __slots__ = ("resource",)

    def __init__(self, resource: Resource | str, **details: Any) -> None:
        super().__init__()
        if isinstance(resource, Resource) and details:
            raise TypeError(f"{next(iter(details))} belongs to the Resource: Resource({resource.uri!r}, …)")
        if not isinstance(resource, Resource | str):
            raise TypeError(f"ResourceLink takes a Resource or a URI, got {shown(resource)}")
        self.resource = resource if isinstance(resource, Resource) else Resource(resource, **details)

    @property
    def uri(self) -> str:
        """The URI of the resource."""
        return self.resource.uri

    def __repr__(self) -> str:
        return f"ResourceLink({self.resource!r})"

    def _parts(self) -> BlockParts:
        return self._made("link", self.resource)


class Embedded(_Block):
    """The contents of a resource, inside the result.

    Args:
        uri: the URI of the resource.
        body: a text, bytes, or a value that is serialized as JSON; or `Contents`.
        mime_type: the media type. Default: not stated; for a JSON value `application/json`.
        hints: `audience`, `priority`, `last_modified` and `meta`, as of a resource.

    Raises:
        TypeError: `uri` is no text.
    """

    __slots__ = ("contents", "uri")

    def __init__(self, uri: str, body: object, *, mime_type: str | None = None, **hints: Any) -> None:
        super().__init__(**hints)
        if not isinstance(uri, str):
            raise TypeError(f'Embedded takes a URI first, got {shown(uri)}; write Embedded("note://today", …)')
        self.uri = uri
        self.contents = body if isinstance(body, Contents) else Contents(body, mime_type=mime_type)

    def __repr__(self) -> str:
        return f"Embedded({self.uri!r}, {shown(self.contents.body)})"

    def _parts(self) -> BlockParts:
        own = self.contents
        body, mime_type = own.body, own.mime_type
        if not isinstance(body, str) and not is_bytes(body):
            body, mime_type = to_json(body), mime_type or "application/json"
        return self._made("resource", body, Contents(body, uri=self.uri, mime_type=mime_type, meta=own.meta))


Block: TypeAlias = Text | Image | Audio | ResourceLink | Embedded


class ToolResult:
    """The whole result of a tool.

    Args:
        content: the blocks: a text, a block, or a list of blocks. Default: none.
        structured: the structured result, any JSON value. Default: none.
        is_error: whether the tool failed in a way that the model can mend. Default `False`.
        meta: members of `_meta`. Default: none.

    Raises:
        TypeError: `content` is something else.
    """

    __slots__ = ("content", "is_error", "meta", "structured")

    def __init__(
        self,
        content: "str | Block | Iterable[Block]" = (),
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
        (self.content,) = _several("PromptMessage", content if isinstance(content, str | _Block) else [content])
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


def _several(name: str, given: Any) -> list[_Block]:
    """The blocks of a text, a block or an iterable of blocks."""
    if isinstance(given, str):
        return [Text(given)]
    if isinstance(given, _Block):
        return [given]
    if is_bytes(given) or isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"{name} takes a text or blocks such as Image, got {shown(given)}")
    return [_one(item, f"item {at} of {name}") for at, item in enumerate(given)]


def _one(item: object, where: str) -> _Block:
    if isinstance(item, _Block):
        return item
    fix = f"Text({item!r:.80})" if isinstance(item, str) else "Text, Image, Audio, ResourceLink or Embedded"
    raise TypeError(f"{where} is {shown(item)}, expected a block: {fix}")


def _messages(given: Any) -> list[PromptMessage]:
    is_one = isinstance(given, str | PromptMessage | _Block)
    if not is_one and (is_bytes(given) or isinstance(given, Mapping) or not isinstance(given, Iterable)):
        raise TypeError(f"the prompt returned {shown(given)}, expected a text, PromptMessage(…), or a list of them")
    items: list[Any] = [given] if is_one else list(given)
    return [item if isinstance(item, PromptMessage) else PromptMessage(item) for item in items]


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
    meta = None if result.meta is None else to_json(result.meta, None, "meta")
    return [(message.role, message.content._parts()) for message in result.messages], result.description, meta


def _tool(value: object, shape: Shape) -> object:
    if isinstance(value, ToolResult):
        structured = None if value.structured is ... else to_json(value.structured, shape.encoder)
        meta = None if value.meta is None else to_json(value.meta, None, "meta")
        return [block._parts() for block in value.content], structured, value.is_error, meta
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
            " Embedded(uri, …)"
        )
    text = to_json(value if shape.dump is None else shape.dump(value), shape.encoder)
    plain = value if isinstance(value, str) else text
    return [Text(plain)._parts()], text, False, None
