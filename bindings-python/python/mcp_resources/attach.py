"""Serves a `ResourceServer` inside a server of the official SDK or FastMCP: one middleware, which asks the core.

Law: this module carries values between the SDK and the core, and takes the SDK from the caller's own objects.
"""

import asyncio
import importlib
import importlib.metadata
import weakref
from dataclasses import replace
from inspect import isfunction
from typing import TYPE_CHECKING, Any

from ._core import EmbeddedLoop, EmbeddedSession, Embedding, Sender
from .driver import Driver
from .log import warned

if TYPE_CHECKING:
    from .server import ResourceServer

_NEEDED = (
    ("shared.exceptions", "MCPError", "code message data"),
    ("shared.subscriptions", "event_to_notification", ""),
    ("server.auth.middleware.auth_context", "get_access_token", ""),
    ("server.stdio", "SessionMessage", ""),
    ("server.stdio", "types", "jsonrpc_message_adapter"),
    ("server.session", "ServerSession", "_notify _connection _request_outbound"),
    ("server.connection", "Connection", "state exit_stack session_id has_standalone_channel initialize_accepted"),
    ("server.context", "ServerRequestContext", "method params request_id request protocol_version"),
)
"""The names of the SDK that are used: module, name, attributes."""


class Attachment:
    """The middleware, and the ways to run the server that has it."""

    def __init__(self, server: "ResourceServer", app: Any, adopt: bool) -> None:
        self.server, self.app, self.low = server, app, (low := _lowlevel(app))
        self._error, self._notification, self._token, self.message, self.types = _sdk(low)
        if any(isinstance(other, Attachment) for other in low.middleware):
            raise RuntimeError("a ResourceServer is attached to this server already; register everything on that one")
        is_started = getattr(getattr(app, "_started", None), "is_set", bool)  # of FastMCP
        if is_started() or getattr(getattr(low, "_session_manager", None), "_task_group", None) is not None:
            raise RuntimeError("this server is serving already; attach before it is run")
        known = getattr(low, "get_tool_input_schema", None) or (lambda _: None)
        for name in Embedding.tools(server._core):
            if known(name) is not None:
                raise ValueError(f"both servers have a tool {name!r}; rename one of them")
        self.core = Embedding(server._core, adopt)
        self._loops: dict[asyncio.AbstractEventLoop, _Loop] = {}
        low.middleware.insert(0, self)
        handlers = [getattr(entry, "handler", None) for entry in getattr(low, "_request_handlers", {}).values()]
        buses = [getattr(app, "_subscriptions", None), *(getattr(handler, "_bus", None) for handler in handlers)]
        for bus in {id(bus): bus for bus in buses if bus is not None}.values():
            bus.subscribe(self._published)
        if server._life is not None:
            low.lifespan = server._life.around(server, low.lifespan)

    def __call__(self, ctx: Any, call_next: Any) -> Any:
        """Answers a message, or passes it on."""
        self._hear(ctx.session)
        is_concerned = self.core.concerns(ctx.method, ctx.request_id is not None)
        return self._serve(ctx, call_next) if is_concerned else call_next(ctx)

    async def _serve(self, ctx: Any, call_next: Any) -> Any:
        sender, params = self._sender(ctx), dict(ctx.params or {})
        sorted = self.core.sort(ctx.method, ctx.request_id is not None, sender, params)
        is_alone = self.core.is_modern(ctx.protocol_version)
        session = self._session(ctx.session._connection)
        if sorted == "told" and session is not None:
            session.tell(ctx.method, params, sender)
        if sorted in ("theirs", "told") or (session is None and not is_alone):
            return await call_next(ctx)
        own = session or self._loop().clients.connect(ctx.protocol_version, True, None)
        try:
            return await self._answer(ctx, call_next, own, sender, sorted == "both")
        finally:
            if is_alone:
                own.close()

    async def _answer(self, ctx: Any, call_next: Any, session: EmbeddedSession, sender: Sender, both: bool) -> Any:
        """Does what the core says, in the SDK's own task for the request."""
        given, theirs = await self._ask(ctx, call_next) if both else (None, None)
        number = session.start(ctx.method, dict(ctx.params or {}), ctx.request_id, sender, theirs)
        try:
            while True:
                kind, first, second, third = await _step(session, number)
                if kind == "result":
                    return first
                if kind == "error":
                    raise self._error(first, second, third)
                if kind == "send":
                    await ctx.session._request_outbound.notify(first, second)
                elif kind == "ask":
                    given, answer = await self._ask(replace(ctx, method=first, params=second), call_next)
                    session.answer(number, answer)
                elif isinstance(given, Exception):
                    raise given
                else:
                    return given
        finally:
            session.end(number)
            for warning in self.core.warnings():
                warned(self.server.name, warning)

    async def _ask(self, ctx: Any, call_next: Any) -> tuple[Any, Any]:
        """Asks the SDK. Returns its result or error, and what the core gets of it."""
        try:
            given = await call_next(ctx)
        except self._error as error:
            return error, (error.code, error.message, _plain(error.data))
        except Exception as error:
            return error, (0, str(error), None)
        return given, _plain(given) or {}

    def _session(self, connection: Any) -> EmbeddedSession | None:
        if self.core.is_modern(connection.protocol_version):
            return None
        found: _Session | None = connection.state.get("mcp_resources")
        if found is None:
            if connection.has_standalone_channel and connection.initialize_accepted:
                warned(self.server.name, "a session began before attach, so its client has none of these resources")
                return None
            found = connection.state["mcp_resources"] = _Session(self._loop(), connection)
        return found.core

    def _loop(self) -> "_Loop":
        running = asyncio.get_running_loop()
        for closed in [loop for loop in self._loops if loop.is_closed()]:
            self._loops.pop(closed).release()
        if running not in self._loops:
            self._loops[running] = _Loop(running, self.core)
        return self._loops[running]

    def _sender(self, ctx: Any) -> Sender:
        token = self._token()
        if token is None:
            return Sender(None, [], ctx.request is None and ctx.session._connection.session_id is None)
        return Sender(getattr(token, "subject", None) or token.client_id, list(token.scopes or ()), False)

    def _hear(self, session: Any) -> None:
        """Changes that the program tells by means of the SDK go to the clients that subscribe."""
        weak = weakref.ref(session)  # a circle would wait for the collector

        async def heard(notification: Any, *, request_scoped: bool) -> None:
            own: Any = weak()
            is_change = Embedding.is_change(notification.method)
            told = self._session(own._connection) if is_change else None
            if not (is_change and self.core.changed(notification.method, _plain(notification.params), told)):
                await type(own)._notify(own, notification, request_scoped=request_scoped)

        session._notify = heard

    def _published(self, event: Any) -> None:
        told = self._notification(event, {})
        self.core.changed(told.method, _plain(told.params))


