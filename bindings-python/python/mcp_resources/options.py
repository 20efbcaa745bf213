"""The keyword arguments of a server and of its resources."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from ._core import Icon, Variable
from .encoding import Encoder
from .guard import Policy
from .lifespan import Lifespan
from .parameters import Param
from .results import CacheHint, CacheScope, Contents

__all__ = ["Details", "HttpOptions", "Limits", "ResourceDetails", "ServerOptions", "Tls"]


class Limits(TypedDict, total=False):
    """The bounds of a server: sizes in bytes, times in milliseconds. What is left out keeps its default."""

    message: int
    """Longest line on stdio. Default 4 MiB."""
    nesting: int
    """Deepest nesting of arrays and objects in one member of `params`, or of `_meta` in it. Default 128."""
    id: int
    """Longest request id, and longest progress token, as written. Default 1 KiB."""
    client_info: int
    """Longest `clientInfo`, as JSON text; a session keeps it. Default 32 KiB."""
    batch: int
    """Most elements of a batch. Default 256."""
    batch_bytes: int
    """Answers of all batches of one connection that are not complete. Default 64 MiB."""
    uri: int
    """Longest URI. Default 64 KiB."""
    resources: int
    """Most resources that may be registered. Default 1,000,000."""
    templates: int
    """Most templates that may be registered. Default 10,000."""
    in_flight: int
    """Most unanswered requests of one connection. Default 1,024."""
    page: int
    """Items on a page of a list. Default 100."""
    list_scan: int
    """Items that one list call may examine. Default 10,000."""
    list_source: int
    """Items that a `.list` callback without paging may return. Default 100,000."""
    list_item: int
    """Bytes of one resource or template that another server describes and a list passes on. Default 64 KiB."""
    list_ttl: int
    """How long its answer is kept, so that a walk over its pages asks it once. Default 0 ms: each page asks it."""
    list_cache: int
    """How many such answers are kept. Default 256."""
    list_cache_bytes: int
    """Bytes that they take. Default 16 MiB."""
    cache_entries: int
    """Results that the read cache keeps. Default 10,000."""
    cache_bytes: int
    """Bytes that they take, encoded. Default 64 MiB."""
    principals: int
    """Principals whose rates and requests in flight are counted apart. Default 10,000."""
    subscriptions: int
    """Subscriptions of one connection. Default 10,000."""
    filter_uris: int
    """URIs that one listen may name. Default 10,000."""
    watched_uris: int
    """URIs that all subscriptions of one connection may name together. Default 100,000."""
    watched_bytes: int
    """Bytes of the URIs that one connection watches. Default 16 MiB."""
    watched_total: int
    """Bytes of the URIs that all connections watch. Default 256 MiB."""
    contents: int
    """Contents of one reply before encoding. Default 16 MiB."""
    contents_total: int
    """Contents of all replies that are being gathered. Default 256 MiB."""
    output: int
    """Answers that wait for a client that does not read; above it no more is read or started for it. Default 1 MiB."""
    read_timeout: int
    """When a read that is unanswered fails. Default 30,000 ms."""
    completion_timeout: int
    """The same for a completion. Default 5,000 ms."""
    arguments: int
    """The JSON text of a completion's `context.arguments`. Default 64 KiB."""
    completion_values: int
    """Values of one completion. Default 100."""
    coalesce: int
    """Least time between two updates of one URI. Default 50 ms."""
    progress_interval: int
    """Least time between two progress notifications of one request. Default 50 ms."""
    log_messages: int
    """Log messages of one request. Default 1,000."""
    state: int
    """Longest sealed text that a client may send back: the state of an `InputRequired`, or a cursor. Default 64 KiB."""
    state_ttl: int
    """How long a request state is accepted. Default 600,000 ms."""
    asks: int
    """Unanswered `ctx.ask` of one connection; above it `ctx.ask` fails. Default 64."""
    grace: int
    """How long what is in flight may still finish after the end of input. Default 1,000 ms."""
    head: int
    """Request line and headers of an HTTP request together. Default 256 KiB, as one header repeats the URI."""
    headers: int
    """Header lines of an HTTP request. Default 128."""
    sessions: int
    """Open HTTP sessions. Default 10,000."""
    sessions_per_client: int
    """HTTP sessions of one principal; without tokens, of one client address. Behind a proxy all clients may have one.
    Default 1,000."""
    session_idle: int
    """How long an unused HTTP session is kept. Default 1,800,000 ms."""
    handshake_timeout: int
    """When such a session ends if its client has not sent `notifications/initialized`. Default 60,000 ms."""
    streams: int
    """Streams of events that one session keeps. Default 16."""
    replay: int
    """What is kept of each of them to be sent again. Default 1 MiB."""
    keep_alive: int
    """After so long without anything to send, a stream of events gets a comment. Default 15,000 ms."""
    connections: int
    """Open HTTP connections. Default 20,000."""
    connections_per_client: int
    """Open HTTP connections from one address. Behind a proxy all clients may have one. Default 5,000.

    Only `run` and `serve_http` count them."""
    head_timeout: int
    """How long the head of an HTTP request may take, from the opening of the connection or its first byte.
    Default 10,000 ms."""
    idle_timeout: int
    """After so long without a further request an HTTP connection is closed. Default 60,000 ms."""
    body_timeout: int
    """How long the body of an HTTP request may take. Default 30,000 ms."""
    bodies_total: int
    """All HTTP bodies that have come in part. Default 256 MiB."""
    write_timeout: int
    """A client that takes nothing of what is sent to it for so long is gone. Default 30,000 ms."""
    token_cache: int
    """Verified tokens that are kept. Default 10,000."""
    token_ttl: int
    """How long a verified token is believed at most. Default 300,000 ms."""
    audit_queue: int
    """Records of requests that wait to be taken; above it the newest is dropped. Default 10,000."""
    sse_after: int
    """When a slow answer becomes a stream of events. Default 1,000 ms."""


