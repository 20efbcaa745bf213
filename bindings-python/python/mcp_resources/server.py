"""The server: what an author registers, and how it is run."""

import asyncio
import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, Unpack, overload

from . import _core, pool
from ._core import Edit, Provider, Resource
from .encoding import to_json
from .functions import Reader, helper, reader
from .handler import ResourceHandler
from .lifecycle import watch
from .lifespan import Life
from .log import warned
from .options import HttpOptions, ResourceDetails, ServerOptions
from .recording import recorder
from .results import CacheHint
from .watches import Watches

if TYPE_CHECKING:
    from .asgi import AsgiApp
    from .auth import Auth
    from .options import Tls

__all__ = ["ResourceServer"]

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


class _Batch:
    """The edits of one `with server.batch()`; `server` is `None` once it is over."""

    def __init__(self, server: "ResourceServer") -> None:
        self.server: ResourceServer | None = server
        self.edits: list[Edit] = []


_batch: ContextVar[_Batch | None] = ContextVar("mcp_resources_batch", default=None)
"""The batch of this thread and task. A task that outlives it finds it over."""


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _not_on_stdio(options: Mapping[str, object]) -> str:
    """What is wrong with options of `run` when it serves stdio."""
    known = ["host", "port", "auth", "tls", "loop_factory", *HttpOptions.__annotations__]
    for name in options:
        if name not in known:
            return _core.unexpected("option", name, known)
    # Only plain values are repeated: `auth` and `tls` are long, and hold what does not belong in a log.
    given = ", ".join(
        f"{name}={value!r}" if isinstance(value, str | int | float) else f"{name}=…" for name, value in options.items()
    )
    return f'run() serves stdio, which takes no {", ".join(options)}; write run("http", {given})'


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuses what is a function or a mapping for Python alone: the core does not see these."""
    hints = {
        "encoder": "",
        "redact": "; detectors belong to the policy: guard={'redact': […]}",
        "lifespan": "",
    }
    for name, hint in hints.items():
        given = options.get(name)
        if name == "lifespan" and hasattr(given, "__aenter__"):
            raise TypeError("lifespan is an open context manager, expected the function that makes one: without ()")
        if given is not None and not callable(given):
            raise TypeError(f"{name} is {given!r}, expected a function{hint}")
    for name in ("list_cache", "discover_cache"):
        if not isinstance(options.get(name, _NO_HINT), CacheHint):
            raise TypeError(f'{name} is {options[name]!r}, expected a CacheHint, such as CacheHint(60_000, "private")')
    extensions = options.get("extensions", {})
    if not isinstance(extensions, Mapping):
        raise TypeError(f"extensions is {extensions!r}, expected a dict of settings by names")


_NO_HINT = CacheHint()


def _check_text(field: str, given: object) -> None:
    if not isinstance(given, str):
        raise TypeError(f"{field} is {given!r}, expected a text")


def _undecorated(decorator: str, needed: str, given: object) -> str:
    """What is wrong with a decorator that was given something else than its text."""
    if callable(given):
        name = getattr(given, "__name__", "the function")
        return f'{decorator} needs {needed}, got the function {name}; write @server.{decorator}("…") above it'
    return f"{decorator} needs {needed}, got {given!r}"


def _check_source(uri: str, text: object, bytes: object) -> None:
    if text is not None and not isinstance(text, str):
        raise TypeError(f"{uri}: text is {text!r}, expected a text; bytes go into bytes=, a function into read=")
    if isinstance(bytes, str):
        raise TypeError(f"{uri}: bytes is the text {bytes!r}; a text goes into text=")


def _no_provider(method: str, given: object) -> str:
    """What is wrong with something that is no provider."""
    makers = f"of mcp_resources.providers, such as {method}(providers.memory())"
    if isinstance(given, type):
        return f"{method} takes a provider, got the class {given.__name__}; call a function {makers}"
    if inspect.iscoroutine(given):
        return f"{method} takes a provider, got a coroutine; await it first"
    if callable(given):
        name = getattr(given, "__name__", "the function")
        return f"{method} takes a provider, got the function {name}; call it: {method}({name}())"
    if isinstance(given, list | tuple):
        return f"{method} takes a provider, got a {type(given).__name__}; write {method}(*…)"
    return f"{method} takes a provider, got {given!r:.120}; make one with a function {makers}"


class ResourceServer:
    """A server of resources.

    Args:
        name: its name, for programs.
        version: its own version.
        options: see `ServerOptions`.

    Raises:
        RegistrationError: an option has a value that the protocol does not allow.
    """

    def __init__(self, name: str, *, version: str = "0.0.0", **options: Unpack[ServerOptions]) -> None:
        _check_text("name", name)
        _check_text("version", version)
        _check_options(options)
        extensions = [(key, to_json(settings)) for key, settings in options.get("extensions", {}).items()]
        audit = options.pop("audit", None)
        self._encoder = options.pop("encoder", None)
        lifespan = options.pop("lifespan", None)
        fields = {**options, "extensions": extensions, "process_key": os.urandom(32)}
        self.name = name
        taken = recorder(audit) if callable(audit) else audit
        self._core = _core.Server(name, version, fields, _core.Queue(pool.size()), pool.spawn, taken)
        watch(self._core)
        self._watches = Watches(self._core)
        self._life = None if lifespan is None else Life(lifespan, self._core.set_lifespan)
        self._readers: dict[tuple[Callable[..., object], bool, bool], Reader] = {}
        self._redacts = options.get("redact") is not None
        self._warned: set[str] = set()

    def resource(
        self, uri: str, **details: Unpack[ResourceDetails]
    ) -> Callable[[Callable[P, R]], ResourceHandler[P, R]]:
        """Registers the decorated function as the reader of a resource or, if `uri` has variables, of a template.

        The function takes the template's variables by name, typed by its annotations, and a `Context` if one parameter
        is annotated so or called `ctx`. A `def` runs on a worker thread, an `async def` on the event loop.

        Clients see resources in the order of their URIs, whatever the order of registration: a cursor then survives
        every insertion and removal. Number with leading zeros where the order matters (`r02` before `r10`).

        Raises:
            RegistrationError: the URI, a detail or the function's parameters are wrong.
        """
        if not isinstance(uri, str):
            raise TypeError(_undecorated("resource", "a URI", uri))

        def register(function: Callable[P, R]) -> ResourceHandler[P, R]:
            registrar = (self._publish, self._watches)
            return ResourceHandler(registrar, uri, function, {**details, "encoder": self._encoder})

        return register

    @overload
    def add_resource(self, resource: Resource, *, text: str, replace: bool = False) -> None: ...
    @overload
    def add_resource(self, resource: Resource, *, bytes: Any, replace: bool = False) -> None: ...
    @overload
    def add_resource(
        self, resource: Resource, *, read: Callable[..., object], inline: bool = False, replace: bool = False
    ) -> None: ...
    def add_resource(
        self,
        resource: Resource,
        *,
        text: str | None = None,
        bytes: Any = None,
        read: Callable[..., object] | None = None,
        inline: bool = False,
        replace: bool = False,
    ) -> None:
        """Adds a resource: with a constant `text` or constant `bytes`, or a function that reads it.

        `replace` puts it in the place of one that is registered already.

        From any thread, also while the server runs; clients are told that the list has changed.

        Raises:
            RegistrationError: the URI is registered already, or a field is wrong.
        """
        if not isinstance(resource, Resource):
            raise TypeError(f"add_resource takes a Resource, got {resource!r}; write Resource({resource!r})")
        given = [source for source in (text, bytes, read) if source is not None]
        if len(given) != 1:
            got = ", ".join(
                name for name, value in (("text", text), ("bytes", bytes), ("read", read)) if value is not None
            )
            raise TypeError(f"{resource.uri}: give one of text, bytes and read, got {got or 'none of them'}")
        _check_source(resource.uri, text, bytes)
        source: Any = given[0]
        if read is not None:
            source = self._reader(read, resource.mime_type is None, inline).function
        elif self._redacts:
            source = reader(lambda: given[0], None, {}, (True, False, None)).function
        removal = [Edit.remove_resource(resource.uri)] if replace else []
        self._publish([*removal, Edit.add_resource(resource, source)])

    def remove_resource(self, uri: str) -> None:
        """Removes the resource with this URI, in any spelling; nothing if there is none. From any thread.

        Raises:
            InvalidUri: it is not a URI.
        """
        self._publish([Edit.remove_resource(uri)])

    def remove_template(self, uri_template: str) -> None:
        """Removes the template with exactly this text; nothing if there is none. From any thread."""
        self._publish([Edit.remove_template(uri_template)])

    def mount(self, *providers: Provider) -> None:
        """Serves what providers have, all of them or none: see `mcp_resources.providers`.

        From any thread, also while the server runs; clients are told that the list has changed. A batch holds nothing
        back. One provider may be mounted in several servers, unless it says otherwise.

        Raises:
            RegistrationError: one is mounted here already, cannot be mounted, or has a URI that something else serves.
        """
        for provider in providers:
            if not isinstance(provider, Provider):
                raise TypeError(_no_provider("mount", provider))
        self._core.mount(providers)

    def unmount(self, provider: Provider) -> bool:
        """Ends what `mount` began. `False` if the provider is not mounted here.

        What it is at work on is still answered. From any thread; clients are told that its resources are gone.
        """
        if not isinstance(provider, Provider):
            raise TypeError(_no_provider("unmount", provider))
        return self._core.unmount(provider)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Publishes what is added and removed inside all at once, or not at all if something is wrong.

        Much faster for many templates. What other threads and tasks change meanwhile is published as ever.
        """
        if self._open_batch() is not None:
            raise RuntimeError("a batch is open already; a batch in a batch has no meaning")
        batch = _Batch(self)
        token = _batch.set(batch)
        try:
            yield
        finally:
            _batch.reset(token)
            batch.server = None
        self._publish(batch.edits)

    def _open_batch(self) -> "_Batch | None":
        batch = _batch.get()
        return batch if batch is not None and batch.server is self else None

    def method(
        self,
        method: str,
        *,
        name_param: str | None = None,
        capability: tuple[str, Mapping[str, object]] | None = None,
        lists: Literal["tools", "prompts"] | None = None,
        inline: bool = False,
    ) -> Callable[[F], F]:
        """Answers a custom method with the decorated function, called with its params as a `dict`.

        To be declared before the first resource is registered. The function returns the members of the result.

        Args:
            method: its name, such as `vendor/thing`.
            name_param: the member of the params that the HTTP header `Mcp-Name` repeats.
            capability: a capability to declare: its name and settings.
            lists: what it lists, if clients may listen to changes of that.
            inline: whether a `def` runs on the event loop itself.

        Raises:
            RegistrationError: it is a method of ours, or too late.
        """
        if not isinstance(method, str):
            raise TypeError(_undecorated("method", "a name", method))

        def register(function: F) -> F:
            declared = None if capability is None else (capability[0], to_json(capability[1]))
            called = helper(function, ("params",), inline, self._encoder)
            self._core.extend(method, called, name_param, declared, lists)
            return function

        return register

    def notify_updated(self, uri: str) -> None:
        """Tells those who watch this URI that its contents have changed. From any thread.

        Raises:
            InvalidUri: it is not a URI.
        """
        _check_text("uri", uri)
        self._core.notify_updated(uri)

    def notify_list_changed(self, lists: Literal["resources", "tools", "prompts"] = "resources") -> None:
        """Tells clients that what `.list` callbacks give has changed. From any thread."""
        self._core.notify_list_changed(lists)

    def revoke(self, subject: str) -> None:
        """Ends the listens and the streams of notifications of a subject whose tokens are no longer valid.

        Tokens of this subject that were verified before are verified again at their next use, also in a session: refuse
        them in `verify` of `Auth`. From any thread.
        """
        _check_text("subject", subject)
        self._core.revoke(subject)

    def metrics_text(self) -> str | None:
        """What was counted, in the text format of Prometheus, for a page of your own.

        `None` unless the option `metrics` is on, or an HTTP endpoint shows metrics.
        """
        return self._core.metrics_text()

    def flush_audit(self) -> None:
        """Waits until what `audit` names has taken all that is recorded now; a second at most.

        `run` does so when it ends, and the end of the process too.
        """
        self._core.flush_audit()

    @overload
    def run(
        self,
        transport: Literal["stdio"] = "stdio",
        *,
        loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    ) -> None: ...
    @overload
    def run(
        self,
        transport: Literal["http"],
        *,
        host: str = "127.0.0.1",
        port: int = 8000,
        auth: "Auth | None" = None,
        tls: "Tls | None" = None,
        loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
        **options: Unpack[HttpOptions],
    ) -> None: ...
    def run(
        self,
        transport: Literal["stdio", "http"] = "stdio",
        *,
        loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
        **options: Any,
    ) -> None:
        """Serves until SIGTERM or SIGINT comes or, on stdio, the client closes its end.

        Args:
            transport: standard input and output, or Streamable HTTP.
            host: the address to listen at. Default: this machine alone.
            port: the port; 0 is any free one. The URL is told on standard error.
            auth: what bearer tokens must be. Default: nobody is asked for one.
            tls: the files of certificate and key to serve `https` with. Default: `http`.
            loop_factory: makes the event loop, such as `uvloop.new_event_loop`.
            options: see `HttpOptions`.

        Raises:
            OSError: the address cannot be had.
            RegistrationError: an option has a value that is not allowed.
        """
        if transport == "stdio":
            from .stdio import serve

            if options:
                raise TypeError(_not_on_stdio(options))
            work: Callable[..., Any] = functools.partial(serve, self._core)
        elif transport == "http":
            from .http import announce
            from .http import serve as serve_http

            work = functools.partial(serve_http, self._core, started=announce, **options)
        else:
            raise ValueError(f"transport is {transport!r}, expected 'stdio' or 'http'")
        if _is_in_loop():
            call = "serve_stdio()" if transport == "stdio" else "serve_http(…)"
            raise RuntimeError(f"run() starts an event loop, and there is one already; write `await server.{call}`")
        try:
            with asyncio.Runner(loop_factory=loop_factory) as runner:
                runner.run(self._serving(functools.partial(work, signals=True)))
        finally:
            self.flush_audit()

    async def _serving(self, work: Callable[[], Any]) -> None:
        if self._life is None:
            await work()
            return
        async with self._life.entered(self):
            await work()

    async def serve_stdio(self) -> None:
        """Serves standard input and output on the running event loop, until the client closes its end.

        Takes descriptors 0 and 1 away from everything else in the process. When it is cancelled, it ends as if the
        client had closed its end.
        """
        from .stdio import serve

        await self._serving(functools.partial(serve, self._core))

    async def serve_http(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 8000,
        auth: "Auth | None" = None,
        tls: "Tls | None" = None,
        started: Callable[[str], None] | None = None,
        **options: Unpack[HttpOptions],
    ) -> None:
        """Serves Streamable HTTP; handlers run on the running event loop. Ends gracefully when it is cancelled.

        Args:
            host: see `run`.
            port: see `run`.
            auth: see `run`.
            tls: see `run`.
            options: see `HttpOptions`.
            started: called with the URL when connections are taken.

        Raises:
            OSError, RegistrationError: see `run`.
        """
        from .http import serve

        given: dict[str, Any] = {"host": host, "port": port, "auth": auth, "tls": tls, "started": started}
        await self._serving(functools.partial(serve, self._core, **given, **options))

    def asgi(self, *, auth: "Auth | None" = None, **options: Unpack[HttpOptions]) -> "AsgiApp":
        """An ASGI application that serves this server: for uvicorn and others, or mounted in Starlette or FastAPI.

        Args:
            auth: what bearer tokens must be. Default: nobody is asked for one.
            options: see `HttpOptions`. `path` is what follows the path that the application is mounted at.

        Raises:
            RegistrationError: an option has a value that is not allowed.
        """
        from .asgi import App

        for name in ("host", "port", "tls"):
            if name in options:
                raise TypeError(f"asgi() takes no {name}: the host that serves the application has it, such as uvicorn")
        return App(self._core, auth, {**options}, None if self._life is None else (self._life, self))

    def _reader(self, function: Callable[..., object], types_json: bool, inline: bool) -> Reader:
        if isinstance(read := function, ResourceHandler):
            function = read._function
        key = (function, types_json, inline)
        found = self._readers.get(key)
        if found is None:
            found = self._readers[key] = reader(function, None, {}, (inline, types_json, self._encoder))
        return found

    def _publish(self, edits: list[Edit]) -> None:
        batch = self._open_batch()
        if batch is not None:
            batch.edits.extend(edits)
            return
        for warning in self._core.publish(edits):
            if warning not in self._warned:
                self._warned.add(warning)
                warned(self.name, warning)
