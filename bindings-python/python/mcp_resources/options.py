"""The keyword arguments of `ResourceServer`, its resources and its HTTP endpoints."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from ._core import Icon, Variable
from .encoding import Encoder
from .guard import Policy
from .lifespan import Lifespan
from .limits import Limits
from .parameters import Param
from .results import CacheHint, CacheScope, Contents

__all__ = [
    "Details",
    "HttpOptions",
    "Limits",
    "PromptArgument",
    "PromptDetails",
    "ResourceDetails",
    "ServerOptions",
    "Tls",
    "ToolAnnotations",
    "ToolDetails",
]


class ServerOptions(TypedDict, total=False):
    """The keyword arguments of `ResourceServer`, in addition to its name and version."""

    title: str
    """The name of the server for people. Default: none."""
    description: str
    """A description of the server. Default: none."""
    website_url: str
    """The URL of a page about the server, `http` or `https`. Default: none."""
    icons: Iterable[Icon]
    """Icons of the server. Default: none."""
    instructions: str
    """Instructions for the model that uses the server. Default: none."""
    limits: Limits
    """Limits that differ from the defaults."""
    revisions: Iterable[str]
    """The protocol revisions to serve, such as `2025-11-25`. Default: all five."""
    subscribe: bool
    """Whether clients can subscribe to resources. Default `True`."""
    list_changed: bool
    """Whether clients are notified of changes of the lists. Default `True`."""
    completions: bool
    """Whether the server declares the capability `completions`. Default: if a variable has a completer or known
    values."""
    tools: bool
    """Whether tools are offered before the first one is added, so that clients hear of later ones. Default `False`."""
    prompts: bool
    """As `tools`, for prompts. Default `False`."""
    expose_as_tools: bool
    """Whether the tools `list_resources` and `read_resource` give the resources to hosts that show a model nothing but
    tools. Default `False`."""
    logging: bool
    """Whether `ctx.log` is sent to clients that asked for log messages. Default `True`."""
    server_info_in_results: bool
    """Whether each result has the name and version of the server in its `_meta`. Default `True`."""
    explicit_denials: bool
    """Whether clients are told that access is denied, instead of that the resource does not exist. Default `False`."""
    cache: bool
    """Whether results of reads are reused for their `ttl_ms`, and concurrent reads of one resource share one call.
    Private results are reused for the same principal only. `notify_updated` discards them. Default `False`."""
    redact: Callable[[str, Contents], Contents] | None
    """Called with the URI and the contents of each read, also of constants. Returns the contents that may be sent.

    A plain function, called on the thread that ran the handler. If it raises, the read fails, and nothing is sent.
    Default: contents are sent unchanged."""
    audit: "str | os.PathLike[str] | Callable[[dict[str, Any]], object]"
    """Where requests are recorded: the path of a file that gets one JSON object per line, or a function that gets each
    record as a `dict`. Default: nowhere."""
    metrics: bool
    """Whether requests are counted, for `metrics_text`. Default `False`."""
    guard: Policy | str | os.PathLike[str]
    """The access policy, or the path of a JSON or YAML file with it. Default: every client sees everything."""
    list_cache: CacheHint
    """How long clients may keep lists. Default: not at all."""
    discover_cache: CacheHint
    """How long clients may keep the description of the server. Default: not at all."""
    encoder: Encoder
    """Called with each value in a result that has no JSON form, such as an object of your own class. Returns a value
    that has one, or `NotImplemented` for the default. Default: dates, enums, sets, UUIDs, paths, decimals, dataclasses,
    pydantic models and rows of `sqlite3` are converted, anything else fails the read."""
    lifespan: Lifespan
    """Opens and closes resources that handlers share, such as a database pool: an async context manager or an async
    generator function, called with the server. It is entered before the first request and left after the last one,
    once for all transports. The value it yields is `ctx.lifespan`. An ASGI application whose host sends no lifespan
    events enters it at the first request. Default: none."""
    keys: Iterable[bytes]
    """Secrets of at least 16 bytes that all processes of a deployment share, for cursors and request states. The first
    one seals; all of them open. Default: a random secret of this process."""
    bus: str | None
    """The URL of a bus between the processes of the server: `notify_updated`, `notify_list_changed`, `revoke` and
    `regrant` in one reach the clients of all. `redis://HOST:PORT/DB`, `rediss://…`, `nats://HOST:PORT`, `tls://…`, or
    `unix:PATH` for the processes of one machine. `${NAME}` in its credentials is a variable of the environment. Needs
    `keys`. Default: none."""
    extensions: Mapping[str, Mapping[str, object]]
    """Protocol extensions to declare, by name, with their settings. Default: none."""


class HttpOptions(TypedDict, total=False):
    """The keyword arguments of an HTTP endpoint. With the defaults, only this machine can use it."""

    path: str
    """The path of the endpoint. Default `/mcp`."""
    health: str | None
    """A path that answers `GET` and `HEAD` with 200 while the server runs, for health checks. `Host`, `Origin` and
    token are not checked there. Default: none."""
    metrics: bool | str | None
    """A path for Prometheus metrics; `True` stands for `/metrics`. It checks `Host`, `Origin` and the token like the
    endpoint. Default: none."""
    hosts: Literal["loopback", "*"] | Sequence[str]
    """The `Host` headers that are accepted: names, or names with ports. Default `loopback`: local names and addresses
    only."""
    origins: Literal["loopback", "*"] | Sequence[str]
    """The `Origin` headers that are accepted, such as `https://app.example.com`, or `vscode-webview://*` for all pages
    of an application. Default `loopback`: local pages only."""
    cors: bool
    """Whether browsers may send requests from pages of the accepted origins. Default `False`."""
    cors_headers: Sequence[str]
    """Further headers that such pages may send, such as `X-Team`. The headers of the protocol, `Authorization`,
    `traceparent`, `tracestate` and `baggage` are always among them. Default: none."""
    trusted_proxies: Sequence[str]
    """Addresses of reverse proxies, such as `10.0.0.0/8`, or `unix`. A request from one of them comes from the client
    that its header `X-Forwarded-For` names: in the audit log, and where anonymous clients are counted. Default:
    none."""
    answers: Literal["either", "json", "events"]
    """The form of answers: `json`, `events` (a stream of events), or `either`, which chooses for each request. Default
    `either`."""
    polling: tuple[int, int] | None
    """Two times in milliseconds: when an event stream is closed, and when the client should reconnect. Default: streams
    stay open."""
    sessions: bool
    """Whether clients before 2026-07-28 get sessions. Without sessions they cannot subscribe, but any process of a
    deployment can answer each request. Default `True`."""
    instance: str | None
    """The name of this process, which begins its session ids, as `a` in `a.Xk3…`, so that a proxy finds the process of
    a session. At most 32 letters, digits, `-` and `_`. Default: none."""
    sse24: bool | tuple[str, str]
    """Whether the HTTP+SSE transport of 2024-11-05 is served too: its two paths, for events and for messages, or `True`
    for `/sse` and `/messages`. The paths are absolute, so this does not work in an application that is mounted below
    another path. Default `False`."""


class Tls(TypedDict):
    """The files for `https`."""

    cert: "str | os.PathLike[str]"
    """The path of a PEM file with the certificate chain, the server's own certificate first."""
    key: "str | os.PathLike[str]"
    """The path of a PEM file with the private key."""


