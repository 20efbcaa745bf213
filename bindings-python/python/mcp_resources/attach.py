"""Serves a `ResourceServer` inside a server of the official SDK or FastMCP: one middleware, which asks the core.

Law: this module carries values between the SDK and the core. It imports the SDK through the caller's own objects.
"""

import asyncio
import importlib
import importlib.metadata
import logging
import weakref
from collections.abc import Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ._core import EmbeddedLoop, EmbeddedSession, Embedding, Sender
from .driver import Driver

if TYPE_CHECKING:
    from .server import ResourceServer

Next: TypeAlias = Callable[[Any], Awaitable[Any]]

_KEY = "mcp_resources"
_NEEDED = (
    ("server.session", "ServerSession", ("_notify", "_connection", "_request_outbound")),
    ("server.connection", "Connection", ("state", "exit_stack", "has_standalone_channel", "initialize_accepted")),
    ("server.context", "ServerRequestContext", ("method", "params", "request_id", "request", "protocol_version")),
    ("shared.subscriptions", "event_to_notification", ()),
    ("shared.exceptions", "MCPError", ("code", "message", "data")),
    ("server.auth.middleware.auth_context", "get_access_token", ()),
)
"""The names of the SDK that are used: module, name, and its attributes."""

_logger = logging.getLogger(__name__)


class _Sdk:
    """The SDK that a server was made with."""

    def __init__(self, low: Any) -> None:
        self.package = next(c for c in type(low).__mro__ if "get_request_handler" in vars(c)).__module__.split(".")[0]
        for module, name, attributes in _NEEDED:
            found = self.get(module, name)
            known = {*dir(found), *getattr(found, "__annotations__", ())}
            known.update(getattr(getattr(found, "__init__", None), "__code__", _sdk_version.__code__).co_names)
            for attribute in attributes:
                if attribute not in known:
                    raise _unsupported(f"{self.package}.{module}.{name}.{attribute}")
        self.error: Any = self.get("shared.exceptions", "MCPError")
        self.notification: Any = self.get("shared.subscriptions", "event_to_notification")
        self.token: Any = self.get("server.auth.middleware.auth_context", "get_access_token")

    def get(self, module: str, name: str) -> Any:
        try:
            return getattr(importlib.import_module(f"{self.package}.{module}"), name)
        except (ImportError, AttributeError):
            raise _unsupported(f"{self.package}.{module}.{name}") from None


class _Loop(Driver):
    """The event loop of the clients of one server."""

    def __init__(self, loop: asyncio.AbstractEventLoop, core: Embedding) -> None:
        super().__init__(loop)
        self.clients = EmbeddedLoop(core, weakref.proxy(self))
        self.channel = self.clients
        self.attach(self.clients)


class _Session:
    """One session of a client that begins with a handshake."""

    def __init__(self, loop: _Loop, connection: Any) -> None:
        self._loop = loop
        self._connection = weakref.proxy(connection)
        self._task: asyncio.Task[None] | None = None
        lasts = connection.has_standalone_channel
        own = weakref.WeakMethod(self._ready)
        ready = (lambda: (found := own()) and found()) if lasts else None
        self.core = loop.clients.connect(connection.protocol_version, lasts, ready)
        connection.exit_stack.callback(self._close)

    def _ready(self) -> None:
        if self._task is None:
            self._task = self._loop.loop.create_task(self._send())

    async def _send(self) -> None:
        """Sends as fast as the client reads: what waits meanwhile is one mark for each resource."""
        try:
            while notices := self.core.deliver():
                for method, params in notices:
                    await self._connection.notify(method, params)
        finally:
            self._task = None

    def _close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self.core.close()


