"""What a handler may return besides `str` and bytes, and how the rest becomes JSON."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from .errors import AskFailed, McpError

__all__ = [
    "CacheHint",
    "Completion",
    "Contents",
    "Elicit",
    "ElicitUrl",
    "InputRequired",
    "InputResponse",
    "ListPage",
    "ListRoots",
    "MethodResult",
    "ReadResult",
    "Sample",
]

Buffer: TypeAlias = bytes | bytearray | memoryview
CacheScope: TypeAlias = Literal["public", "private"]
Entry: TypeAlias = tuple[str | None, str | None, object, str | None]
"""URI, media type, text or buffer, `_meta`: one of the contents, as the core takes it."""


class CacheHint(NamedTuple):
    """How long a result may be kept, in milliseconds, and by whom (revision 2026-07-28)."""

    ttl_ms: int = 0
    cache_scope: CacheScope = "private"


class Contents:
    """One of the contents of a resource: a text, bytes, or a value that becomes JSON.

    Args:
        body: `str`, any bytes-like object, or what `json` can write.
        uri: its own URI, if it is not the one that was asked for.
        mime_type: its media type; `None` is the resource's own.
        meta: members of `_meta`.
    """

    __slots__ = ("body", "meta", "mime_type", "uri")

    def __init__(
        self,
        body: object,
        *,
        uri: str | None = None,
        mime_type: str | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> None:
        self.body = body
        self.uri = uri
        self.mime_type = mime_type
        self.meta = meta

    def __repr__(self) -> str:
        return f"Contents({self.body!r}, uri={self.uri!r}, mime_type={self.mime_type!r}, meta={self.meta!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Contents):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]


class ReadResult:
    """Contents with a caching hint of their own; else the resource's counts."""

    __slots__ = ("cache", "contents")

    def __init__(
        self,
        contents: Contents | Iterable[Contents],
        *,
        ttl_ms: int = 0,
        cache_scope: CacheScope = "private",
    ) -> None:
        self.contents = [contents] if isinstance(contents, Contents) else list(contents)
        self.cache = CacheHint(ttl_ms, cache_scope)


class Completion:
    """Values for a variable, best first. `total` and `has_more` are worked out from `values` if they are not given."""

    __slots__ = ("has_more", "total", "values")

    def __init__(self, values: Iterable[str], *, total: int | None = None, has_more: bool | None = None) -> None:
        self.values = list(values)
        self.total = total
        self.has_more = has_more


class ListPage:
    """A page of a `.list` callback that takes a cursor; `next` is where the next page begins, `None` at the end."""

    __slots__ = ("items", "next")

    def __init__(self, items: Iterable[Any], next: str | None = None) -> None:
        self.items = list(items)
        self.next = next


class MethodResult:
    """The result of a foreign method with `_meta`, or with a type other than `complete`."""

    __slots__ = ("members", "meta", "result_type")

    def __init__(
        self,
        members: Mapping[str, object],
        *,
        result_type: str | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> None:
        self.members = members
        self.result_type = result_type
        self.meta = meta


class Elicit:
    """A form for the user. `schema` is a flat JSON schema; the answer is checked against it."""

    __slots__ = ("message", "schema")

    def __init__(self, message: str, schema: Mapping[str, object]) -> None:
        self.message = message
        self.schema = schema


class ElicitUrl:
    """A page for the user to visit; its URL carries nothing about them."""

    __slots__ = ("message", "url")

    def __init__(self, message: str, url: str) -> None:
        self.message = message
        self.url = url


class Sample:
    """A completion by the client's model: the params of the request."""

    __slots__ = ("params",)

    def __init__(self, params: Mapping[str, object]) -> None:
        self.params = params


class ListRoots:
    """The client's roots."""

    __slots__ = ()


InputRequest: TypeAlias = Elicit | ElicitUrl | Sample | ListRoots


class InputRequired(McpError):
    """What the client must give before the read can be answered (revision 2026-07-28). Returned or raised.

    Args:
        requests: what to ask; the client's answers come back as `ctx.inputs` under the same keys.
        state: any JSON value; it comes back as `ctx.state`, sealed on its way through the client.
    """

    kind = "input_required"

    def __init__(self, requests: Mapping[str, InputRequest] | None = None, *, state: object = None) -> None:
        super().__init__("input from the client is required")
        self.requests = dict(requests or {})
        self.state = state


class InputResponse:
    """The client's answer to one request: of a form, `action` is accept, decline or cancel."""

    __slots__ = ("value",)

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value

    @property
    def action(self) -> str | None:
        """What the user did, if they were asked."""
        return self.value.get("action")

    @property
    def content(self) -> dict[str, Any]:
        """What the user filled in; empty unless they accepted a form."""
        return cast("dict[str, Any]", self.value.get("content") or {})


def to_json(value: object) -> str:
    """JSON text of a value: what `json` writes, dataclasses, pydantic models, enums, dates, UUIDs and sets."""
    dump = getattr(value, "model_dump_json", None)
    return cast(str, dump()) if dump is not None else _encoder()(value)


@functools.cache
def _encoder() -> Callable[[object], str]:
    import json  # not every server needs it, and each is to start quickly

    return json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_default).encode