class Details(TypedDict, total=False):
    """The description of a resource, or of all resources of a template."""

    name: str
    """The name for programs. Default: the name of the function."""
    title: str
    """The name for people. Default: none."""
    description: str
    """The description, for people and models. Default: the first paragraph of the function's docstring."""
    mime_type: str
    """The media type, such as `text/markdown`; for a template, that of all its resources. Default: `application/json`
    if the function is annotated to return a `dict`, `list`, number, dataclass or pydantic model;
    `application/octet-stream` for `bytes`."""
    icons: Iterable[Icon]
    """Icons for user interfaces. Default: none."""
    audience: Iterable[Literal["user", "assistant"]]
    """Who the contents are meant for: `user`, `assistant` or both. Default: not stated."""
    priority: float
    """The importance, from 0 (optional) to 1 (required). Default: not stated."""
    last_modified: Any
    """The time of the last change: a `datetime` with a time zone, or ISO 8601 text. Default: not stated."""
    meta: Mapping[str, object]
    """Members of `_meta`. Default: none."""
    ttl_ms: int
    """How long clients and the option `cache` may keep the contents, in milliseconds. Default 0: not at all."""
    cache_scope: CacheScope
    """Whether caches may share the contents between users: `public`, or `private` for contents that depend on the user.
    Default `private`."""
    scopes: Iterable[str]
    """The scopes that a token must have to see it, all of them. Default: none."""
    children: bool
    """Whether its subscribers are also notified about resources under its URI. Default `False`."""