class Attachment:
    """The middleware, and the ways to run the server that has it."""

    def __init__(self, server: "ResourceServer", app: Any, adopt: bool) -> None:
        self.app = app
        self._low = _lowlevel(app)
        self._sdk = _Sdk(self._low)
        self._log = _logger.getChild(server.name)
        self._loops: list[_Loop] = []
        _check_new(self._low)
        self._core = Embedding(server._core, adopt)
        for kind in ("tools", "prompts"):
            for name in self._core.conflicts(kind, _names(app, kind)):
                raise ValueError(f"both servers have {name} among their {kind}; rename one of them")
        self._low.middleware.insert(0, self)
        for bus in _buses(app, self._low):
            bus.subscribe(self._published)
        if server._life is not None:
            self._low.lifespan = _within(server, self._low.lifespan)

    async def __call__(self, ctx: Any, call_next: Next) -> Any:
        """Answers a message, or passes it on."""
        sender = self._sender(ctx)
        params = {} if ctx.params is None else dict(ctx.params)
        is_request = ctx.request_id is not None
        sorted = self._core.sort(ctx.method, is_request, sender, params)
        session = None if self._core.is_modern(ctx.protocol_version) else self._session(ctx)
        core = None if session is None else session.core
        self._hear(ctx.session, core)
        if sorted == "theirs" or (core is None and not self._core.is_modern(ctx.protocol_version)):
            return await call_next(ctx)
        if sorted == "told":
            if core is not None:
                core.tell(ctx.method, params, sender)
            return await call_next(ctx)
        call = _Call(self, ctx, call_next, core)
        return await call.run(params, sender, sorted == "both")

    def loop(self) -> _Loop:
        """The clients of the running event loop."""
        running = asyncio.get_running_loop()
        for own in self._loops:
            if own.loop is running:
                return own
        for closed in [own for own in self._loops if own.loop.is_closed()]:
            self._loops.remove(closed)
            closed.release()
        self._loops.append(_Loop(running, self._core))
        return self._loops[-1]

    def warn(self) -> None:
        """Logs what the core has found."""
        for warning in self._core.warnings():
            self._log.warning("%s", warning)

    def _session(self, ctx: Any) -> _Session | None:
        connection = ctx.session._connection
        found: _Session | None = connection.state.get(_KEY)
        if found is None:
            if connection.has_standalone_channel and connection.initialize_accepted:
                self._log.warning("a session began before attach; it has none of the attached resources")
                return None
            found = connection.state[_KEY] = _Session(self.loop(), connection)
        return found

    def _sender(self, ctx: Any) -> Sender:
        token = self._sdk.token()
        if token is not None:
            owner = getattr(token, "subject", None) or token.client_id
            return Sender(owner, list(token.scopes), False)
        return Sender(None, [], ctx.request is None and ctx.session._connection.session_id is None)

    def _hear(self, session: Any, own: EmbeddedSession | None) -> None:
        """Changes that the program tells by the means of the SDK go to those who subscribe."""
        notify = session._notify

        async def heard(notification: Any, *, request_scoped: bool) -> None:
            is_change = self._core.is_change(notification.method)
            if not (is_change and self._core.changed(notification.method, plain(notification.params), own)):
                await notify(notification, request_scoped=request_scoped)

        session._notify = heard

    def _published(self, event: Any) -> None:
        notification = self._sdk.notification(event, {})
        self._core.changed(notification.method, plain(notification.params))

    def parts(self, error: Exception) -> tuple[int, str, Any]:
        """The code, message and data of an error of the SDK."""
        if isinstance(error, self._sdk.error):
            return error.code, error.message, plain(error.data)  # type: ignore[attr-defined]
        return 0, str(error), None

    def raised(self, code: int, message: str, data: Any) -> Exception:
        """The error to answer with."""
        error: Exception = self._sdk.error(code, message, data)
        return error