class ServerOptions(TypedDict, total=False):
    """The keyword arguments of `ResourceServer`, besides its name and version."""

    title: str
    """A name for people."""
    description: str
    """What it is."""
    website_url: str
    """Where to read more."""
    icons: Iterable[Icon]
    """Pictures of it."""
    instructions: str
    """How a model is to use it."""
    limits: Limits
    """The bounds."""
    revisions: Iterable[str]
    """The revisions of the protocol to serve. Default: all five."""
    subscribe: bool
    """Whether clients may subscribe. Default `True`."""
    list_changed: bool
    """Whether changes of the lists are announced. Default `True`."""
    completions: bool
    """Whether completion is offered. Default: when something completes."""
    logging: bool
    """Whether `ctx.log` reaches clients. Nothing is sent that a client did not ask for. Default `True`."""
    server_info_in_results: bool
    """Whether each result names the server. Default `True`."""
    explicit_denials: bool
    """Whether a client is told that it may not see a resource, rather than that there is none. Default `False`."""
    cache: bool
    """Whether the contents of reads are kept for their `ttl_ms` and given again, and concurrent reads make one call.

    What is private is given to the principal that read it alone. `notify_updated` ends what is kept.
    Default `False`."""
    redact: Callable[[str, Contents], Contents] | None
    """Called with the URI and the contents of each read before they are sent, constants included: returns what may be.

    A `def`, called on the thread that ran the handler. Its exception fails the read, and nothing is sent."""
    audit: "str | os.PathLike[str] | Callable[[dict[str, Any]], object]"
    """Where each request is recorded: a file that gets a JSON object on a line, or a function that gets it as a `dict`.

    The function is called on a thread of its own. Default: nothing is recorded."""
    metrics: bool
    """Whether requests are counted, for `metrics_text`. Default `False`."""
    guard: Policy | str | os.PathLike[str]
    """Who may see what: a policy, or the path of a JSON or YAML file. Default: everybody everything."""
    list_cache: CacheHint
    """How long lists may be kept. Default: not at all."""
    discover_cache: CacheHint
    """How long the server's description may be kept. Default: not at all."""
    encoder: Encoder
    """Called with each value in a result that JSON does not have, such as an object of your own. Returns one that it
    has, or `NotImplemented` to leave it to the library. Default: dates, enums, sets, UUIDs, paths, decimals,
    dataclasses, pydantic models and rows of `sqlite3` are served, anything else fails the read."""
    lifespan: Lifespan
    """An async context manager (or an async generator function) that is called with the server: opened before the first
    request, closed after the last, once for all transports. What it yields is `ctx.lifespan`. An ASGI application opens
    it with the first request if its host sends no lifespan events. Default: none."""
    keys: Iterable[bytes]
    """Secrets of at least 16 bytes, shared by all processes of a deployment, for cursors and states.

    The first seals, all open."""
    extensions: Mapping[str, Mapping[str, object]]
    """Capabilities of extensions to declare, with their settings."""


