"""`Client`: lists, reads, completes and watches the resources of one or many servers, within an allow-list.

async with Client.from_config("agents.yaml", agent="frontend") as client:
    async for resource in client.list():
        print(resource.uri)
    text = await client.read("file:///project/src/main.rs")
    async for change in client.watch("metrics://cpu/usage"):
        print(change.contents)

The compiled part runs on one thread for all clients of the process. It queues results for each event loop and wakes the
loop once for a batch. A read that is alone is made on the event loop. Your functions run on the event loop, never on
that thread.
"""

import asyncio
import inspect
import os
import warnings
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, Self, TypeAlias

from . import checks
from ._core import Caller, unexpected
from .driver import watch as watch_wakeup
from .encoding import to_json
from .errors import (
    AccessDeniedError,
    ConfigError,
    InvalidUriError,
    McpError,
    ReadFailedError,
    ResourceNotFoundError,
)
from .lifecycle import watch_client
from .listed import Change, ChangeIterator, ListedIterator, ListedResource, ListedTemplate, NameIterator, loads
from .log import failed
from .loops import running_loop
from .memory import Served
from .results import Completion, Contents
from .server import ResourceServer

__all__ = ["Client", "Progress", "Question", "ServerAbout"]

Many: TypeAlias = list[Contents]
Read: TypeAlias = str | bytes | Many
"""A text if there is one text, bytes if there is one blob, else all contents."""
Answer: TypeAlias = Callable[["Question"], object | Awaitable[object]]
"""A function, plain or `async`, that answers a question of a server. It returns the result, a JSON object."""


class Question:
    """A request that a server makes of the client: the name of the server, the method, and its params."""

    __slots__ = ("method", "params", "server")

    def __init__(self, server: str, method: str, params: dict[str, Any]) -> None:
        self.server = server
        self.method = method
        self.params = params

    def __repr__(self) -> str:
        return f"Question({self.server!r}, {self.method!r}, {self.params!r})"