def _default(value: object) -> object:
    cls = type(value)
    if hasattr(cls, "model_dump"):
        return cast(Any, value).model_dump(mode="json")
    if hasattr(cls, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in cls.__dataclass_fields__}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return list(value)
    if hasattr(cls, "isoformat"):
        return cast(Any, value).isoformat()
    if hasattr(cls, "__members__"):
        return cast(Any, value).value
    if cls.__module__ == "uuid":
        return str(value)
    raise TypeError(f"{cls.__qualname__} has no JSON form")


# What the core asks for; each returns plain tuples.


def read(value: object, json_type: str | None) -> tuple[list[Entry], CacheHint | None]:
    """The contents that a handler returned, other than a text or bytes alone. `json_type` is the media type of JSON."""
    if isinstance(value, ReadResult):
        return [_entry(contents, json_type) for contents in value.contents], value.cache
    if isinstance(value, Contents):
        return [_entry(value, json_type)], None
    if isinstance(value, list | tuple) and value and all(isinstance(item, Contents) for item in value):
        return [_entry(contents, json_type) for contents in value], None
    if value is None:
        raise TypeError("the handler returned None; raise ResourceNotFound if there is no such resource")
    return [(None, json_type, _json_document(value), None)], None


def _entry(contents: Contents, json_type: str | None) -> Entry:
    body, mime_type = contents.body, contents.mime_type
    if not isinstance(body, str) and not _is_buffer(body):
        body, mime_type = _json_document(body), mime_type or json_type
    return contents.uri, mime_type, body, None if contents.meta is None else to_json(contents.meta)


def _is_buffer(value: Any) -> bool:
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True


def _json_document(value: object) -> str:
    cls = type(value)
    documents = (dict, list, tuple, Mapping)
    if isinstance(value, documents) or hasattr(cls, "model_dump_json") or hasattr(cls, "__dataclass_fields__"):
        return to_json(value)
    raise TypeError(
        f"the handler returned {cls.__qualname__}; it may return str, bytes, a dict, list, dataclass or pydantic"
        " model, Contents, or be a generator of chunks"
    )


def input_parts(required: InputRequired) -> tuple[list[tuple[str, str, str, str]], bytes | None]:
    """What is asked: key, sort and two texts each; and the state."""
    state = None if required.state is None else to_json(required.state).encode()
    return [(key, *_ask(request)) for key, request in required.requests.items()], state


def _ask(request: InputRequest) -> tuple[str, str, str]:
    if isinstance(request, Elicit):
        return "form", request.message, to_json(request.schema)
    if isinstance(request, ElicitUrl):
        return "url", request.message, request.url
    if isinstance(request, Sample):
        return "sample", to_json(request.params), ""
    if isinstance(request, ListRoots):
        return "roots", "", ""
    raise TypeError(f"{request!r} is not Elicit, ElicitUrl, Sample or ListRoots")


def completion(value: object) -> tuple[Sequence[str], int | None, bool | None]:
    """The values of a completion: a `Completion`, any iterable of texts, or `None`."""
    if isinstance(value, Completion):
        return value.values, value.total, value.has_more
    if isinstance(value, str):
        raise TypeError("a completer returns a list of texts, not one text")
    return list(cast(Iterable[str], value or ())), None, None


def page(value: object) -> tuple[list[Any], str | None]:
    """The items of a list and where its next page begins: a `ListPage`, or any iterable of resources."""
    if isinstance(value, ListPage):
        return value.items, value.next
    return list(cast(Iterable[Any], value or ())), None


def method(value: object) -> tuple[str, str | None, str | None]:
    """Members, type and `_meta` of a foreign result."""
    if isinstance(value, MethodResult):
        meta = None if value.meta is None else to_json(value.meta)
        return to_json(value.members), value.result_type, meta
    return to_json({} if value is None else value), None, None


def inputs(text: str | None) -> dict[str, InputResponse]:
    """The client's answers by key."""
    if text is None:
        return {}
    import json

    return {key: InputResponse(value) for key, value in json.loads(text).items()}


def replied(future: Any, result: str | None, error: str | None) -> None:
    """Gives a client's answer to the handler that waits for it: JSON text of a result or an error, or neither."""
    if future.done():
        return
    import json

    if result is not None:
        future.set_result(json.loads(result))
    elif error is not None:
        refused = json.loads(error)
        future.set_exception(AskFailed(f"the client refused: {refused['message']}", refused["code"]))
    else:
        future.set_exception(AskFailed("the client did not answer"))
