"""`ResourceServer`: registers resources, templates, providers, tools, prompts and methods, and serves them."""

import asyncio
import functools
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar, Unpack, overload

from . import _core, checks, pool
from ._core import Edit, Provider, Resource
from .encoding import is_bytes, to_json
from .functions import Reader, helper, reader
from .handler import ResourceHandler
from .lifecycle import watch
from .lifespan import Life
from .log import warned
from .loops import no_running_loop
from .options import HttpOptions, PromptArgument, PromptDetails, ResourceDetails, ServerOptions, ToolDetails, UiDetails
from .recording import recorder
from .server_checks import check_options
from .watches import Watches

if TYPE_CHECKING:
    from .asgi import AsgiApp
    from .attach import Attachment
    from .auth import Auth
    from .options import Tls
    from .tools import PromptHandler

__all__ = ["ResourceServer"]

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


class _Batch:
    """The edits of one `with server.batch()`. `server` is `None` after the block has ended."""

    def __init__(self, server: "ResourceServer") -> None:
        self.server: ResourceServer | None = server
        self.edits: list[Edit] = []


_batch: ContextVar[_Batch | None] = ContextVar("mcp_resources_batch", default=None)
"""The open batch of this thread and task. A task started inside a batch may run on after the batch has ended."""


def _not_on_stdio(options: Mapping[str, object]) -> str:
    """The error message for options that `run` does not take on stdio."""
    known = ["host", "port", "auth", "tls", "loop_factory", *HttpOptions.__annotations__]
    for name in options:
        if name not in known:
            return _core.unexpected("option", name, known)
    # Only plain values are repeated: `auth` and `tls` may hold secrets, which must not reach a log.
    given = ", ".join(
        f"{name}={value!r}" if isinstance(value, str | int | float) else f"{name}=…" for name, value in options.items()
    )
    return f'run() serves stdio, which takes no {", ".join(options)}; write run("http", {given})'


def _undecorated(decorator: str, needed: str, given: object) -> str:
    """The error message for a decorator that was not given the text it needs."""
    if callable(given):
        name = getattr(given, "__name__", "the function")
        return f'{decorator} needs {needed}, got the function {name}; write @server.{decorator}("…") above it'
    return f"{decorator} needs {needed}, got {given!r}"


def _check_source(uri: str, text: object, bytes: object) -> None:
    if text is not None and not isinstance(text, str):
        raise TypeError(f"{uri}: text is {text!r}, expected a text; bytes go into bytes=, a function into read=")
    if isinstance(bytes, str):
        raise TypeError(f"{uri}: bytes is the text {bytes!r}; a text goes into text=")
    if bytes is not None and not is_bytes(bytes):
        shown = checks.shown(bytes)
        raise TypeError(f"{uri}: bytes is {shown}, expected bytes or a buffer of bytes, such as its tobytes()")


def _check_capability(given: Any) -> None:
    is_pair = isinstance(given, tuple | list) and len(given) == 2
    if not is_pair or not isinstance(given[0], str) or not isinstance(given[1], Mapping):
        raise TypeError(f'capability is {given!r}, expected a name with its settings, such as ("tools", {{}})')