class HttpOptions(TypedDict, total=False):
    """The keyword arguments of an HTTP endpoint. The defaults are those of a server for this machine alone."""

    path: str
    """Where the endpoint is. Default `/mcp`."""
    health: str | None
    """A path that answers 200 while the server lives. Default: none."""
    metrics: bool | str | None
    """A path that shows what is counted, for Prometheus; `True` is `/metrics`. Default: none.

    It asks for `Host`, `Origin` and the token as the endpoint does."""
    hosts: Literal["loopback", "*"] | Sequence[str]
    """Which `Host` headers are accepted: names, or names with ports. Default `loopback`."""
    origins: Literal["loopback", "*"] | Sequence[str]
    """Which `Origin` headers are accepted, such as `https://app.example.com`. Default `loopback`."""
    cors: bool
    """Whether pages of the accepted origins may ask from a browser. Default `False`."""
    answers: Literal["either", "json", "events"]
    """Whether requests are answered with JSON, with a stream of events, or with what fits. Default `either`."""
    polling: tuple[int, int] | None
    """After how many milliseconds a stream is broken off, and when the client is to come back. Default: never."""
    sessions: bool
    """Whether clients before 2026-07-28 get sessions. Without them each of their requests stands alone: nothing can be
    subscribed to, and any process of a deployment can answer. Default `True`."""
    sse24: bool | tuple[str, str]
    """Whether the transport of 2024-11-05 is served too, which was replaced in 2025-03-26: its paths for events and
    for messages, or `True` for `/sse` and `/messages`. Clients take these paths from the root: an application that is
    mounted below another path cannot serve it. Default `False`."""


class Tls(TypedDict):
    """What a server shows to serve `https`: paths of PEM files."""

    cert: "str | os.PathLike[str]"
    """The certificates, the server's own first."""
    key: "str | os.PathLike[str]"
    """Its private key."""


class Details(TypedDict, total=False):
    """What resources and templates have in common."""

    name: str
    """A name for programs. Default: the function's."""
    title: str
    """A label for people."""
    description: str
    """What it is. Default: the first paragraph of the function's docstring."""
    mime_type: str
    """Its media type; of a template, that of all its resources. Default: `application/json` if the function is
    annotated to return a `dict`, `list`, number, dataclass or pydantic model; `application/octet-stream` for `bytes`.
    """
    icons: Iterable[Icon]
    """Pictures of it."""
    audience: Iterable[Literal["user", "assistant"]]
    """For whom it is."""
    priority: float
    """How important it is, from 0 to 1."""
    last_modified: Any
    """When it was changed: a `datetime` with its zone, or its ISO 8601 text."""
    meta: Mapping[str, object]
    """Members of `_meta`."""
    ttl_ms: int
    """For how many milliseconds its contents may be kept. Default 0."""
    cache_scope: CacheScope
    """By whom: `public` only if they are the same for everyone. Default `private`."""
    scopes: Iterable[str]
    """The scopes that a token must have to see it, all of them. Default: none."""
    children: bool
    """Whether a subscription to it also hears of the resources beneath it. Default `False`."""


class ResourceDetails(Details, total=False):
    """The keyword arguments of `ResourceServer.resource`."""

    size: int
    """Its size in bytes before base64, for a resource without variables. Default: that of a constant."""
    vars: Mapping[str, Variable]
    """How single variables of the template match."""
    extra_query: Literal["ignore", "reject"]
    """What query names that the template does not have mean. Default `ignore`."""
    parameters: Mapping[str, Param]
    """What is known of the variables, besides what annotations say."""
    inline: bool
    """Whether a `def` runs on the event loop itself: for functions that return at once. Default `False`."""
    replace: bool
    """Whether it takes the place of a resource or template with the same URI, as in a notebook whose cell runs again.
    Default `False`: that is an error."""
