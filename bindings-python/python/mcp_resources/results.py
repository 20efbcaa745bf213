"""The results that a handler can return besides `str`, bytes and JSON values; and their conversion for the core."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from ._core import Resource, UriTemplate, unexpected
from .encoding import Encoder, is_bytes, to_json
from .errors import AskFailedError, McpError
from .shapes import Part, parts
from .spelling import texts

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
"""One entry of contents as the core takes it: URI, media type, text or buffer, and `_meta`."""


class CacheHint(NamedTuple):
    """How long a result may be cached, and whether caches may share it (revision 2026-07-28).

    Args:
        ttl_ms: how long, in milliseconds. Default 0: not at all.
        cache_scope: `public` if the result is the same for all users, else `private`. Default `private`.
    """

    ttl_ms: int = 0
    cache_scope: CacheScope = "private"


class Contents:
    """One entry of the contents of a resource: a text, bytes, or a value that is serialized as JSON.

    Args:
        body: a `str`, a bytes-like object, or a JSON value.
        uri: the URI of this entry. Default: the URI that was read.
        mime_type: the media type of this entry. Default: that of the resource.
        meta: members of `_meta`. Default: none.
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
    """Contents with a caching hint that replaces the one of the resource.

    Args:
        contents: one or several `Contents`.
        ttl_ms: how long they may be cached, in milliseconds. Default 0: not at all.
        cache_scope: `public` if they are the same for all users, else `private`. Default `private`.

    Raises:
        TypeError: an argument has the wrong type.
    """

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
    """The contents of a `ReadResult` as a list."""
    is_several = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)
    several: list[Any] = list(given) if is_several else [given]
    for item in several:
        if not isinstance(item, Contents):
            raise TypeError(f"ReadResult takes Contents, got {item!r:.80}; write ReadResult(Contents(…))")
    return several


def _several(name: str, given: Any) -> list[Any]:
    """The items of an iterable. A text is refused: it would become a list of its characters."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"{name} takes a list, got {given!r:.80}; write {name}([{given!r:.80}])")
    return list(given)


class Completion:
    """Suggested values of a variable.

    Args:
        values: the values, best first.
        total: the number of all values, also of those that are not in `values`. Default: computed from `values`.
        has_more: whether there are more values. Default: computed from `values`.

    Raises:
        TypeError: `values` is a text or not iterable, or `total` is not a whole number from 0.
    """

    __slots__ = ("has_more", "total", "values")

    def __init__(self, values: Iterable[str], *, total: int | None = None, has_more: bool | None = None) -> None:
        self.values = _several("Completion", values)
        if total is not None and not (isinstance(total, int) and total >= 0):
            raise TypeError(f"total is {total!r}, expected a whole number from 0")
        self.total = total
        self.has_more = has_more


class ListPage:
    """One page of a `.list` callback that takes a cursor.

    Args:
        items: the items of this page.
        next: the cursor of the next page. Default: this is the last page.

    Raises:
        TypeError: `items` is a text or not iterable, or `next` is not a text.
    """

    __slots__ = ("items", "next")

    def __init__(self, items: Iterable[Any], next: str | None = None) -> None:
        self.items = _several("ListPage", items)
        if next is not None and not isinstance(next, str):
            raise TypeError(f"next is {next!r}, expected a text: str({next!r})")
        self.next = next


class MethodResult:
    """The result of a custom method, with `_meta` or with a result type.

    Args:
        members: the members of the result.
        result_type: its `resultType`. Default `complete`.
        meta: members of `_meta`. Default: none.
    """

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
    """Asks the user to fill in a form.

    Args:
        message: the text above the form.
        schema: a flat JSON schema of its fields. The answer is checked against it.
    """

    __slots__ = ("message", "schema")

    def __init__(self, message: str, schema: Mapping[str, object]) -> None:
        self.message = message
        self.schema = schema


class ElicitUrl:
    """Asks the user to open a web page.

    Args:
        message: the text for the user.
        url: the URL of the page. It must not contain personal data or secrets.
    """

    __slots__ = ("message", "url")

    def __init__(self, message: str, url: str) -> None:
        self.message = message
        self.url = url


class Sample:
    """Asks the client's model for a completion. `params` are those of `sampling/createMessage`."""

    __slots__ = ("params",)

    def __init__(self, params: Mapping[str, object]) -> None:
        self.params = params


class ListRoots:
    """Asks the client for its roots."""

    __slots__ = ()


InputRequest: TypeAlias = Elicit | ElicitUrl | Sample | ListRoots


class InputRequired(McpError):
    """Asks the client for input before the read is answered (revision 2026-07-28). Returned or raised by a handler.

    The client then repeats the read with its answers, and the handler is called again.

    Args:
        requests: the requests to the client, by keys of your choice. The answers are in `ctx.inputs` under these keys.
        state: any JSON value that the handler needs again, as `ctx.state`. The client gets it sealed. Default: none.

    Raises:
        TypeError: `requests` is not a dict.
    """

    kind = "input_required"

    def __init__(self, requests: Mapping[str, InputRequest] | None = None, *, state: object = None) -> None:
        if requests is not None and not isinstance(requests, Mapping):
            raise TypeError(f"InputRequired takes requests by keys, got {requests!r:.80}; write {{'answer': …}}")
        super().__init__("input from the client is required")
        self.requests = dict(requests or {})
        self.state = state