class Progress:
    """A progress report of a server: `progress` of `total`, with a `message`. The last two are `None` if unknown."""

    __slots__ = ("message", "progress", "total")

    def __init__(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress = progress
        self.total = total
        self.message = message

    def __repr__(self) -> str:
        return f"Progress({self.progress!r}, {self.total!r}, {self.message!r})"


class ServerAbout:
    """The self-description of a server: `server_info` (name and version), `capabilities`, and `instructions` or `None`.

    `revision` is the protocol revision in use with this server.
    """

    __slots__ = ("capabilities", "instructions", "revision", "server_info")

    def __init__(
        self, revision: str, server_info: dict[str, Any], capabilities: dict[str, Any], instructions: str | None
    ) -> None:
        self.revision = revision
        self.server_info = server_info
        self.capabilities = capabilities
        self.instructions = instructions

    def __repr__(self) -> str:
        return f"ServerAbout({self.revision!r}, {self.server_info!r})"


class Client:
    """A client of one server or, made with `from_config`, of several. An async context manager.

    The client starts or connects to a server at the first request for it, and again after the connection is lost. Use a
    client on one event loop and in one process only.

    Args:
        server: a command as a list of texts, such as `["my-server", "--all"]`; the URL of an endpoint; or a
            `ResourceServer` of this process.
        name: the name of the server in errors and notes. Default `server`.
        resources: the allow-list: globs over URIs. Default `"*"`: all resources of the server.
        timeout: the longest time for a request, in milliseconds. Default 30,000.
        revision: the only protocol revision to use. Default: the newest that the server supports.
        headers: HTTP headers of every request, such as `Authorization`. For a URL. Default: none.
        env: environment variables of the command, in addition to those of this process. Default: none.
        cwd: the working directory of the command. Default: that of this process.
        answers: functions that answer requests of the server, under the keys `elicitation`, `sampling` and `roots`.
            Each is called with a `Question` on the event loop, may be `async`, and returns the result, a JSON object.
            If it raises, the exception is logged and the server gets an error. Default: none.
        on_note: called with the name of a server and a sentence when something of the server is left out or ignored.
            Default: nothing is called.

    Raises:
        ConfigError: an option is wrong; the message names it.
    """

    _QUESTIONS: ClassVar[tuple[str, ...]] = ("elicitation", "sampling", "roots")

    def __init__(
        self,
        server: Sequence[str] | str | ResourceServer,
        *,
        name: str = "server",
        resources: Sequence[str] | str = "*",
        timeout: int | None = None,
        revision: str | None = None,
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        answers: Mapping[str, Answer] | None = None,
        on_note: Callable[[str, str], object] | None = None,
    ) -> None:
        target = _target(server, headers=headers, env=env, cwd=cwd)
        settings = {"name": _text("name", name), "resources": _globs(resources), **target}
        memory = server if isinstance(server, ResourceServer) else None
        self._open(settings, memory, timeout, revision, answers, on_note)

    @classmethod
    def from_config(
        cls,
        path: str | os.PathLike[str],
        *,
        agent: str | None = None,
        timeout: int | None = None,
        revision: str | None = None,
        answers: Mapping[str, Answer] | None = None,
        on_note: Callable[[str, str], object] | None = None,
    ) -> Self:
        """Makes a client of the `mcpServers` of a configuration file, JSON or YAML.

        Args:
            path: the file.
            agent: a name under `agents` in the file: the client then has only the servers of this agent, with its
                allow-lists. Default: all servers, with their own `resources`.
            timeout: the longest time for a request, in milliseconds, for servers without a time-out in the file.
                Default 30,000.
            revision: see `Client`.
            answers: see `Client`.
            on_note: see `Client`.

        Raises:
            ConfigError: the file cannot be read, or a key or an option is wrong; the message names it.
        """
        if not isinstance(path, str | os.PathLike):
            raise ConfigError(f"path is {path!r}, expected the path of a file, such as 'agents.yaml'")
        client = cls.__new__(cls)
        settings = {"config": os.fsencode(path), "agent": None if agent is None else _text("agent", agent)}
        client._open(settings, None, timeout, revision, answers, on_note)
        return client

    def _open(
        self,
        settings: Mapping[str, object],
        memory: ResourceServer | None,
        timeout: int | None,
        revision: str | None,
        answers: Mapping[str, Answer] | None,
        on_note: Callable[[str, str], object] | None,
    ) -> None:
        self._answers = _functions(answers)
        if on_note is not None and not callable(on_note):
            raise ConfigError(f"on_note is {on_note!r}, expected a function")
        self._on_note = on_note
        self._loop: asyncio.AbstractEventLoop | None = None
        self._memory = None if memory is None else Served(memory)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._is_closed = False
        shared = {
            "timeout": _milliseconds(timeout),
            "revision": None if revision is None else _text("revision", revision),
            "answers": list(self._answers),
            "notes": on_note is not None,
        }
        self._caller = Caller(weakref.proxy(self), {**settings, **shared})
        watch_client(self._caller)

    async def __aenter__(self) -> Self:
        self._begin()
        if self._memory is not None:
            try:
                await self._memory.started()
            except BaseException:
                await self.close()
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def __del__(self) -> None:
        if not getattr(self, "_is_closed", True) and self._loop is not None:
            warnings.warn(f"{self!r} was not closed: use `async with`, or close()", ResourceWarning, 2, self)

    def __repr__(self) -> str:
        return f"<{type(self).__qualname__}{' closed' if self._is_closed else ''}>"

    @property
    def servers(self) -> list[str]:
        """The names of the servers, sorted."""
        return self._caller.servers()

    @property
    def failures(self) -> dict[str, McpError]:
        """The servers that failed in the last list, by name, each with its error."""
        return dict(self._caller.failures())

    @property
    def is_closed(self) -> bool:
        """Whether the client was closed."""
        return self._is_closed

    def list(
        self,
        *,
        server: str | None = None,
        timeout: int | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> ListedIterator[ListedResource]:
        """Lists the resources of all servers that the allow-lists allow. Fetches all pages.

        Returns an async iterator: `async for resource in client.list()`. A server that fails does not end the
        iteration; its error is in `failures`. If all servers fail, the first error is raised.

        Args:
            server: the name of the only server to list. Default: all servers.
            timeout: the longest time for one request, in milliseconds. Default: that of the client.
            progress: called with each `Progress` report, on the event loop. Default: nothing is called.

        Raises:
            ReadFailedError: while iterating: every server failed.
        """
        stream = self._caller.list(False, _scope(server, timeout, progress))
        return ListedIterator(self, stream, ListedResource)

    def list_templates(
        self,
        *,
        server: str | None = None,
        timeout: int | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> ListedIterator[ListedTemplate]:
        """Lists the templates of all servers that can expand to an allowed URI. Fetches all pages.

        The iterator, the arguments and the errors are those of `list`.
        """
        stream = self._caller.list(True, _scope(server, timeout, progress))
        return ListedIterator(self, stream, ListedTemplate)

    async def read(
        self,
        uri: str,
        *,
        server: str | None = None,
        timeout: int | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> Read:
        """Reads a resource. Returns one text as `str`, one blob as `bytes`, anything else as a list of `Contents`.

        With several servers, those that do not have the resource are skipped, in the order of their names. Contents
        whose own URI is not allowed are left out.

        Args:
            uri: the URI of the resource.
            server: the name of the only server to ask. Default: every server whose allow-list has the URI.
            timeout: the longest time for a request, in milliseconds. Default: that of the client.
            progress: called with each `Progress` report, on the event loop. Default: nothing is called.

        Raises:
            ResourceNotFoundError: no server has the resource.
            AccessDeniedError: the allow-list does not have the URI, and nothing was sent; or the server denied access.
            InvalidUriError: `uri` is not a URI.
            ReadFailedError: any other failure; `kind` says which.
        """
        future = self._future()
        asked = _scope(server, timeout, progress)
        checks.text("uri", uri)
        number = self._caller.read(future, uri, False, asked)
        try:
            return await future  # type: ignore[no-any-return]
        except asyncio.CancelledError:
            self._caller.cancel(number)
            raise

    async def read_contents(
        self,
        uri: str,
        *,
        server: str | None = None,
        timeout: int | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> Many:
        """Reads a resource. Returns always a list of `Contents`, each with its URI, media type and `_meta`.

        The arguments and the errors are those of `read`.
        """
        future = self._future()
        checks.text("uri", uri)
        number = self._caller.read(future, uri, True, _scope(server, timeout, progress))
        found: Many = await self._wait(future, number)
        return found

    async def complete(
        self,
        template: str,
        argument: str,
        value: str = "",
        context: Mapping[str, str] | None = None,
        *,
        server: str | None = None,
        timeout: int | None = None,
    ) -> Completion:
        """Completes a variable of a template. Returns the suggested values, best first.

        Args:
            template: the text of the template, such as `note://{id}`.
            argument: the name of the variable.
            value: the text typed so far. Default: empty.
            context: the values of other variables that are chosen already. Servers with a revision before 2025-06-18 do
                not get it. Default: none.
            server: the name of the only server to ask. Default: a server that has the template.
            timeout: the longest time for the request, in milliseconds. Default: that of the client.

        Raises:
            AccessDeniedError: the allow-list allows no URI of the template.
            ReadFailedError: any other failure; `kind` says which.
        """
        future = self._future()
        for name, given in (("template", template), ("argument", argument), ("value", value)):
            checks.text(name, given)
        if context is not None:
            checks.mapping("context", context, "{'day': 'monday'}")
        chosen = list((context or {}).items())
        number = self._caller.complete(future, template, argument, value, chosen, _scope(server, timeout, None))
        values, total, has_more = await self._wait(future, number)
        return Completion(values, total=total, has_more=has_more)

    def watch(self, uri: str, *, server: str | None = None) -> ChangeIterator:
        """Watches a resource: yields its contents now and after each change.

        Returns an async iterator: `async for change in client.watch(uri)`. Ending the iteration ends the subscription:
        `break`, `aclose()`, or dropping the iterator. A slow reader skips intermediate contents and gets the newest.
        Unchanged contents are not repeated. If the resource is removed, the contents are `None`, and the watch
        continues. It also continues after the connection to the server is lost and restored.

        Args:
            uri: the URI of the resource.
            server: the name of the only server to ask. Default: as for `read`.

        Raises:
            AccessDeniedError: while iterating: the allow-list does not have the URI. Nothing is sent.
            InvalidUriError: while iterating: `uri` is not a URI.
            ReadFailedError: while iterating: the server cannot be reached, or does not support subscriptions.
        """
        checks.text("uri", uri)
        return ChangeIterator(self, self._caller.watch(uri, (server, None, None)), Change)

    def list_changes(self) -> NameIterator:
        """Yields the name of a server each time its lists change, until the client is closed.

        A server with revision 2026-07-28 reports changes of its lists only while one of its resources is watched.
        """
        return NameIterator(self, self._caller.list_changes(), str)

    async def request(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        server: str | None = None,
        timeout: int | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> dict[str, Any]:
        """Sends a request with any method to one server. Returns its result.

        Args:
            method: the method, such as `vendor/thing`.
            params: the params, a JSON object. Default: empty.
            server: the name of the server. Required if the client has several.
            timeout: the longest time for the request, in milliseconds. Default: that of the client.
            progress: called with each `Progress` report, on the event loop. Default: nothing is called.

        Raises:
            AccessDeniedError: the method concerns resources, and the allow-list does not allow all of them.
            ReadFailedError: any other failure; `kind` says which.
        """
        future = self._future()
        asked = _scope(server, timeout, progress)
        checks.text("method", method)
        if params is not None:
            checks.mapping("params", params, "{'cursor': '…'}")
        number = self._caller.request(future, method, to_json(dict(params or {})), asked)
        result: dict[str, Any] = loads(await self._wait(future, number))
        return result

    async def about(self, *, server: str | None = None, timeout: int | None = None) -> ServerAbout:
        """Returns the self-description of a server. Connects to it if necessary.

        Args:
            server: the name of the server. Required if the client has several.
            timeout: the longest time for the answer, in milliseconds. Default: that of the client.

        Raises:
            ReadFailedError: the server cannot be reached.
        """
        future = self._future()
        number = self._caller.about(future, _scope(server, timeout, None))
        revision, info, capabilities, instructions = await self._wait(future, number)
        return ServerAbout(revision, loads(info), loads(capabilities), instructions)

    async def close(self) -> None:
        """Closes the client: cancels its calls, ends its watches, and stops the servers that it started.

        Stopping takes up to 4 s for a server that does not exit by itself. Further calls do nothing.
        """
        self._is_closed = True
        for task in list(self._tasks.values()):
            task.cancel()
        future = self._future()
        if self._caller.close(future) is not None:
            await asyncio.shield(future)
        self._caller.end()
        if self._memory is not None:
            await self._memory.ended()

    def _future(self) -> "asyncio.Future[Any]":
        loop = running_loop()
        if loop is not self._loop:
            self._begin()
        return loop.create_future()

    def _begin(self) -> None:
        loop = running_loop()
        if self._loop is loop:
            return
        if self._loop is not None:
            self._caller.servers()  # raises after a fork, which is then the cause
            raise RuntimeError("this client was first used on another event loop; make a client for each loop")
        self._loop = loop
        watch_wakeup(loop, self._caller.wakeup)
        if self._memory is not None:
            self._memory.start(loop, self._caller.far())

    async def _wait(self, future: "asyncio.Future[Any]", number: int) -> Any:
        try:
            return await future
        except asyncio.CancelledError:
            self._caller.cancel(number)
            raise

    # Called by the compiled part, on the event loop.

    def _progressed(
        self, report: Callable[[Progress], object], progress: float, total: float | None, message: str | None
    ) -> None:
        try:
            report(Progress(progress, total, message))
        except Exception as error:
            failed("the progress function", repr(report), error)

    def _noted(self, server: str, note: str) -> None:
        try:
            if self._on_note is not None:
                self._on_note(server, note)
        except Exception as error:
            failed("on_note", server, error)

    def _asked(self, number: int, server: str, method: str, params: str) -> None:
        assert self._loop is not None
        task = self._loop.create_task(self._answer(number, Question(server, method, loads(params))))
        self._tasks[number] = task
        task.add_done_callback(lambda _: self._tasks.pop(number, None))

    def _withdrawn(self, number: int) -> None:
        if number in self._tasks:
            self._tasks[number].cancel()

    async def _answer(self, number: int, question: Question) -> None:
        answer = None
        try:
            answer = await self._answer_text(question)
        except Exception as error:
            failed("the answer to a question", question.method, error)
        finally:
            self._caller.answer(number, answer, "the client could not answer")

    async def _answer_text(self, question: Question) -> str:
        name = next(name for name in self._answers if question.method.startswith(name))
        result = self._answers[name](question)
        if inspect.isawaitable(result):
            result = await result
        text = to_json(result)
        if not text.startswith("{"):
            raise TypeError(f"answers[{name!r}] returned {result!r}, expected a JSON object")
        return text


def failure(
    kind: str, message: str, uri: str | None, code: int | None, data: str | None, server: str | None
) -> McpError:
    """The exception for an error of the compiled part."""
    known = _ERRORS.get(kind)
    if known is None or uri is None:
        decoded = None if data is None else loads(data)
        return ReadFailedError(message, kind, code=code, data=decoded, server=server)
    error = known(message)
    error.uri = uri
    return error


_ERRORS: "dict[str, type[ResourceNotFoundError | AccessDeniedError | InvalidUriError]]" = {
    "not_found": ResourceNotFoundError,
    "access_denied": AccessDeniedError,
    "invalid_uri": InvalidUriError,
}


def contents(parts: Sequence[tuple[str | bytes, str | None, str | None, str | None]]) -> list[Contents]:
    """Contents from their parts."""
    return [
        Contents(body, uri=uri, mime_type=mime_type, meta=None if meta is None else loads(meta))
        for body, uri, mime_type, meta in parts
    ]


def _target(
    server: object,
    *,
    headers: Mapping[str, str] | None,
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None,
) -> dict[str, object]:
    """The settings of the connection to a server. An option for another kind of server is an error."""
    given = {"headers": headers, "env": env, "cwd": cwd}
    target: dict[str, object]
    used: tuple[str, ...] = ()
    if isinstance(server, ResourceServer):
        kind, target, used = "a server of this process", {}, ()
    elif isinstance(server, str):
        if "://" not in server:
            raise ConfigError(
                f"server: {server!r} is not a URL; for a command give a list of its parts, such as"
                f" shlex.split({server!r})"
            )
        kind, target, used = "a URL", {"url": server}, ("headers",)
    elif isinstance(server, Sequence) and all(isinstance(part, str) for part in server):
        kind, target, used = "a command", {"command": list(server)}, ("env", "cwd")
    else:
        raise ConfigError(
            f"server is {server!r}, expected a command such as ['my-server', '--all'], a URL or a ResourceServer"
        )
    for option, value in given.items():
        if value is None:
            continue
        if option not in used:
            raise ConfigError(f"{option} is an option for {_KINDS[option]}, and the server is {kind}; leave it out")
        if option != "cwd":
            target[option] = _pairs(option, value)
        elif isinstance(value, str | os.PathLike):
            target[option] = os.fsencode(value)
        else:
            raise ConfigError(f"cwd is {value!r}, expected the path of a directory")
    return target


_KINDS = {"headers": "a URL", "env": "a command", "cwd": "a command"}


def _pairs(option: str, given: object) -> list[tuple[str, str]]:
    """Headers or variables. The message does not repeat the values: they may be secrets."""
    if not isinstance(given, Mapping):
        kind = type(given).__name__
        raise ConfigError(f"{option} is of type `{kind}`, expected a dict of texts, such as {{'NAME': 'value'}}")
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise ConfigError(f"{option}[{name!r}] is of type `{type(value).__name__}`, expected a text")
    return list(given.items())


def _scope(server: str | None, timeout: int | None, progress: Callable[[Progress], object] | None) -> Any:
    """The options that all calls have in common."""
    if server is not None and not isinstance(server, str):
        raise ConfigError(f"server is {server!r}, expected the name of a server of this client")
    if progress is not None and not callable(progress):
        raise ConfigError(f"progress is {progress!r}, expected a function that takes a Progress")
    return (server, timeout if timeout is None else _milliseconds(timeout), progress)


def _globs(resources: Sequence[str] | str) -> list[str] | None:
    if resources == "*":
        return None
    if isinstance(resources, str) or not all(isinstance(glob, str) for glob in resources):
        raise ConfigError(
            f'resources is {resources!r}, expected "*" or a list of globs, such as ["file:///project/**"]'
        )
    return list(resources)


def _milliseconds(timeout: int | None) -> int | None:
    if timeout is None or (type(timeout) is int and timeout > 0):
        return timeout
    raise ConfigError(f"timeout is {timeout!r}, expected a whole number of milliseconds above 0, such as 5_000")


def _text(option: str, value: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{option} is {value!r}, expected a text")
    return value


def _functions(answers: Mapping[str, Answer] | None) -> dict[str, Answer]:
    if answers is not None and not isinstance(answers, Mapping):
        raise ConfigError(f"answers is {answers!r}, expected a dict of functions, such as {{'elicitation': ask_user}}")
    for name, function in (answers or {}).items():
        if name not in Client._QUESTIONS:
            raise ConfigError(f"answers: {unexpected('question', name, list(Client._QUESTIONS))}")
        if not callable(function):
            raise ConfigError(f"answers[{name!r}] is {function!r}, expected a function that takes a Question")
    return dict(answers or {})