class _Call:
    """A request that the core answers, in the SDK's own task for it: so it ends with that, and asks the SDK on behalf
    of the same client."""

    def __init__(self, attached: Attachment, ctx: Any, call_next: Next, session: EmbeddedSession | None) -> None:
        self._attached = attached
        self._ctx = ctx
        self._next = call_next
        self._is_alone = session is None
        self._session = session or attached.loop().clients.connect(ctx.protocol_version, True, None)
        self._latest: Any = None

    async def run(self, params: dict[str, Any], sender: Sender, both: bool) -> Any:
        theirs = await self._ask(self._ctx) if both else None
        session = self._session
        number = session.start(self._ctx.method, params, self._ctx.request_id, sender, theirs)
        try:
            while True:
                step = session.next(number) or await self._wait(number)
                if step is None:
                    continue
                kind, first, second, third = step
                if kind == "send":
                    await self._ctx.session._request_outbound.notify(first, second)
                elif kind == "ask":
                    session.answer(number, await self._ask(replace(self._ctx, method=first, params=second)))
                elif kind == "result":
                    return first
                elif kind == "error":
                    raise self._attached.raised(first, second, third)
                elif isinstance(self._latest, Exception):
                    raise self._latest
                else:
                    return self._latest
        finally:
            session.end(number)
            if self._is_alone:
                session.close()
            self._attached.warn()

    async def _ask(self, ctx: Any) -> Any:
        """Asks the SDK's server. Returns its result, or the parts of its error."""
        try:
            self._latest = await self._next(ctx)
        except Exception as error:
            self._latest = error
            return self._attached.parts(error)
        return plain(self._latest) or {}

    async def _wait(self, number: int) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._session.register(number, lambda: None if waiter.done() else waiter.set_result(None))
        await waiter


def plain(value: Any) -> Any:
    """A value as it is sent."""
    dump = getattr(value, "model_dump", None)
    return value if dump is None else dump(by_alias=True, mode="json", exclude_none=True)


def _lowlevel(app: Any) -> Any:
    if isinstance(app, type):
        raise TypeError(f"attach takes a server, got the class {app.__name__}; make one of it first")
    low = getattr(app, "_lowlevel_server", None) or getattr(app, "_mcp_server", None) or app
    if hasattr(low, "get_request_handler") and isinstance(getattr(low, "middleware", None), list):
        return low
    if hasattr(low, "request_handlers") or hasattr(app, "_mcp_server"):
        raise _unsupported("the middleware of servers")
    raise TypeError(f"attach takes a server of mcp or fastmcp, got {app!r:.80}; clients cannot have resources")


def _check_new(low: Any) -> None:
    if any(isinstance(own, Attachment) for own in low.middleware):
        raise RuntimeError("a ResourceServer is attached to this server already; register everything on that one")
    if getattr(getattr(low, "_session_manager", None), "_task_group", None) is not None:
        raise RuntimeError("this server is serving already; attach before it is run")


def _unsupported(missing: str) -> RuntimeError:
    return RuntimeError(
        f"attach needs {missing}, which {_sdk_version()} does not have; install mcp>=2.3,<3 or fastmcp>=4.1,<5, or a"
        " newer mcp-resources"
    )


def _sdk_version() -> str:
    found = []
    for name in ("mcp", "fastmcp"):
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return " with ".join(found) or "this SDK"


def _names(app: Any, kind: str) -> list[str]:
    """The names that the server lists without waiting for anything; later ones are found when a client lists them."""
    listing = getattr(app, f"list_{kind}", None)
    if listing is None:
        return []
    coroutine = listing()
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return [item.name for item in ended.value]
    except Exception:
        return []
    finally:
        coroutine.close()
    return []


def _buses(app: Any, low: Any) -> Iterable[Any]:
    """The buses on which the program tells changes to listens."""
    handlers = [getattr(entry, "handler", None) for entry in getattr(low, "_request_handlers", {}).values()]
    found = [getattr(app, "_subscriptions", None), *(getattr(handler, "_bus", None) for handler in handlers)]
    return {id(bus): bus for bus in found if hasattr(bus, "subscribe")}.values()


def _within(server: "ResourceServer", lifespan: Any) -> Any:
    """The lifespan of the SDK's server within that of ours."""

    @asynccontextmanager
    async def both(low: Any) -> Any:
        assert server._life is not None
        async with server._life.entered(server), lifespan(low) as value:
            yield value

    return both