class InputResponse:
    """The client's answer to one request. `value` is the answer as it was received."""

    __slots__ = ("value",)

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value

    @property
    def action(self) -> str | None:
        """The user's reaction to a form or page: `accept`, `decline` or `cancel`; `None` for other requests."""
        return self.value.get("action")

    @property
    def content(self) -> dict[str, Any]:
        """The values that the user filled in; empty unless the user accepted a form."""
        return cast("dict[str, Any]", self.value.get("content") or {})


# Called by the core. Each returns plain tuples.


def read(value: object, json_type: str | None, encoder: Encoder | None = None) -> tuple[list[Entry], CacheHint | None]:
    """The contents of a result that is not a single text or bytes object. `json_type` is the media type of JSON."""
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


def object_json(value: object, name: str) -> str:
    """JSON text of the mapping that the option `name` has."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is {value!r:.80}, expected a dict")
    return to_json(value, None, name)


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
    if not isinstance(body, str) and not is_bytes(body):
        body, mime_type = to_json(body, encoder), mime_type or json_type
    return contents.uri, mime_type, body, None if contents.meta is None else to_json(contents.meta, encoder)


def _foreign(part: Part) -> Entry:
    uri, mime_type, body, meta = part
    return uri, mime_type, body, None if meta is None else to_json(meta)


def _foreign_hint(value: object) -> CacheHint | None:
    if isinstance(value, dict) and "ttlMs" in value:
        return CacheHint(value["ttlMs"], value.get("cacheScope", "private"))
    return None


def input_parts(required: InputRequired) -> tuple[list[tuple[str, str, str, str]], bytes | None]:
    """The requests, each as its key, its kind and two texts; and the state."""
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
    raise TypeError(f"a request to the client is {request!r}, expected an Elicit, ElicitUrl, Sample or ListRoots")


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
    """The items and the next cursor of a `.list` callback's result: a `ListPage`, or any iterable of items.

    An item is a `Resource`, or the values of the template's variables: a `dict`, or the value of the only variable.
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
    only = None if template is None else _single(template)
    is_value = item is not None and not isinstance(item, list | tuple | bytes)
    try:
        if template is not None and isinstance(item, Mapping):
            return _of_values(template, item)
        if template is not None and only is not None and is_value:
            return _of_values(template, {only: item})
    except (TypeError, ValueError) as error:
        raise type(error)(f"item {at} of the list: {error}") from None
    values = ", ".join(f"{name!r}: …" for name in names)
    raise TypeError(f"item {at} of the list is {item!r}, expected a Resource, or the values {{{values}}}")


def _single(template: UriTemplate) -> str | None:
    """The variable of an item that is a value: the only one, or the only one that a URI must have."""
    known = template.variables
    required = [name for name, variable in known.items() if variable.required]
    names = required if len(known) > 1 else [*known]
    return names[0] if len(names) == 1 else None


def _of_values(template: UriTemplate, values: Mapping[str, object]) -> Resource:
    """The resource with these values, named after them. Lists and maps make no name: then it is the URI."""
    return Resource(expand(template, values), name=named(template, values))


def named(template: UriTemplate, values: Mapping[str, object]) -> str | None:
    """The name of the resource with these values; `None` if they make none."""
    given = [texts(values[name]) for name in template.variables if values.get(name) is not None]
    return ("/".join(given) if all(isinstance(text, str) for text in given) else "") or None


def expand(template: UriTemplate, values: Mapping[str, object]) -> str:
    """The URI with these values of the template's variables.

    Raises:
        TypeError: the template has no such variable, a required value is missing, or one has no text of its own.
        ValueError: a value is a number that is not finite.
    """
    known = template.variables
    for name in values:
        if name not in known:
            raise TypeError(unexpected("variable", name, [*known]))
    for name, variable in known.items():
        if variable.required and values.get(name) is None:
            raise TypeError(f"{template} needs a value for {name!r}")
    found = {}
    for name, value in values.items():
        try:
            found[name] = texts(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"the value of {name!r}: {error}") from None
    return template.expand(found)


def method(value: object, encoder: Encoder | None = None) -> tuple[str, str | None, str | None]:
    """Members, type and `_meta` of a custom method's result."""
    if isinstance(value, MethodResult):
        meta = None if value.meta is None else to_json(value.meta, encoder)
        return to_json(value.members, encoder), value.result_type, meta
    text = to_json({} if value is None else value, encoder)
    if not text.startswith("{"):
        raise TypeError(f"the method returned {value!r:.80}, expected a dict with the members of its result")
    return text, None, None


def inputs(text: str | None) -> dict[str, InputResponse]:
    """The client's answers by key."""
    if text is None:
        return {}
    import json

    return {key: InputResponse(value) for key, value in json.loads(text).items()}


def replied(future: Any, result: str | None, error: str | None) -> None:
    """Passes a client's answer to the handler that waits for it: JSON text of a result or an error, or neither."""
    if future.done():
        return
    import json

    if result is not None:
        future.set_result(json.loads(result))
    elif error is not None:
        refused = json.loads(error)
        future.set_exception(AskFailedError(f"the client refused: {refused['message']}", refused["code"]))
    else:
        future.set_exception(AskFailedError("the client did not answer"))