class ResourceDetails(Details, total=False):
    """The keyword arguments of `ResourceServer.resource`."""

    size: int
    """The size in bytes before base64, for a resource without variables. Default: that of a constant, else not
    stated."""
    vars: Mapping[str, Variable]
    """How variables of the template match, by their names. Default: see `Variable`."""
    extra_query: Literal["ignore", "reject"]
    """Whether a URI with query parameters that the template does not have still matches (`ignore`) or not (`reject`).
    Default `ignore`."""
    parameters: Mapping[str, Param]
    """Types, allowed values and descriptions of variables, by their names. Default: those of the annotations."""
    tool: bool | str
    """Whether a template is a tool too, which takes the variables as arguments and reads the resource: the name of the
    tool, or `True` for that of the template. Default `False`."""
    inline: bool
    """Whether a `def` runs on the event loop, which must not block. Default `False`: it runs on a worker thread."""
    replace: bool
    """Whether it replaces a resource or template with the same URI, such as when a notebook cell runs again. Default
    `False`: that is an error."""


class ToolAnnotations(TypedDict, total=False):
    """Hints about a tool. A client must not rely on them unless it trusts the server."""

    title: str
    """A label for people. Clients that know the `title` of the tool prefer that. Default: none."""
    read_only_hint: bool
    """Whether it changes nothing. Clients assume `False`."""
    destructive_hint: bool
    """Whether it may delete or overwrite something. Clients assume `True`."""
    idempotent_hint: bool
    """Whether a second call with the same arguments changes nothing further. Clients assume `False`."""
    open_world_hint: bool
    """Whether it reaches things outside the server, such as the web. Clients assume `True`."""


class NamedDetails(TypedDict, total=False):
    """The description of a tool or prompt."""

    title: str
    """The label for people. Default: none."""
    description: str
    """The description, for the model or for people. Default: the docstring of the function."""
    icons: Iterable[Icon]
    """Icons for user interfaces. Default: none."""
    meta: Mapping[str, object]
    """Members of `_meta`. Default: none."""
    scopes: Iterable[str]
    """The scopes that a token must have to see it, all of them. Default: none."""
    inline: bool
    """Whether a `def` runs on the event loop, which must not block. Default `False`: it runs on a worker thread."""
    replace: bool
    """Whether it replaces one with the same name, such as when a notebook cell runs again. Default `False`: that is an
    error."""


class ToolDetails(NamedDetails, total=False):
    """The keyword arguments of `ResourceServer.tool`."""

    annotations: ToolAnnotations
    """Hints for clients. Default: none."""
    ui: str
    """The URI of a registered page (`ResourceServer.ui`) that shows its results in hosts with MCP Apps. Default:
    none."""
    ui_visibility: Iterable[Literal["model", "app"]]
    """Who may call a tool with a page: the model, the page (`app`), or both. Default: both."""


class UiCsp(TypedDict, total=False):
    """The origins that a page may use, such as `https://*.example.com`. A host blocks all others."""

    connect_domains: Iterable[str]
    """Of network requests. Default: none."""
    resource_domains: Iterable[str]
    """Of scripts, styles, images, fonts and media. Default: none."""
    frame_domains: Iterable[str]
    """Of frames inside the page. Default: none."""
    base_uri_domains: Iterable[str]
    """Of base URIs of the document. Default: none."""


class UiDetails(TypedDict, total=False):
    """The keyword arguments of `ResourceServer.ui`."""

    name: str
    """The name for programs. Default: the URI."""
    title: str
    """The label for people. Default: none."""
    description: str
    """The description. Default: none."""
    icons: Iterable[Icon]
    """Icons for user interfaces. Default: none."""
    csp: UiCsp
    """The origins that the page may use. Default: none."""
    permissions: Iterable[Literal["camera", "microphone", "geolocation", "clipboard_write"]]
    """The browser features that the page asks for. Default: none."""
    domain: str
    """An origin of its own for the page, in the form that the host documents. Default: chosen by the host."""
    prefers_border: bool
    """Whether the host draws a border and a background. Default: the host decides."""
    meta: Mapping[str, object]
    """Further members of `_meta`. Default: none."""
    scopes: Iterable[str]
    """The scopes that a token must have to see it, all of them. Default: none."""
    ttl_ms: int
    """How long clients may keep the page, in milliseconds. Default 0."""
    cache_scope: Literal["public", "private"]
    """Whether a cache may share it between clients. Default `private`."""
    replace: bool
    """Whether it replaces a page with the same URI, such as when a notebook cell runs again. Default `False`: that is
    an error."""


class PromptDetails(NamedDetails, total=False):
    """The keyword arguments of `ResourceServer.prompt`."""


class PromptArgument(TypedDict, total=False):
    """One argument of a prompt, where the annotations of its function do not describe it. `name` is required."""

    name: str
    """The name."""
    title: str
    """The label for people. Default: none."""
    description: str
    """The description, for people. Default: none."""
    required: bool
    """Whether it must be given. Default `False`."""
    values: Iterable[str]
    """Values to suggest. Others are accepted too. Default: none."""