class _Loop(Driver):
    """The event loop of the clients of one server."""

    def __init__(self, loop: asyncio.AbstractEventLoop, core: Embedding) -> None:
        super().__init__(loop)
        self.channel = self.clients = EmbeddedLoop(core, weakref.proxy(self))
        self.attach(self.clients)


class _Session:
    """A session that begins with a handshake. It ends with the connection of the SDK."""

    def __init__(self, loop: _Loop, connection: Any) -> None:
        self._loop = loop.loop
        self._notify = weakref.WeakMethod(connection.notify)
        self._task: asyncio.Task[None] | None = None
        lasts, own = connection.has_standalone_channel, weakref.WeakMethod(self._ready)
        ready = (lambda: (found := own()) and found()) if lasts else None
        self.core = loop.clients.connect(connection.protocol_version, lasts, ready)
        connection.exit_stack.callback(self._close)

    def _ready(self) -> None:
        if self._task is None:
            self._task = self._loop.create_task(self._send())

    async def _send(self) -> None:
        """Sends as fast as the client reads: what changes meanwhile is marked, not queued."""
        try:
            while notices := self.core.deliver():
                for method, params in notices:
                    if notify := self._notify():
                        await notify(method, params)
        finally:
            self._task = None

    def _close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self.core.close()


async def _step(session: EmbeddedSession, number: int) -> tuple[str, Any, Any, Any]:
    while (step := session.next(number)) is None:
        woken = asyncio.Event()
        session.register(number, woken.set)
        await woken.wait()
    return step


def _plain(value: Any) -> Any:
    """A value as it is sent."""
    dump = getattr(value, "model_dump", None)
    return value if dump is None else dump(by_alias=True, mode="json", exclude_none=True)


def _lowlevel(app: Any) -> Any:
    if isinstance(app, type):
        raise TypeError(f"attach takes a server, got the class {app.__name__}; make a server of it first")
    low = getattr(app, "_lowlevel_server", None) or getattr(app, "_mcp_server", None) or app
    if hasattr(low, "get_request_handler") and isinstance(getattr(low, "middleware", None), list):
        return low
    if hasattr(low, "request_handlers") or low is not app:
        raise _unsupported("a list of middleware")
    fix = "; call it, and attach to the server that it makes" if isfunction(app) else ""
    if hasattr(app, "routes"):
        fix = "; attach to the server that this application was made of"
    raise TypeError(f"attach takes a server of mcp or fastmcp, got {app!r:.80}{fix}")


def _sdk(low: Any) -> list[Any]:
    package = next(own for own in type(low).__mro__ if "get_request_handler" in vars(own)).__module__.split(".")[0]
    found = []
    for module, name, attributes in _NEEDED:
        try:
            found.append(made := getattr(importlib.import_module(f"{package}.{module}"), name))
        except (ImportError, AttributeError):
            raise _unsupported(f"{package}.{module}.{name}") from None
        code = getattr(made.__init__, "__code__", None)
        known = {*dir(made), *getattr(made, "__annotations__", ()), *(code.co_names if code else ())}
        for attribute in attributes.split():
            if attribute not in known:
                raise _unsupported(f"{package}.{module}.{name}.{attribute}")
    return found[:5]


def _unsupported(missing: str) -> RuntimeError:
    installed = importlib.metadata.distributions()
    found = [f"{one.name} {one.version}" for one in installed if one.name in ("mcp", "fastmcp")]
    return RuntimeError(
        f"attach needs {missing}, which {' with '.join(sorted(found))} does not have; install mcp>=2.3,<3 or"
        " fastmcp>=4.1,<5, or a newer mcp-resources"
    )