def _no_provider(method: str, given: object) -> str:
    """The error message for an argument of `mount` or `unmount` that is not a provider."""
    makers = f"of mcp_resources.providers, such as {method}(providers.memory())"
    if isinstance(given, ResourceServer):
        return f"{method} takes a provider, got a ResourceServer; register its resources on this server instead"
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
    """An MCP server: register functions with `resource`, `tool` and `prompt`, then serve them with `run`.

    Args:
        name: the name of the server, for programs.
        version: the version of the server itself. Default `0.0.0`.
        options: see `ServerOptions`.

    Raises:
        TypeError: an option does not exist, or its value has the wrong type.
        RegistrationError: the protocol does not allow the value of an option.
    """

    name: str
    """The name of the server, for programs."""

    def __init__(self, name: str, *, version: str = "0.0.0", **options: Unpack[ServerOptions]) -> None:
        checks.text("name", name)
        checks.text("version", version)
        self._set_up(name, (name, version), options)

    @classmethod
    def from_config(cls, path: str | os.PathLike[str], *, watch: bool = True, **options: Unpack[ServerOptions]) -> Self:
        """Makes a server from the configuration file of `mcp-resources serve`, with its sources mounted.

        It has the file's guard, limits and audit log. `run("http")`, `serve_http` and `asgi` begin with its paths and
        tokens, the first two with its TLS too; their own options replace those of the file. Register further resources
        and tools as ever.

        A changed guard, `for`, name, entry or file of tokens takes effect without ending sessions. A file with a
        mistake is logged, and changes nothing. `__init__` of a subclass is not called.

        Args:
            path: the file, in YAML or JSON. Its relative paths begin at its folder.
            watch: whether changes of the file take effect while the server runs. Default `True`. Tokens and
                certificates are read again in any case.
            options: see `ServerOptions`. They replace those of the file; `guard` and the texts about the server stand
                in the file alone.

        Raises:
            TypeError: an option does not exist, stands in the file alone, or its value has the wrong type.
            RegistrationError: the file has a mistake. The message is that of `mcp-resources serve --check`.
        """
        for name in options:
            if name in _core.Config.options():
                raise TypeError(f"{name} stands in the configuration file, whose changes take effect; write it there")
        config = _core.Config(os.fspath(path), watch)
        server = cls.__new__(cls)
        server._set_up(config.name, config, options)
        return server

    def _set_up(self, name: str, about: "tuple[str, str] | _core.Config", options: ServerOptions) -> None:
        check_options(options)
        extensions = [(key, to_json(settings)) for key, settings in options.get("extensions", {}).items()]
        audit = options.pop("audit", None)
        self._encoder = options.pop("encoder", None)
        lifespan = options.pop("lifespan", None)
        fields = {**options, "extensions": extensions}
        self.name = name
        taken = recorder(audit) if callable(audit) else audit
        self._core = _core.Server(about, fields, _core.Queue(pool.size()), pool.spawn, taken)
        watch(self._core)
        self._watches = Watches(self._core)
        self._life = None if lifespan is None else Life(lifespan, self._core.set_lifespan)
        self._attached: Attachment | None = None
        self._readers: dict[tuple[Callable[..., object], bool, bool], Reader] = {}
        self._redacts = options.get("redact") is not None
        self._warned: set[str] = set()

    def resource(
        self, uri: str, **details: Unpack[ResourceDetails]
    ) -> Callable[[Callable[P, R]], ResourceHandler[P, R]]:
        """Registers the decorated function: it reads one resource or, if `uri` has variables, those of a template.

        The function takes the variables of the template by name, converted to the types of its annotations. A parameter
        that is called `ctx` or annotated with `Context` gets the request. A `def` runs on a worker thread, an
        `async def` on the event loop.

        Clients list resources sorted by URI, not in the order of registration, so that a cursor stays valid when
        resources are added or removed. Use leading zeros where the order matters: `r02` before `r10`.

        Args:
            uri: the URI, such as `config://app`, or a URI template (RFC 6570), such as `note://{id}`.
            details: see `ResourceDetails`.

        Raises:
            TypeError: a detail does not exist, or its value has the wrong type.
            RegistrationError: the URI is not valid or is registered already, or the parameters of the function do not
                fit the variables.
        """
        if not isinstance(uri, str):
            raise TypeError(_undecorated("resource", "a URI", uri))

        def register(function: Callable[P, R]) -> ResourceHandler[P, R]:
            registrar = (self._publish, self._watches, self._core.check_link)
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
        """Adds a resource with a constant `text`, constant `bytes`, or a function that reads it.

        Can be called from any thread, also while the server runs; clients are notified that the list has changed.

        Args:
            resource: the URI and its details.
            text: the contents, a text.
            bytes: the contents, bytes or a buffer.
            read: the function that returns the contents, called for each read.
            inline: whether `read`, if it is a `def`, runs on the event loop. Default `False`: on a worker thread.
            replace: whether it replaces a resource with the same URI. Default `False`: that is an error.

        Raises:
            TypeError: not exactly one of `text`, `bytes` and `read` is given, or one has the wrong type.
            RegistrationError: the URI is registered already, or a detail is not allowed.
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
        if read is None:
            source = self._constant(given[0])
        else:
            source = self._reader(read, resource.mime_type is None, inline).function
        removal = [Edit.remove_resource(resource.uri)] if replace else []
        self._publish([*removal, Edit.add_resource(resource, source)])

    def ui(self, uri: str, *, html: str, **details: Unpack[UiDetails]) -> str:
        """Registers an HTML page that a host with MCP Apps shows beside the results of a tool.

        A tool names it with `@server.tool(ui=page)`. To other clients it is an ordinary resource. Can be called from
        any thread, also while the server runs; clients are notified that the list has changed.

        Args:
            uri: the URI, such as `ui://shop/order`.
            html: the HTML5 document.
            details: see `UiDetails`.

        Returns:
            `uri`.

        Raises:
            TypeError: a detail does not exist, or its value has the wrong type.
            RegistrationError: the URI is registered already or has another scheme, or a detail is not allowed.
        """
        checks.text("uri", uri)
        checks.text("html", html)
        given: dict[str, Any] = {**details}
        removal = [Edit.remove_resource(uri)] if given.pop("replace", False) else []
        self._publish([*removal, Edit.add_page({"uri": uri, **given}, self._constant(html))])
        return uri

    def _constant(self, contents: Any) -> Any:
        """The source of constant contents: a function if another one changes what is sent."""
        return reader(lambda: contents, None, {}, (True, False, None)).function if self._redacts else contents

    def remove_resource(self, uri: str) -> None:
        """Removes the resource with this URI, in any spelling. Does nothing if there is none.

        Can be called from any thread, also while the server runs; clients are notified that the list has changed.

        Raises:
            InvalidUriError: `uri` is not a URI.
            RegistrationError: a typed variable of its template has another spelling, such as `07` for an `int`.
        """
        checks.text("uri", uri)
        self._publish([Edit.remove_resource(uri)])

    def remove_template(self, uri_template: str) -> None:
        """Removes the template with exactly this text. Does nothing if there is none.

        Can be called from any thread, also while the server runs; clients are notified that the list has changed.
        """
        checks.text("uri_template", uri_template)
        self._publish([Edit.remove_template(uri_template)])

    def mount(self, *providers: Provider) -> None:
        """Mounts providers, all of them or none: clients list, read and watch their resources like any other.

        Can be called from any thread, also while the server runs; clients are notified that the list has changed. Takes
        effect at once, also inside a batch. A provider can be mounted in several servers unless its documentation says
        otherwise.

        Args:
            providers: made by the functions of `mcp_resources.providers`.

        Raises:
            TypeError: an argument is not a provider.
            RegistrationError: a provider is mounted already, or serves a URI that is registered already.
        """
        for provider in providers:
            if not isinstance(provider, Provider):
                raise TypeError(_no_provider("mount", provider))
        self._core.mount(providers)

    def unmount(self, provider: Provider) -> bool:
        """Unmounts a provider. Returns `False` if it is not mounted in this server.

        Requests that it has begun to answer are still answered. Can be called from any thread; clients are notified
        that its resources are gone.
        """
        if not isinstance(provider, Provider):
            raise TypeError(_no_provider("unmount", provider))
        return self._core.unmount(provider)

    def attach(self, app: Any, *, adopt: bool = True) -> "ResourceServer":
        """Serves these resources inside a server of the official SDK (`mcp`) or FastMCP. Returns this server.

        The other server keeps everything that it has: tools, prompts, middleware, lifespan and auth. It runs as before;
        `run` and `asgi` of this server run it too. Resources are registered here before or after, also while it runs.

        Args:
            app: an `MCPServer` or low-level `Server` of mcp 2.3 and newer, or a `FastMCP` of 4.1 and newer.
            adopt: whether clients also see the resources of `app`. Default `True`. This server serves a URI that both
                have.

        Raises:
            TypeError: `app` is a class, a client, or no server.
            ValueError: both servers have a tool of the same name.
            RegistrationError: this server is attached already.
            RuntimeError: `app` has an attached server already, runs already, or is of a version that is not supported.
        """
        from .attach import Attachment

        self._attached = Attachment(self, app, adopt)
        return self

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Publishes all registrations and removals of the block at its end, all of them or, after an error, none.

        Much faster than single registrations if there are many templates. Changes by other threads and tasks are not
        part of the batch.
        """
        if self._open_batch() is not None:
            raise RuntimeError("a batch is open already; register everything in one")
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
        timeout: int | None = None,
    ) -> Callable[[F], F]:
        """Registers the decorated function for a custom method. It gets the params as a `dict`.

        The function returns the members of the result: a `dict`, a `MethodResult`, or `None` for an empty result. Can
        be called from any thread, also while the server runs.

        Args:
            method: the name of the method, such as `vendor/thing`.
            name_param: the member of the params that the HTTP header `Mcp-Name` repeats. Default: none.
            capability: a capability to declare, as its name and its settings. Default: none.
            lists: `tools` or `prompts` if the method returns that list, so that clients can subscribe to its changes.
                Default: none.
            inline: whether a `def` runs on the event loop. Default `False`: on a worker thread.
            timeout: the longest time for a request, in milliseconds; 0 for no limit. Default: `Limits.read_timeout`.

        Raises:
            RegistrationError: the library serves this method itself, as those for tools and prompts.
        """
        if not isinstance(method, str):
            raise TypeError(_undecorated("method", "a name", method))
        if capability is not None:
            _check_capability(capability)

        def register(function: F) -> F:
            declared = None if capability is None else (capability[0], to_json(capability[1]))
            called = helper(function, ("params",), inline, self._encoder)
            self._core.extend(method, called, (name_param, declared, lists, timeout))
            return function

        return register

    @overload
    def tool(self, name: F) -> F: ...
    @overload
    def tool(self, name: str | None = None, **details: Unpack[ToolDetails]) -> Callable[[F], F]: ...
    def tool(self, name: Any = None, **details: Unpack[ToolDetails]) -> Any:
        """Registers the decorated function as a tool, which a model can call by name.

        Its parameters are the arguments, with JSON schemas from their annotations: plain types, `Literal`, `Enum`,
        dataclasses, `TypedDict`, models of pydantic, and `Annotated` with a text or a `Field`. A parameter that is
        called `ctx` or annotated with `Context` gets the request. Needs pydantic.

        It returns a text, `Image`, `Audio`, `ResourceLink`, `Embedded`, a list of those, or a `ToolResult`. Any other
        value is sent as JSON, with a schema from the return annotation. The model reads the text of a `ToolError`. Can
        be called from any thread, also while the server runs; clients are notified that the list has changed.

        Args:
            name: the name, of letters, digits, `_`, `-` and `.`. Default: that of the function.
            details: see `ToolDetails`.

        Raises:
            TypeError: a detail does not exist, or its value has the wrong type.
            RegistrationError: the name is not allowed or is taken, or a parameter cannot be an argument.
        """
        if callable(name):
            self.add_tool(name)
            return name

        def register(function: F) -> F:
            self.add_tool(function, name, **details)
            return function

        return register

    def add_tool(
        self,
        function: Callable[..., object],
        name: str | None = None,
        *,
        input_schema: Mapping[str, object] | None = None,
        output_schema: Mapping[str, object] | None = None,
        **details: Unpack[ToolDetails],
    ) -> None:
        """Adds a tool: see `tool`.

        Args:
            function: the function that is called.
            name: the name. Default: that of the function.
            input_schema: the JSON schema of the arguments. The function then gets all of them as one `dict`, which is
                not checked. Default: made from the annotations.
            output_schema: the JSON schema of the structured result. Default: made from the return annotation.
            details: see `ToolDetails`.

        Raises:
            TypeError: a detail does not exist, or its value has the wrong type.
            RegistrationError: the name is not allowed or is taken, or a parameter cannot be an argument.
        """
        from .tools import tool

        self._publish(tool(function, name, (input_schema, output_schema), details, self._encoder))

    def remove_tool(self, name: str) -> None:
        """Removes the tool with this name. Does nothing if there is none.

        Can be called from any thread, also while the server runs; clients are notified that the list has changed.
        """
        checks.text("name", name)
        self._publish([Edit.remove_tool(name)])

    @overload
    def prompt(self, name: Callable[P, R]) -> "PromptHandler[P, R]": ...
    @overload
    def prompt(
        self, name: str | None = None, **details: Unpack[PromptDetails]
    ) -> Callable[[Callable[P, R]], "PromptHandler[P, R]"]: ...
    def prompt(self, name: Any = None, **details: Unpack[PromptDetails]) -> Any:
        """Registers the decorated function as a prompt, which a person can choose by name.

        Its parameters are the arguments. They are texts, converted to the types of the annotations as the variables of
        a template are; the values of an `Enum` or `Literal` are suggested. A parameter that is called `ctx` or
        annotated with `Context` gets the request.

        It returns a text, a `PromptMessage`, a block such as `Image`, a list of those, or a `PromptResult`. Can be
        called from any thread, also while the server runs; clients are notified that the list has changed.

        Args:
            name: the name. Default: that of the function.
            details: see `PromptDetails`.

        Raises:
            TypeError: a detail does not exist, or its value has the wrong type.
            RegistrationError: the name is not allowed or is taken, or a parameter cannot be an argument.
        """
        if callable(name):
            return self.add_prompt(name)

        def register(function: Callable[P, R]) -> "PromptHandler[P, R]":
            return self.add_prompt(function, name, **details)

        return register

    def add_prompt(
        self,
        function: Callable[P, R],
        name: str | None = None,
        *,
        arguments: "Iterable[PromptArgument] | None" = None,
        **details: Unpack[PromptDetails],
    ) -> "PromptHandler[P, R]":
        """Adds a prompt: see `prompt`.

        Args:
            function: the function that is called.
            name: the name. Default: that of the function.
            arguments: the arguments. The function then gets all of them as one `dict` of texts. Default: its
                parameters.
            details: see `PromptDetails`.

        Raises:
            TypeError: a detail does not exist, or its value has the wrong type.
            RegistrationError: the name is not allowed or is taken, or a parameter cannot be an argument.
        """
        from .tools import PromptHandler

        return PromptHandler(self._publish, function, name, arguments, details)

    def remove_prompt(self, name: str) -> None:
        """Removes the prompt with this name. Does nothing if there is none.

        Can be called from any thread, also while the server runs; clients are notified that the list has changed.
        """
        checks.text("name", name)
        self._publish([Edit.remove_prompt(name)])

    def notify_updated(self, uri: str, *, principal: str | None = None) -> None:
        """Notifies the clients that watch this URI that its contents have changed. Can be called from any thread.

        Does nothing if no client watches it.

        Args:
            uri: the URI, in any spelling.
            principal: the identity of the one person whose clients are notified. Default: all.

        Raises:
            InvalidUriError: `uri` is not a URI.
        """
        checks.text("uri", uri)
        if principal is not None:
            checks.text("principal", principal)
        self._core.notify_updated(uri, principal)

    def notify_list_changed(self, lists: Literal["resources", "tools", "prompts"] = "resources") -> None:
        """Notifies clients that a list has changed, such as the items of a `.list` callback.

        Can be called from any thread. Registrations and removals notify by themselves.
        """
        checks.text("lists", lists)
        self._core.notify_list_changed(lists)

    def revoke(self, subject: str) -> None:
        """Ends all listens and notification streams of a subject whose tokens are no longer valid.

        Tokens of this subject that are cached as verified are verified again at their next use, also within a session:
        `Auth.verify` must refuse them. Can be called from any thread.
        """
        checks.text("subject", subject)
        self._core.revoke(subject)

    def regrant(self, principal: str) -> None:
        """Looks again at what a person may see: call it when their rights have changed.

        Their tokens are verified again at their next use, functions of `ResourceHandler.access` are asked again, and
        subscriptions and listens to what they may no longer see end at once; others go on. The streams of a token that
        came with scopes, claims or globs end, so that the client sends it again. Can be called from any thread.

        Args:
            principal: the identity that `Auth.verify` returns, as `Context.principal` has it.
        """
        checks.text("principal", principal)
        self._core.regrant(principal)

    def metrics_text(self) -> str | None:
        """Returns the counters of the server in the text format of Prometheus, for a metrics page of your own.

        `None` if nothing is counted: neither the option `metrics` of the server nor that of an HTTP endpoint is on.
        """
        return self._core.metrics_text()

    def flush_audit(self) -> None:
        """Waits until all audit records so far are written, one second at most.

        `run` calls it when it ends; so does the exit of the process.
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
        """Serves until SIGTERM, SIGINT or, on stdio, the end of input. Blocks; starts its own event loop.

        After `attach` it runs the other server by its own means, with the options of that server.

        Args:
            transport: `stdio` for standard input and output, `http` for Streamable HTTP.
            host: the address to listen at. Default `127.0.0.1`: only this machine can connect.
            port: the TCP port; 0 takes any free one. Default 8,000. The URL is printed on standard error.
            auth: how bearer tokens are verified. Default: no token is required.
            tls: the certificate and key for `https`. Default: `http`.
            loop_factory: makes the event loop, such as `uvloop.new_event_loop`. Default: that of asyncio.
            options: see `HttpOptions`.

        Raises:
            RuntimeError: an event loop is running already: await `serve_stdio` or `serve_http` instead.
            OSError: the server cannot listen at the address.
            RegistrationError: the value of an option is not allowed.
        """
        if transport not in ("stdio", "http"):
            raise ValueError(f"transport is {transport!r}, expected 'stdio' or 'http'")
        if self._attached is not None:
            from . import front

            return front.run(self._attached, transport, options, loop_factory)
        if transport == "stdio":
            from .stdio import serve

            if options:
                raise TypeError(_not_on_stdio(options))
            work: Callable[..., Any] = functools.partial(serve, self._core)
        else:
            from .http import announce
            from .http import serve as serve_http

            work = functools.partial(serve_http, self._core, started=announce, **options)
        no_running_loop("serve_stdio()" if transport == "stdio" else "serve_http(…)")
        try:
            with asyncio.Runner(loop_factory=loop_factory) as runner:
                runner.run(self._serving(functools.partial(work, signals=True)))
        finally:
            self.flush_audit()

    def close(self) -> None:
        """Ends the listens of all clients with their results, and the notifications of sessions. Requests go on.

        With `attach` these are the clients of the other server, which goes on serving them. To end `serve_stdio` and
        `serve_http`, cancel their task.
        """
        self._core.shutdown()
        if self._attached is not None:
            self._attached.core.shutdown()

    async def _serving(self, work: Callable[[], Any]) -> None:
        if self._life is None:
            await work()
            return
        async with self._life.entered(self):
            await work()

    async def serve_stdio(self) -> None:
        """Serves standard input and output on the running event loop until the client closes its end.

        Other code of the process can no longer read from standard input or write to standard output. Cancelling the
        task has the same effect as the end of input.
        """
        if self._attached is not None:
            from . import front

            return await front.serve(self._attached)
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
        """Serves Streamable HTTP on the running event loop. Shuts down gracefully when the task is cancelled.

        Args:
            host: the address to listen at. Default `127.0.0.1`: only this machine can connect.
            port: the TCP port; 0 takes any free one. Default 8,000.
            auth: how bearer tokens are verified. Default: no token is required.
            tls: the certificate and key for `https`. Default: `http`.
            started: called with the URL as soon as the server accepts connections. Default: nothing is called.
            options: see `HttpOptions`.

        Raises:
            OSError: the server cannot listen at the address.
            RegistrationError: the value of an option is not allowed.
        """
        if self._attached is not None:
            raise RuntimeError("this server is attached: serve asgi(), or the application of the other server")
        from .http import serve

        if started is not None:
            checks.plain_function("started", started, "it is called without being awaited")

        given: dict[str, Any] = {"host": host, "port": port, "auth": auth, "tls": tls, "started": started}
        await self._serving(functools.partial(serve, self._core, **given, **options))

    def asgi(self, *, auth: "Auth | None" = None, **options: Unpack[HttpOptions]) -> "AsgiApp":
        """Returns an ASGI application of this server, for uvicorn and the like, or to mount in Starlette or FastAPI.

        After `attach` it is the application of the other server, made with the options of that server.

        Args:
            auth: how bearer tokens are verified. Default: no token is required.
            options: see `HttpOptions`. `path` is relative to the path where the application is mounted.

        Raises:
            RegistrationError: the value of an option is not allowed.
        """
        if self._attached is not None:
            from . import front

            given: dict[str, Any] = {**options}
            app: AsgiApp = front.asgi(self._attached, given if auth is None else {**given, "auth": auth})
            return app
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
