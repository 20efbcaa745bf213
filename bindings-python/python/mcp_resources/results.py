"""What a handler may return besides `str` and bytes, and how the rest becomes JSON."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from ._core import Resource, UriTemplate, unexpected
from .encoding import Encoder, to_json
from .errors import AskFailed, McpError
from .shapes import Part, parts

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
        self.contents = [contents] if isinstance(contents, Contents) else _all_contents(contents)
        if not isinstance(ttl_ms, int) or ttl_ms < 0:
            raise TypeError(f"ttl_ms is {ttl_ms!r}, expected a whole number from 0")
        self.cache = CacheHint(ttl_ms, cache_scope)


def _all_contents(given: Any) -> list[Contents]:
    """What a `ReadResult` is made of."""
    is_several = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)
    several: list[Any] = list(given) if is_several else [given]
    for item in several:
        if not isinstance(item, Contents):
            raise TypeError(f"ReadResult takes Contents, got {item!r:.80}; write ReadResult(Contents(…))")
    return several


def _several(name: str, given: Any) -> list[Any]:
    """The items of a list: one text is no list of its letters."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"{name} takes a list, got {given!r:.80}; write {name}([{given!r:.80}])")
    return list(given)


class Completion:
    """Values for a variable, best first. `total` and `has_more` are worked out from `values` if they are not given."""

    __slots__ = ("has_more", "total", "values")

    def __init__(self, values: Iterable[str], *, total: int | None = None, has_more: bool | None = None) -> None:
        self.values = _several("Completion", values)
        if total is not None and not (isinstance(total, int) and total >= 0):
            raise TypeError(f"total is {total!r}, expected a whole number from 0")
        self.total = total
        self.has_more = has_more


class ListPage:
    """A page of a `.list` callback that takes a cursor; `next` is where the next page begins, `None` at the end."""

    __slots__ = ("items", "next")

    def __init__(self, items: Iterable[Any], next: str | None = None) -> None:
        self.items = _several("ListPage", items)
        if next is not None and not isinstance(next, str):
            raise TypeError(f"next is {next!r}, expected a text: str({next!r})")
        self.next = next


class MethodResult:
    """The result of a custom method with `_meta`, or with a type other than `complete`."""

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


# What the core asks for; each returns plain tuples.


def read(value: object, json_type: str | None, encoder: Encoder | None = None) -> tuple[list[Entry], CacheHint | None]:
    """The contents that a handler returned, other than a text or bytes alone. `json_type` is the media type of JSON."""
    if isinstance(value, ReadResult):
        return [_entry(contents, json_type, encoder) for contents in value.contents], value.cache
    if isinstance(value, Contents):
        return [_entry(value, json_type, encoder)], None
    if isinstance(value, list | tuple) and any(isinstance(item, Contents) for item in value):
        return [_entry(_one_of(value, at), json_type, encoder) for at in range(len(value))], None
    if value is None:
        raise TypeError(
            "the handler returned None; return a text, bytes or JSON, or raise ResourceNotFoundError if there is no"
            " such resource"
        )
    foreign = parts(value)
    if foreign is not None:
        return [_foreign(part) for part in foreign], _foreign_hint(value)
    return [(None, json_type, to_json(value, encoder), None)], None


def _one_of(value: Sequence[object], at: int) -> Contents:
    item = value[at]
    if isinstance(item, Contents):
        return item
    raise TypeError(f"item {at} of the list is {item!r}, expected Contents as the others: Contents({item!r})")


def _entry(contents: Contents, json_type: str | None, encoder: Encoder | None) -> Entry:
    body, mime_type = contents.body, contents.mime_type
    for name, given in (("uri", contents.uri), ("mime_type", mime_type)):
        if given is not None and not isinstance(given, str):
            raise TypeError(f"{name} of the Contents is {given!r}, expected a text")
    if contents.meta is not None and not isinstance(contents.meta, Mapping):
        raise TypeError(f"meta of the Contents is {contents.meta!r}, expected a dict")
    if not isinstance(body, str) and not _is_buffer(body):
        body, mime_type = to_json(body, encoder), mime_type or json_type
    return contents.uri, mime_type, body, None if contents.meta is None else to_json(contents.meta, encoder)


