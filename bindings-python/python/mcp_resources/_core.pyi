"""The compiled part of the package: the engine, and what connects it to Python."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import GenericAlias
from typing import Any, Generic, Literal, Protocol, TypeAlias, final

from typing_extensions import Buffer, TypeVar, disjoint_base

from ._config import Config
from ._edits import Edit
from ._embedded import EmbeddedLoop, EmbeddedSession, Embedding, Sender
from ._events import SharedEvents
from ._testing import TestClient
from .functions import Mode, Slot
from .guard import Decision
from .log import Log, LogLevel
from .matches import Match, NoMatch, Rejected
from .results import CacheScope, InputResponse

__all__ = [
    "Admitted",
    "Caller",
    "Channel",
    "Config",
    "Context",
    "Edit",
    "EmbeddedLoop",
    "EmbeddedSession",
    "Embedding",
    "Endpoint",
    "Exchange",
    "Function",
    "Gather",
    "Guard",
    "HttpServer",
    "Icon",
    "Identified",
    "Memory",
    "Metrics",
    "Pending",
    "Provider",
    "Queue",
    "Receiving",
    "Records",
    "Resource",
    "ResultCache",
    "Sender",
    "Server",
    "SharedEvents",
    "Stream",
    "TemplateSet",
    "TestClient",
    "TokenCheck",
    "TokenVerifier",
    "UriTemplate",
    "Variable",
    "Verification",
    "Wakeup",
    "Watches",
    "closest",
    "declared",
    "embedded",
    "main",
    "memory",
    "metrics",
    "suggested_template",
    "unexpected",
]

_Kind: TypeAlias = Literal["scalar", "list", "map"]
_Policy: TypeAlias = Literal["segment", "path", "text", "any"]
_Verified: TypeAlias = tuple[str, Sequence[str], int | None, str | None, Sequence[str] | None, Sequence[str]]
_Head: TypeAlias = tuple[int, list[tuple[bytes, bytes]]]
_Value: TypeAlias = str | int | float | Sequence[str | int | float] | Mapping[str, str | int | float] | None

class _Driver(Protocol):
    """The event loop as a channel uses it."""

    start: Callable[..., Any]
    eager: bool
    def change(self, read: bool, write: bool) -> None: ...
    def alarm(self, delay: float) -> None: ...
    def soon(self) -> None: ...
    def output(self) -> None: ...
    def suspended(self) -> None: ...
    def ended(self) -> None: ...
    def idle(self) -> None: ...

@final
class Resource:
    """The URI and the description of a resource.

    Keyword arguments: see `Details`; and `size`, the size in bytes. Default: that of a constant, else not stated.
    """

    def __new__(
        cls,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        icons: Iterable[Icon] | None = None,
        audience: Iterable[Literal["user", "assistant"]] | None = None,
        priority: float | None = None,
        last_modified: datetime | str | None = None,
        meta: Mapping[str, object] | None = None,
        ttl_ms: int = 0,
        cache_scope: CacheScope = "private",
        scopes: Iterable[str] = (),
        children: bool = False,
        size: int | None = None,
    ) -> Resource: ...
    @property
    def uri(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str | None: ...
    @property
    def description(self) -> str | None: ...
    @property
    def mime_type(self) -> str | None: ...
    @property
    def size(self) -> int | None: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Icon:
    """An icon of a resource or a server.

    Args:
        src: the URI of the image: `http:`, `https:` or `data:`.
        mime_type: the media type, such as `image/png`. Default: not stated.
        sizes: the sizes that it is made for, such as `48x48`, or `any`. Default: not stated.
        theme: the theme that it is made for. Default: both.
    """

    def __new__(
        cls,
        src: str,
        *,
        mime_type: str | None = None,
        sizes: Sequence[str] = (),
        theme: Literal["light", "dark"] | None = None,
    ) -> Icon: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Variable:
    """The rules by which one variable of a template matches.

    Args:
        kind: the type of the value. Default: `list` for a variable with `*`, else `scalar`.
        policy: the values that are accepted: `segment`, `path` and `text` refuse values that are dangerous in such a
            place; `any` accepts all. Default: `path` for `{+x}`, `text` in a query or fragment, else `segment`.
        empty: whether the value of `{x}` and `{+x}` may be empty. Default `False`.
        chars: the characters of `{+x}`: `any` also accepts `?` and `#`. Default `operator`: those that RFC 6570 gives
            the operator.
    """

    def __new__(
        cls,
        kind: _Kind | None = None,
        policy: _Policy | None = None,
        *,
        empty: bool = False,
        chars: Literal["operator", "any"] = "operator",
    ) -> Variable: ...
    @property
    def kind(self) -> _Kind | None: ...
    @property
    def policy(self) -> _Policy | None: ...
    @property
    def empty(self) -> bool: ...
    @property
    def chars(self) -> Literal["operator", "any"]: ...
    @property
    def required(self) -> bool | None:
        """Whether every URI of the template has a value for it; `None` outside of a template."""

@final
class Guard:
    """The compiled part of `mcp_resources.Guard`."""
    def __new__(cls, policy: object, explicit_denials: bool) -> Guard: ...
    def decide(self, uri: str, principal: str, scopes: list[str], groups: list[str]) -> tuple[Decision, list[str]]: ...
    def knows_template(self, template: str, principal: str, scopes: Sequence[str], groups: Sequence[str]) -> bool: ...

@final
class UriTemplate:
    """A URI template (RFC 6570).

    Args:
        template: the text of the template, such as `note://{id}`.
        vars: the rules of variables, by their names. Default: see `Variable`.
        extra_query: whether a URI with query parameters that the template does not have still matches (`ignore`) or not
            (`reject`). Default `ignore`.

    Raises:
        InvalidTemplateError: the text is not a URI template, or no URI can match it.
    """

    def __new__(
        cls,
        template: str,
        vars: Mapping[str, Variable] | None = None,
        *,
        extra_query: Literal["ignore", "reject"] = "ignore",
    ) -> UriTemplate: ...
    @property
    def variables(self) -> dict[str, Variable]:
        """The variables by name, in the order of the template."""
    def expand(self, values: Mapping[str, _Value] | None = None, /, **named: _Value) -> str:
        """Expands the template (RFC 6570).

        Variables that are missing or `None` are left out; values for which the template has no variable are ignored.

        Raises:
            TypeError: a value is bytes.
        """
    def match(self, uri: str) -> Match | NoMatch | Rejected:
        """Matches a URI, in any spelling.

        Raises:
            InvalidUriError: `uri` is not a URI.
        """

@final
class TemplateSet:
    """A set of templates. The most specific template that matches a URI wins, independent of their order.

    Args:
        templates: templates, or their texts.

    Raises:
        TemplateConflictError: two templates match the same URIs.
    """

    def __new__(cls, templates: Iterable[UriTemplate | str]) -> TemplateSet: ...
    def match(self, uri: str) -> Match | NoMatch | Rejected:
        """Finds the template for a URI, in any spelling.

        Raises:
            InvalidUriError: `uri` is not a URI.
        """
    def __len__(self) -> int: ...

_State = TypeVar("_State", covariant=True, default=Any)

@final
class Context(Generic[_State]):
    """The request that a handler answers. It can be used from any thread until the request is answered.

    `Context[Pool]` has a `Pool` in `lifespan`; `Context` alone says nothing of its type.
    """
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @property
    def uri(self) -> str | None:
        """The URI as the client wrote it; `None` if the request is not a read."""
    @property
    def principal(self) -> str:
        """The verified identity of the client: empty on stdio, `anonymous` for HTTP clients without a token."""
    @property
    def headers(self) -> dict[str, str]:
        """The headers of the HTTP request, with lower-case names; empty on stdio. They are not verified.

        `Authorization`, `Proxy-Authorization` and `Cookie` are left out.
        """
    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes of the client's token, with the scopes that they imply."""
    @property
    def claims(self) -> dict[str, Any] | None:
        """The claims of the client's token; `None` without a token or claims.

        The option `cache` does not distinguish clients by claims: a resource whose contents depend on them must not
        have a `ttl_ms`.
        """
    @property
    def revision(self) -> str:
        """The protocol revision of the request."""
    @property
    def client_info(self) -> dict[str, Any] | None:
        """The self-description of the client (its name and version), not verified; `None` if it sent none."""
    @property
    def meta(self) -> dict[str, Any] | None:
        """The `_meta` of the request; `None` if it has none."""
    @property
    def trace(self) -> dict[str, str]:
        """The trace context of the request, as a carrier for OpenTelemetry propagators.

        `traceparent`, `tracestate` and `baggage` of `_meta`, each only if it is well-formed.
        """
    @property
    def inputs(self) -> dict[str, InputResponse]:
        """The client's answers to an earlier `InputRequired`, by the keys of its requests; empty at first."""
    @property
    def state(self) -> Any:
        """The `state` of that `InputRequired`; `None` at first."""
    @property
    def cancelled(self) -> bool:
        """Whether the answer is no longer needed: the request was cancelled, timed out, or is answered."""
    @property
    def lifespan(self) -> _State:
        """The value that the lifespan of the server yielded; `None` without a lifespan."""
    @property
    def log(self) -> Log:
        """Sends log messages to the client: `ctx.log("info", data)` or `ctx.log.info(data)`."""
    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Reports progress to the client, if it asked for reports.

        Args:
            progress: the progress so far; it must increase with each report.
            total: the value of `progress` at the end. Default: unknown.
            message: a text about the current step. Default: none.
        """
    def ask(self, method: str, params: object) -> Awaitable[Any]:
        """Sends a request to the client, such as `sampling/createMessage`, and waits for its result.

        Only in an `async def`, and for clients with a revision before 2026-07-28; return `InputRequired` for others.

        Args:
            method: the method of the request.
            params: its params.

        Raises:
            AskFailedError: the client cannot be asked, did not answer, or refused.
        """
    def send_log(self, level: LogLevel, data: str, name: str | None = None) -> None:
        """The compiled part of `log`: a level, JSON text, and the name of a logger."""

@final
class Function:
    """A function of the program, and how it is called."""
    def __new__(
        cls,
        name: str,
        call: Callable[..., object],
        mode: Mode,
        json_type: str | None,
        shape: object,
        slots: Sequence[Slot],
    ) -> Function: ...
    @property
    def name(self) -> str: ...

@final
class Gather:
    """Collects the chunks of a generator."""
    def push(self, chunk: str | Buffer) -> bool: ...

def closest(given: str, known: Sequence[str]) -> str | None:
    """The known name that is most similar to `given`; `None` if none is."""

def main(argv: Sequence[str]) -> int:
    """Runs the command `mcp-resources`; `argv` begins with the name of the program. Returns the exit status."""

def suggested_template(text: str) -> str | None:
    """The URI template for a text in the notation of a web framework, such as `notes://:day`; else `None`."""

def unexpected(what: str, given: str, known: Sequence[str]) -> str:
    """The error message for an unknown name, with the name that was probably meant."""

@final
class Records:
    """The audit records, for the thread that takes them."""
    def next(self) -> list[bytes] | None: ...

@final
class Watches:
    """The changes of what clients watch, for the thread that takes them."""

    def next(self) -> list[tuple[str, str, bool]] | None: ...

@final
class Pending:
    """A request whose handler has not finished."""

    def __call__(self, task: Any, /) -> None: ...
    def gather(self) -> Gather | None:
        """Collects the chunks of a generator that the function has returned; `None` if it is no read."""
    def finish_later(self, value: object) -> None:
        """Awaits on the loop what the function has returned, and answers with the result."""
    def succeed(self, result: object) -> None: ...
    def fail(self, error: BaseException) -> None: ...

@final
class Queue:
    """The jobs of the worker threads."""

    def __new__(cls, max: int) -> Queue: ...
    def enter(self) -> None: ...
    def next(self) -> tuple[Callable[..., object], tuple[Any, ...], dict[str, Any] | None, Pending] | None:
        """Waits for the next job: a function, its arguments, and the request. `None` ends the thread."""
    def failed(self) -> bool: ...
    def next_here(self) -> tuple[Callable[..., object], tuple[Any, ...], dict[str, Any] | None, Pending] | None:
        """Like `next`, without waiting, for a thread that does not belong to the queue."""
    @property
    def waiting(self) -> int: ...
    @property
    def threads(self) -> int: ...

@final
class Server:
    """The compiled part of `ResourceServer`: an engine and its functions."""

    def __new__(
        cls,
        about: tuple[str, str] | Config,
        fields: Mapping[str, Any],
        queue: Queue,
        spawn: Callable[[Queue], None],
        audit: Any = None,
    ) -> Server: ...
    def extend(self, method: str, function: Function, declared: tuple[Any, Any, Any, int | None]) -> None: ...
    def publish(self, edits: Sequence[Edit]) -> list[str]: ...
    def mount(self, providers: Sequence[Provider]) -> None: ...
    def unmount(self, provider: Provider) -> bool: ...
    def watch(self, uri: str, start: Callable[[Watches], object]) -> str: ...
    def check_link(self, registered: str, uri: str) -> None: ...
    def notify_updated(self, uri: str, principal: str | None = None) -> None: ...
    def notify_list_changed(self, lists: str) -> None: ...
    def shutdown(self) -> None: ...
    def revoke(self, subject: str) -> None: ...
    def regrant(self, principal: str) -> None: ...
    def metrics_text(self) -> str | None: ...
    def flush_audit(self) -> None: ...
    def stop(self) -> None: ...
    def forked(self) -> None: ...
    def set_lifespan(self, value: object) -> None: ...
    def set_time(self, tick: int, unix: int) -> None: ...
    @property
    def verifier(self) -> TokenVerifier | None: ...
    @property
    def grace(self) -> int: ...
    @property
    def queue(self) -> Queue: ...
    @property
    def handlers(self) -> int: ...

@disjoint_base
class Provider:
    """A ready-made source of resources for `ResourceServer.mount`.

    It answers on threads of its own. The functions of `mcp_resources.providers` make providers.
    """

@final
class Memory(Provider):
    """A folder in memory: `memory:///{+path}`. A program puts entries into it; clients list, read and watch them.

    Can be used from any thread. Several servers can mount it and then serve the same entries. Entries stay until they
    are removed. Made by `memory`.
    """

    def put(self, path: str, body: str | Buffer, mime_type: str | None = None) -> None:
        """Stores a text or bytes at a path, and replaces what was there.

        Clients that watch the entry are notified and, if it is new, those that listen to the list.

        Args:
            path: a path such as `notes/today.md`. Characters that a URI cannot contain are percent-encoded.
            body: the contents. A buffer is copied.
            mime_type: the media type. Default: `text/plain` for a text, `application/octet-stream` for bytes.

        Raises:
            TypeError: `path` is not a text, or `body` is neither text nor bytes.
        """
    def remove(self, path: str) -> bool:
        """Removes the entry at a path. Returns `False` if there is none.

        Its subscribers and listeners of the list are notified.
        """
    def __len__(self) -> int:
        """The number of entries."""

@final
class Metrics(Provider):
    """Series of numbers: `metrics:///{name}`. A program pushes samples; clients list, read and watch the series.

    Mount it in one server at a time; samples can be pushed from any thread, at any time. Made by `metrics`.
    """

    def push(self, name: str, value: float, at: datetime | float | None = None) -> None:
        """Adds a sample to a series. The first sample creates the series.

        Subscribers are notified once per `interval` at most. A push to an existing series neither waits nor allocates.

        Args:
            name: the name of the series, such as `queue_length`: 1 to 256 bytes without control characters.
            value: the value. NaN becomes `null` in JSON.
            at: the time of the measurement: a `datetime`, or seconds since 1970. Default: now. A sample that is older
                than all samples of a full series is dropped.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: there are too many series, or the name or the time is not allowed.
        """
    @property
    def refused(self) -> int:
        """The number of samples that were refused because there were too many series."""

@disjoint_base
class ResultCache(Provider):
    """The compiled part of `providers.Results`."""

    def __new__(cls, options: object) -> ResultCache: ...
    def put(
        self,
        id: str,
        body: str | Buffer,
        *,
        ttl: int | str | None = None,
        mime_type: str | None = None,
        principal: str | None = None,
    ) -> None:
        """Stores a text or bytes under an id, and replaces what was there.

        Clients that watch the result are notified and, if it is new, those that listen to the list. The least recently
        used results are dropped if the cache is full.

        Args:
            id: any text of 1 to 1,024 bytes. A slash in it becomes `~2F` in the URI.
            body: the contents. A buffer is copied.
            ttl: how long the result is kept: a text such as `"10min"`, or milliseconds. Default: the `ttl` of the
                cache.
            mime_type: the media type. Default: `text/plain` for a text, `application/octet-stream` for bytes.
            principal: the only client that sees the result: the subject of its token, or `""` for the client on stdio.
                Default: all.

        Raises:
            ValueError: the id or the time is not allowed, or the contents are larger than the cache.
            TypeError: `body` is neither text nor bytes, or an argument has the wrong type.
            OSError: the file cannot be written.
        """
    def get(self, id: str, *, principal: str | None = None) -> str | bytes | None:
        """Returns the contents under an id, or `None`.

        Args:
            id: see `put`.
            principal: the client that the result belongs to, as for `put`. Default: all.

        Raises:
            OSError: the file cannot be read.
        """
    def remove(self, id: str, *, principal: str | None = None) -> bool:
        """Removes the result under an id. Returns `False` if there is none.

        Args:
            id: see `put`.
            principal: the client that the result belongs to, as for `put`. Default: all.

        Raises:
            OSError: the file cannot be written.
        """
    def __len__(self) -> int:
        """The number of results, those of single clients included."""

def embedded(options: object, embedder: object) -> Provider:
    """A `rag` provider with an embedder. The options and errors are those of `declared`."""

def declared(kind: str, options: object) -> Provider:
    """Makes a provider of a kind such as `files`, with its options by name.

    Raises:
        ValueError: the value of an option is not allowed.
        TypeError: an option does not exist, or its value has the wrong type.
    """

def memory() -> Memory:
    """Makes an empty folder in memory: `memory:///{+path}`."""

def metrics(options: object) -> Metrics:
    """The compiled part of `providers.metrics`.

    Raises:
        ValueError: the value of an option is not allowed.
        TypeError: an option does not exist, or its value has the wrong type.
    """

@final
class Wakeup:
    """A descriptor that becomes readable when another thread has work for the event loop."""
    def fileno(self) -> int: ...
    def work(self) -> bool:
        """Does the work. Returns whether the loop must go on watching the descriptor."""

@final
class Channel:
    """The connection to one client, driven by the event loop."""

    def __new__(
        cls,
        server: Server,
        driver: _Driver,
        *,
        stdio: bool,
        threads: bool = True,
        delivers: bool = True,
        sender: tuple[str, Sequence[str], str | None, Sequence[tuple[str, str]]] | None = None,
        before: Embedding | None = None,
    ) -> Channel: ...
    def send(self, message: str) -> None: ...
    def lines(self) -> list[bytes]: ...
    def left(self) -> None: ...
    @property
    def is_full(self) -> bool: ...
    @property
    def wakeup(self) -> Wakeup: ...
    def readable(self) -> None: ...
    def feed(self, chunk: bytes) -> None: ...
    def end(self) -> None: ...
    def stop(self) -> None: ...
    def writable(self) -> None: ...
    def flush(self) -> None: ...
    def timer(self) -> None: ...
    def cancel_all(self) -> None: ...
    def close(self) -> None: ...
    def take(self) -> bytes: ...
    def deliver(self, room: int) -> None: ...
    @property
    def input(self) -> int: ...
    @property
    def output(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def suspended(self) -> int: ...
    @property
    def unwritten(self) -> int: ...

_Turn: TypeAlias = tuple[_Head | None, bytes, bool, bool]

@final
class Endpoint:
    """HTTP without a socket, on the event loop of its driver."""

    def __new__(cls, server: Server, driver: _Driver, options: Mapping[str, Any]) -> Endpoint: ...
    @staticmethod
    def check(server: Server, options: Mapping[str, Any]) -> None:
        """Raises if an option has a value that is not allowed."""
    def admit(
        self, verb: str, target: str, mount: str, headers: Sequence[tuple[bytes, bytes]], client: str | None
    ) -> Admitted | tuple[_Head, bytes]:
        """Checks the head of a request. Returns the admitted request, or the response that refuses it."""
    def open(self, request: Identified, body: bytes) -> tuple[Exchange, _Turn]:
        """Starts to answer a request: runs or starts its handlers."""
    @property
    def wakeup(self) -> Wakeup: ...
    def timer(self) -> None: ...
    def shutdown(self) -> None: ...
    def close(self) -> None:
        """Ends all sessions and cancels open requests."""

@final
class Admitted:
    """A request whose head was accepted."""
    @property
    def token(self) -> str | None: ...
    def identify(
        self, verified: _Verified | None = None, denied: bool | None = None
    ) -> Identified | tuple[_Head, bytes]:
        """Continues with the verified token; `denied` is `False` for an invalid one, `True` if it was not verified."""

@final
class Identified:
    """An admitted request whose token is verified, and whose body is not yet read."""
    @property
    def body_limit(self) -> int:
        """The longest body, in bytes."""
    def too_large(self) -> tuple[_Head, bytes]:
        """The response to a longer body."""
    @property
    def body_timeout(self) -> float:
        """The longest time for the body, in seconds."""
    def too_late(self) -> tuple[_Head, bytes]:
        """The response to a body that takes longer."""
    def receiving(self) -> Receiving:
        """Makes the counter for a body that arrives in several parts."""

@final
class Receiving:
    """The counter of a body that arrives in several parts."""
    def take(self, bytes: int) -> tuple[_Head, bytes] | None:
        """Counts further bytes. Returns the response that refuses the request if there are too many."""
    def close(self) -> None:
        """Releases the bytes counted so far: the body is complete, or reading has stopped."""

@final
class Exchange:
    """A response in progress."""
    def register(self, callback: Callable[[], object]) -> None: ...
    def deliver(self, room: int) -> _Turn: ...
    def closed(self) -> None: ...
    @property
    def deadline(self) -> float | None: ...

@final
class HttpServer:
    """The native HTTP server. Its threads read, write, and answer requests that need no handler."""
    def __new__(
        cls,
        server: Server,
        driver: _Driver,
        options: Mapping[str, Any],
        verifier: TokenVerifier | None = None,
        tls: tuple[str, str] | None = None,
    ) -> HttpServer: ...
    def listen(self, host: str, port: int) -> int: ...
    @property
    def scheme(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def wakeup(self) -> Wakeup: ...
    def shutdown(self) -> None: ...
    def close(self) -> None: ...
    @property
    def suspended(self) -> int: ...

@final
class Verification:
    """A token that is being verified. The first answer counts."""
    def accept(self, verified: _Verified) -> None: ...
    def refuse(self, unavailable: bool) -> None: ...

@final
class TokenVerifier:
    """A verifier of the compiled part."""
    @staticmethod
    def listed(tokens: Sequence[tuple[str, _Verified]]) -> TokenVerifier: ...
    @staticmethod
    def jwt(
        issuer: str,
        audiences: Sequence[str],
        keys: str | None,
        jwks_url: str | None,
        algorithms: Sequence[str] | None,
        leeway: int,
    ) -> TokenVerifier:
        """Makes a verifier of JWTs, with a JWKS or the URL of one."""
    def check(self, token: str) -> TokenCheck: ...

@final
class TokenCheck:
    """The verification of one token."""
    def poll(self, waker: Callable[[], object]) -> tuple[bool, _Verified | None, bool]:
        """Whether it has finished, the token if it is valid, and whether it could not be verified."""

_Asked: TypeAlias = tuple[str | None, int | None, Callable[[Any], object] | None]
"""The name of the server, the time-out in milliseconds, and the progress function."""

class _CallerCallbacks(Protocol):
    """The methods of `Client` that a caller calls."""

    def _progressed(
        self, report: Callable[[Any], object], progress: float, total: float | None, message: str | None
    ) -> None: ...
    def _noted(self, server: str, note: str) -> None: ...
    def _asked(self, number: int, server: str, method: str, params: str) -> None: ...
    def _withdrawn(self, number: int) -> None: ...

@final
class Caller:
    """The compiled part of `Client`, for one event loop. Calls return numbers for `cancel`."""

    def __new__(cls, callbacks: _CallerCallbacks, settings: Mapping[str, object]) -> Caller: ...
    @property
    def wakeup(self) -> Wakeup: ...
    def far(self) -> int | None: ...
    def servers(self) -> list[str]: ...
    def failures(self) -> list[tuple[str, Any]]: ...
    def read(self, future: Any, uri: str, whole: bool, scope: _Asked) -> int: ...
    def complete(
        self, future: Any, template: str, variable: str, value: str, context: Sequence[tuple[str, str]], scope: _Asked
    ) -> int: ...
    def request(self, future: Any, method: str, params: str, scope: _Asked) -> int: ...
    def about(self, future: Any, scope: _Asked) -> int: ...
    def list(self, templates: bool, scope: _Asked) -> Stream: ...
    def watch(self, uri: str, scope: _Asked) -> Stream: ...
    def list_changes(self) -> Stream: ...
    def next(self, future: Any, stream: Stream) -> int | None: ...
    def cancel(self, number: int) -> None: ...
    def answer(self, number: int, answer: str | None, reason: str) -> None: ...
    def close(self, future: Any) -> int | None: ...
    def end(self) -> None: ...
    def shut(self) -> None: ...

@final
class Stream:
    """The source of an iterator: a list, a watch, or the changes of lists."""

    def close(self) -> None: ...
