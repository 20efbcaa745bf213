"""The compiled part: everything between bytes and the author's functions."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol, TypeAlias, final

from typing_extensions import Buffer, disjoint_base

from .functions import Mode, Slot
from .guard import Decision
from .log import Log, LogLevel
from .matches import Match, NoMatch, Rejected
from .results import CacheScope, InputResponse

__all__ = [
    "Admitted",
    "Caller",
    "Channel",
    "Context",
    "Edit",
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
    "Server",
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
_Verified: TypeAlias = tuple[str, Sequence[str], int | None, str | None]
_Head: TypeAlias = tuple[int, list[tuple[bytes, bytes]]]
_Value: TypeAlias = str | int | float | Sequence[str | int | float] | Mapping[str, str | int | float] | None

class _Driver(Protocol):
    """What a channel asks of its event loop."""

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
    """One resource, at one URI. Keyword arguments: those of `Details`, and `size` in bytes (default: a constant's)."""

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
    """A picture of a resource or a server: `src` is an `http:`, `https:` or `data:` URI."""

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
    """How one variable of a template matches.

    Args:
        kind: the type of its value. Default: a list with `*`, else scalar.
        policy: which values are refused. Default: `path` for `{+x}`, `text` in a query or fragment, else `segment`.
        empty: whether `{x}` and `{+x}` may be empty.
        chars: which characters `{+x}` may hold: `any` lets it take `?` and `#` too.
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
        """Whether every URI defines it; `None` where no template says."""

@final
class Guard:
    """What a policy, or the path of one, says of URIs."""
    def __new__(cls, policy: object, explicit_denials: bool) -> Guard: ...
    def decide(self, uri: str, principal: str, scopes: Sequence[str]) -> tuple[Decision, list[str]]: ...
    def knows_template(self, template: str, principal: str, scopes: Sequence[str]) -> bool: ...

@final
class UriTemplate:
    """A URI template (RFC 6570).

    Raises:
        InvalidTemplateError: it is not one, or nothing could match it.
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
        """The variables by name, in template order."""
    def expand(self, values: Mapping[str, _Value] | None = None, /, **named: _Value) -> str:
        """Expands the template. A variable that is not given, or `None`, is left out."""
    def match(self, uri: str) -> Match | NoMatch | Rejected:
        """Matches a URI, in any spelling.

        Raises:
            InvalidUriError: it is not a URI.
        """

@final
class TemplateSet:
    """Several templates: the most specific one that matches wins, whatever their order.

    Raises:
        TemplateConflictError: two match the same URIs.
    """

    def __new__(cls, templates: Iterable[UriTemplate | str]) -> TemplateSet: ...
    def match(self, uri: str) -> Match | NoMatch | Rejected:
        """Finds the template for a URI, in any spelling.

        Raises:
            InvalidUriError: it is not a URI.
        """
    def __len__(self) -> int: ...

@final
class Context:
    """The request that a handler answers. Usable from any thread while it does."""

    @property
    def uri(self) -> str | None:
        """The URI as the client spelled it; `None` outside of reads."""
    @property
    def principal(self) -> str:
        """Who asks: a verified identity; empty for the local process, `anonymous` for HTTP clients without a token."""
    @property
    def headers(self) -> dict[str, str]:
        """Headers of the HTTP request by lower-case names, unverified and without credentials; empty over a pipe."""
    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes of the caller's token, with those that they include."""
    @property
    def claims(self) -> dict[str, Any] | None:
        """The claims of the caller's token; `None` if there are none.

        What is kept of reads does not depend on them: a resource whose contents do has no `ttl_ms`.
        """
    @property
    def revision(self) -> str:
        """The revision of the protocol that the request is served under."""
    @property
    def client_info(self) -> dict[str, Any] | None:
        """What the client says of itself, unverified."""
    @property
    def meta(self) -> dict[str, Any] | None:
        """`_meta` of the request."""
    @property
    def trace(self) -> dict[str, str]:
        """`traceparent`, `tracestate` and `baggage` of `_meta`, if well-formed: a carrier for OpenTelemetry."""
    @property
    def inputs(self) -> dict[str, InputResponse]:
        """The client's answers to an earlier `InputRequired`, by key."""
    @property
    def state(self) -> Any:
        """The state given with that `InputRequired`; `None` at first."""
    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the answer any longer: the request was cancelled, or has run out of time."""
    @property
    def lifespan(self) -> Any:
        """What the server's lifespan gave; `None` without one."""
    @property
    def log(self) -> Log:
        """Logs to the client: `ctx.log("info", …)` or `ctx.log.info(…)`."""
    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tells the client, if it asked for that, how far the handler is. `progress` must grow."""
    def ask(self, method: str, params: object) -> Awaitable[Any]:
        """Asks a client of a legacy revision, in an `async def`: its result, or `AskFailedError`."""
    def send_log(self, level: LogLevel, data: str, name: str | None = None) -> None:
        """What `log` does with a level, JSON text and the name of a logger."""

@final
class Function:
    """An author's function, and how it is called."""

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
    """What a generator's chunks are pushed into."""

    def push(self, chunk: str | Buffer) -> bool: ...

def closest(given: str, known: Sequence[str]) -> str | None:
    """The name that `given` probably stands for."""

def main(argv: Sequence[str]) -> int:
    """Runs the command `mcp-resources`; `argv` begins with the name of the program. Returns the exit status."""

def suggested_template(text: str) -> str | None:
    """The template that was probably meant by a text in the notation of a web framework."""

def unexpected(what: str, given: str, known: Sequence[str]) -> str:
    """The message about an unknown name, with the one that was probably meant."""

@final
class Records:
    """What was recorded, for the thread that takes it."""

    def next(self) -> list[bytes] | None: ...

@final
class Watches:
    """What clients watch, for the thread that takes it."""

    def next(self) -> list[tuple[str, str, bool]] | None: ...

@final
class Pending:
    """A request whose handler is still at work."""

    def __call__(self, task: Any, /) -> None: ...
    def succeed(self, result: object) -> None: ...
    def fail(self, error: BaseException) -> None: ...

@final
class Queue:
    """The jobs of the worker threads."""

    def __new__(cls, max: int) -> Queue: ...
    def enter(self) -> None: ...
    def next(self) -> tuple[Callable[..., object], tuple[Any, ...], dict[str, Any] | None, Pending] | None:
        """The next job: what to call, its arguments, and what to tell the outcome. `None` ends the thread."""
    def failed(self) -> bool: ...
    def next_here(self) -> tuple[Callable[..., object], tuple[Any, ...], dict[str, Any] | None, Pending] | None:
        """The same as `next`, without waiting, for a thread that does not belong to the queue."""
    @property
    def waiting(self) -> int: ...
    @property
    def threads(self) -> int: ...

@final
class Edit:
    """One change of what is registered."""

    @staticmethod
    def add_resource(resource: Resource, source: Function | str | Buffer) -> Edit: ...
    @staticmethod
    def remove_resource(uri: str) -> Edit: ...
    @staticmethod
    def add_template(
        uri_template: UriTemplate,
        fields: Mapping[str, Any],
        functions: tuple[Function, Mapping[str, Function], Function | None],
    ) -> Edit: ...
    @staticmethod
    def remove_template(uri_template: str) -> Edit: ...

@final
class Server:
    """An engine, and the functions behind it."""

    def __new__(
        cls,
        name: str,
        version: str,
        fields: Mapping[str, Any],
        queue: Queue,
        spawn: Callable[[Queue], None],
        audit: Any = None,
    ) -> Server: ...
    def extend(
        self,
        method: str,
        function: Function,
        name_param: str | None,
        capability: tuple[str, str] | None,
        lists: str | None,
    ) -> None:
        """Declares a method that is not ours, before the engine is made."""
    def publish(self, edits: Sequence[Edit]) -> list[str]: ...
    def mount(self, providers: Sequence[Provider]) -> None: ...
    def unmount(self, provider: Provider) -> bool: ...
    def watch(self, uri: str, start: Callable[[Watches], object]) -> str: ...
    def notify_updated(self, uri: str) -> None: ...
    def notify_list_changed(self, lists: str) -> None: ...
    def shutdown(self) -> None: ...
    def revoke(self, subject: str) -> None: ...
    def metrics_text(self) -> str | None: ...
    def flush_audit(self) -> None: ...
    def stop(self) -> None: ...
    def forked(self) -> None: ...
    def set_lifespan(self, value: object) -> None: ...
    def set_time(self, tick: int, unix: int) -> None: ...
    @property
    def grace(self) -> int: ...
    @property
    def queue(self) -> Queue: ...
    @property
    def handlers(self) -> int: ...

@disjoint_base
class Provider:
    """A source of resources for `ResourceServer.mount`. The functions of `mcp_resources.providers` make them."""

@final
class Memory(Provider):
    """A folder in memory: `memory:///{+path}`. Clients list, read and watch what a program puts into it.

    For any thread. Every server that mounts it serves it. Nothing is ever thrown out to make room.
    """

    def put(self, path: str, body: str | Buffer, mime_type: str | None = None) -> None:
        """Puts a text or bytes at `path`, such as `notes/today.md`, in the place of what was there.

        Clients that watch it are told, and those that listen to the lists if it is new.

        Args:
            path: a text; what no URI can have is encoded.
            body: the contents. A buffer is copied.
            mime_type: `text/plain` for a text and `application/octet-stream` for bytes, if it is not given.

        Raises:
            TypeError: `path` is no text, or `body` is neither text nor bytes.
        """
    def remove(self, path: str) -> bool:
        """Takes out what is at `path`. `False` if nothing is."""
    def __len__(self) -> int:
        """How many entries there are."""

@final
class Metrics(Provider):
    """Series of numbers: `metrics:///{name}`. A program pushes samples; clients list, read and watch the series.

    For any thread, before, during and after a mount. It is in one server at a time.
    """

    def push(self, name: str, value: float, at: datetime | float | None = None) -> None:
        """Adds a sample to the series `name`, which begins with its first sample.

        Subscribers are notified once for each `interval`. A push neither waits nor allocates once the series exists.

        Args:
            name: 1 to 256 bytes without control characters, such as `queue_length`.
            value: a number. NaN is kept, and is `null` in JSON.
            at: when it was measured: a datetime, or seconds since 1970. Default: now. A full series drops a sample
                that is older than all that it keeps.

        Raises:
            TypeError: an argument has a wrong type.
            ValueError: there are too many series, or the name or the time is not allowed.
        """
    @property
    def refused(self) -> int:
        """How many samples were refused because there were too many series."""

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
        """Puts a text or bytes under an id, in the place of what was there.

        Clients that watch it are notified, and those that listen to the lists if it is new. Results that were used
        least recently make room.

        Args:
            id: 1 to 1,024 bytes of any text; a slash is `~2F` in its URI.
            body: the contents. A buffer is copied.
            ttl: how long it is kept: `"10min"`, or milliseconds. Default: the `ttl` of the cache.
            mime_type: `text/plain` for a text and `application/octet-stream` for bytes, if it is not given.
            principal: the subject of the only tokens that see it; `""` is the client on stdio. Default: everybody.

        Raises:
            ValueError: the id or the time cannot be kept, or the contents are larger than the cache.
            TypeError: `body` is neither text nor bytes, or an argument has a wrong type.
            OSError: the file cannot be written.
        """
    def get(self, id: str, *, principal: str | None = None) -> str | bytes | None:
        """The contents under an id that everybody sees, or that this principal sees; `None` if there are none.

        Raises:
            OSError: the file cannot be read.
        """
    def remove(self, id: str, *, principal: str | None = None) -> bool:
        """Takes out what everybody, or this principal, has under an id. `False` if nothing is.

        Raises:
            OSError: the file cannot be written.
        """
    def __len__(self) -> int:
        """How many results there are, of everybody and of all principals."""

def embedded(options: object, embedder: object) -> Provider:
    """A provider of documents that are found by vectors too, which `embedder` makes. The rest is as with `declared`."""

def declared(kind: str, options: object) -> Provider:
    """A provider of this kind, with its options by their names.

    Raises:
        ValueError: an option has a value that is not allowed.
        TypeError: an option has a wrong type, or there is none of this name.
    """

def memory() -> Memory:
    """An empty folder in memory."""

def metrics(options: object) -> Metrics:
    """Series of numbers, with their options by their names.

    Raises:
        ValueError: an option has a value that is not allowed.
        TypeError: an option has a wrong type, or there is none of this name.
    """

@final
class Wakeup:
    """What an event loop watches for threads that have something for it."""
    def fileno(self) -> int: ...
    def work(self) -> bool:
        """Takes a ring, and does what it was for. Whether to watch on."""

@final
class Channel:
    """One client: what the event loop calls, and what handlers answer to."""

    def __new__(
        cls, server: Server, driver: _Driver, *, stdio: bool, threads: bool = True, delivers: bool = True
    ) -> Channel: ...
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
        """Looks at the head of a request: it may come in, or this is the response."""
    def open(self, request: Identified, body: bytes) -> tuple[Exchange, _Turn]:
        """Takes a request with its body. Handlers run, or are started."""
    @property
    def wakeup(self) -> Wakeup: ...
    def timer(self) -> None: ...
    def shutdown(self) -> None: ...
    def close(self) -> None:
        """Ends every session: what is in flight is cancelled."""

@final
class Admitted:
    """A request whose head may come in."""
    @property
    def token(self) -> str | None: ...
    def identify(
        self, verified: _Verified | None = None, denied: bool | None = None
    ) -> Identified | tuple[_Head, bytes]:
        """Goes on, once: with what the token stands for, or as it is not valid (`False`) or could not be verified."""

@final
class Identified:
    """A request whose head has passed: what remains is its body."""
    @property
    def body_limit(self) -> int:
        """How many bytes of body to read."""
    def too_large(self) -> tuple[_Head, bytes]:
        """The response to a longer body."""
    @property
    def body_timeout(self) -> float:
        """How many seconds to wait for the whole body."""
    def too_late(self) -> tuple[_Head, bytes]:
        """The response to a body that takes longer."""
    def receiving(self) -> Receiving:
        """Counts a body that comes in several parts."""

@final
class Receiving:
    """A body that comes in several parts."""
    def take(self, bytes: int) -> tuple[_Head, bytes] | None:
        """Counts further bytes. The response to send instead of reading on, if it is too much."""
    def close(self) -> None:
        """Releases the bytes counted so far: the body is complete, or reading has stopped."""

@final
class Exchange:
    """A response that is being made."""
    def register(self, ring: Callable[[], object]) -> None: ...
    def deliver(self, room: int) -> _Turn: ...
    def closed(self) -> None: ...
    @property
    def deadline(self) -> float | None: ...

@final
class HttpServer:
    """The native HTTP server: its threads read, answer what the engine can, and write."""
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
    def wakeup(self) -> Wakeup: ...
    def shutdown(self) -> None: ...
    def close(self) -> None: ...
    @property
    def suspended(self) -> int: ...

@final
class Verification:
    """A token that waits for its verifier. The first answer counts."""
    def accept(self, verified: _Verified) -> None: ...
    def refuse(self, unavailable: bool) -> None: ...

@final
class TokenVerifier:
    """A verifier of the core's."""
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
        """Verifies JWTs, with a JWKS or with the one at a URL."""
    def check(self, token: str) -> TokenCheck: ...

@final
class TokenCheck:
    """One token that is being verified."""
    def poll(self, waker: Callable[[], object]) -> tuple[bool, _Verified | None, bool]:
        """Whether that is the end, the token if it is good, and whether that could not be found out."""

@final
class TestClient:
    """A client's machine, for `mcp_resources.testing`: requests become bytes, and bytes messages."""
    def __new__(cls, revision: str, capabilities: str) -> TestClient: ...
    @property
    def handshake(self) -> int | None: ...
    def send(self, ask: str, params: str, meta: str) -> int: ...
    def cancel(self, id: int) -> None: ...
    def output(self) -> bytes: ...
    def received(self, bytes: bytes) -> list[tuple[str, int | None, str]]: ...

_Asked: TypeAlias = tuple[str | None, int | None, Callable[[Any], object] | None]
"""Which server, how many milliseconds at most, and what is called with progress."""

class _CallerHost(Protocol):
    """What a caller asks of the package's client."""

    def _progressed(
        self, report: Callable[[Any], object], progress: float, total: float | None, message: str | None
    ) -> None: ...
    def _noted(self, server: str, note: str) -> None: ...
    def _asked(self, number: int, server: str, method: str, params: str) -> None: ...
    def _withdrawn(self, number: int) -> None: ...

@final
class Caller:
    """A client of servers, as one event loop uses it. The numbers that calls return are for `cancel`."""

    def __new__(cls, host: _CallerHost, settings: Mapping[str, object]) -> Caller: ...
    @property
    def wakeup(self) -> Wakeup: ...
    def far(self) -> int | None: ...
    def servers(self) -> list[str]: ...
    def failures(self) -> list[tuple[str, Any]]: ...
    def read(self, future: Any, uri: str, whole: bool, asked: _Asked) -> int: ...
    def complete(
        self, future: Any, what: tuple[str, str, str], context: Sequence[tuple[str, str]], asked: _Asked
    ) -> int: ...
    def request(self, future: Any, method: str, params: str, asked: _Asked) -> int: ...
    def about(self, future: Any, asked: _Asked) -> int: ...
    def list(self, templates: bool, asked: _Asked) -> Stream: ...
    def watch(self, uri: str, asked: _Asked) -> Stream: ...
    def list_changes(self) -> Stream: ...
    def next(self, future: Any, stream: Stream) -> int | None: ...
    def cancel(self, number: int) -> None: ...
    def answer(self, number: int, answer: str | None, reason: str) -> None: ...
    def close(self, future: Any) -> int | None: ...
    def end(self) -> None: ...
    def shut(self) -> None: ...

@final
class Stream:
    """What is iterated over: a list, a watch, or the changes of lists."""

    def close(self) -> None: ...