def _foreign(part: Part) -> Entry:
    uri, mime_type, body, meta = part
    return uri, mime_type, body, None if meta is None else to_json(meta)


def _foreign_hint(value: object) -> CacheHint | None:
    if isinstance(value, dict) and "ttlMs" in value:
        return CacheHint(value["ttlMs"], value.get("cacheScope", "private"))
    return None


def _is_buffer(value: Any) -> bool:
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True


def input_parts(required: InputRequired) -> tuple[list[tuple[str, str, str, str]], bytes | None]:
    """The questions, each with its key, kind and two texts, and the state."""
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
        return _texts(value.values), value.total, value.has_more
    if isinstance(value, str):
        raise TypeError(f"the completer returned the text {value!r}, expected a list of texts: [{value!r}]")
    if value is not None and not isinstance(value, Iterable):
        raise TypeError(f"the completer returned {value!r}, expected a list of texts")
    return _texts([] if value is None else list(value)), None, None


def _texts(values: list[Any]) -> list[str]:
    for at, value in enumerate(values):
        if not isinstance(value, str):
            raise TypeError(f"value {at} of the completer is {value!r}, expected a text, such as str(…)")
    return values


def page(value: object, template: UriTemplate | None = None) -> tuple[list[Resource], str | None]:
    """The items of a list and where its next page begins: a `ListPage`, or any iterable of items.

    An item is a `Resource`, or the values of the template's variables: a `dict`, or one value for one variable.
    """
    if isinstance(value, ListPage):
        return _items(value.items, template), value.next
    if isinstance(value, str | bytes | Mapping | Resource):
        raise TypeError(f"the `.list` callback returned {value!r}, expected a list of it: [{value!r}]")
    if value is not None and not isinstance(value, Iterable):
        raise TypeError(f"the `.list` callback returned {value!r}, expected a list")
    return _items(value or (), template), None


def _items(items: Iterable[Any], template: UriTemplate | None) -> list[Resource]:
    return [item if isinstance(item, Resource) else _expanded(item, at, template) for at, item in enumerate(items)]


def _expanded(item: object, at: int, template: UriTemplate | None) -> Resource:
    names = [] if template is None else [*template.variables]
    if template is not None and isinstance(item, Mapping):
        try:
            return _of_values(template, item)
        except (TypeError, ValueError) as error:
            raise type(error)(f"item {at} of the list: {error}") from None
    if template is not None and len(names) == 1 and not isinstance(item, list | tuple | bytes) and item is not None:
        return _of_values(template, {names[0]: item})
    values = ", ".join(f"{name!r}: …" for name in names)
    raise TypeError(f"item {at} of the list is {item!r}, expected a Resource, or the values {{{values}}}")


def _of_values(template: UriTemplate, values: Mapping[str, object]) -> Resource:
    """The resource with these values, named after them. Lists and maps make no name: then it is the URI."""
    texts = [_text(values[name]) for name in template.variables if values.get(name) is not None]
    name = "/".join(texts) if all(isinstance(text, str) for text in texts) else ""
    return Resource(expand(template, values), name=name or None)


def expand(template: UriTemplate, values: Mapping[str, object]) -> str:
    """The URI with these values of the template's variables.

    Raises:
        TypeError: a variable is unknown, or a value is missing that every URI has.
    """
    known = template.variables
    for name in values:
        if name not in known:
            raise TypeError(unexpected("variable", name, [*known]))
    for name, variable in known.items():
        if variable.required and values.get(name) is None:
            raise TypeError(f"{template} needs a value for {name!r}")
    return template.expand({name: _text(value) for name, value in values.items()})


def _text(value: Any) -> Any:
    """A value as it stands in a URI."""
    if isinstance(value, Enum):
        return _text(value.value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return {str(key): _text(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_text(item) for item in value]
    if value is None or isinstance(value, str | bytes):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def method(value: object, encoder: Encoder | None = None) -> tuple[str, str | None, str | None]:
    """Members, type and `_meta` of a custom method's result."""
    if isinstance(value, MethodResult):
        meta = None if value.meta is None else to_json(value.meta, encoder)
        return to_json(value.members, encoder), value.result_type, meta
    return to_json({} if value is None else value, encoder), None, None


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
