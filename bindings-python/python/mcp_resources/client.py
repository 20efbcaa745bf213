"""A client of one or many servers: it lists, reads, completes and watches what an allow-list allows.

async with Client.from_config("agents.yaml", agent="frontend") as client:
    async for resource in client.list():
        print(resource.uri)
    text = await client.read("file:///project/src/main.rs")
    async for change in client.watch("metrics://cpu/usage"):
        print(change.contents)

The native half runs on one thread for all clients of the process. What it has for an event loop it leaves on a desk,
and rings once for a batch. No function of an author's runs on that thread.
"""

import asyncio
import inspect
import os
import warnings
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, Self, TypeAlias

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
from .memory import Served
from .results import Completion, Contents
from .server import ResourceServer

__all__ = ["Client", "Progress", "Question", "ServerAbout"]

Many: TypeAlias = list[Contents]
Read: TypeAlias = str | bytes | Many
"""A text if there is one text, bytes if there is one blob, else all contents."""
Answer: TypeAlias = Callable[["Question"], object | Awaitable[object]]
"""Answers a question of a server's: called with it, returns a JSON object, or is a coroutine function that does."""


class Question:
    """What a server asks: its name, the method, and the params."""

    __slots__ = ("method", "params", "server")

    def __init__(self, server: str, method: str, params: dict[str, Any]) -> None:
        self.server = server
        self.method = method
        self.params = params

    def __repr__(self) -> str:
        return f"Question({self.server!r}, {self.method!r}, {self.params!r})"


class Progress:
    """How far a request is: `progress` of `total`, if that is known, and what is being done, if the server says so."""

    __slots__ = ("message", "progress", "total")

    def __init__(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress = progress
        self.total = total
        self.message = message

    def __repr__(self) -> str:
        return f"Progress({self.progress!r}, {self.total!r}, {self.message!r})"


class ServerAbout:
    """What a server says of itself: its name and version, its capabilities, and how it is to be used, if it says so.

    `revision` is the revision of the protocol that is spoken with it.
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
    """A client of one server, or with `from_config` of many. An async context manager.

    Servers are started, or connected to, when they are first needed, and again after a loss. A client belongs to the
    event loop that it is first used on, and to the process that made it.

    Args:
        server: how the server is reached: a command as a list of texts, the URL of an endpoint, or a server of this
            process.
        name: what it is called in errors and notes.
        resources: what may be seen of it: globs over URIs (S-11), or `"*"` for everything.
        timeout: how long a request may take, in milliseconds. Default 30,000.
        revision: the only revision of the protocol to speak. Default: the newest that the server has.
        headers: headers of every request to a URL, such as `Authorization`.
        env: variables for a command, beside those of this process.
        cwd: the directory of a command; this process' own by default.
        answers: functions that answer the server's questions, by `"elicitation"`, `"sampling"` or `"roots"`; each is
            called with a `Question` on the event loop, may be `async`, and returns the result, a JSON object. An
            exception is logged, and the server hears that there is no answer.
        on_note: called with the name of a server and a sentence about what was left out or ignored. For a log.

    Raises:
        ConfigError: an option is wrong. The message names it.
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
        """A client of the servers of a configuration file, JSON or YAML: its `mcpServers` (S-10).

        Args:
            path: the file.
            agent: the name of one of its `agents`: the client has the servers that it names, and sees what it allows.
            timeout: as for `Client`, for servers that say nothing else.
            revision: as for `Client`.
            answers: as for `Client`.
            on_note: as for `Client`.

        Raises:
            ConfigError: the file cannot be read, or something in it is wrong. The message names it.
        """
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
            raise ConfigError(f"on_note: {on_note!r} cannot be called")
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
        """The names of the servers, in order."""
        return self._caller.servers()

    @property
    def failures(self) -> dict[str, McpError]:
        """The servers that could not be asked for their last list, by name, each with its error."""
        return dict(self._caller.failures())

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._is_closed

    def list(
        self,
        *,
        server: str | None = None,
        timeout: int | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> ListedIterator[ListedResource]:
        """The resources of all servers, from all pages: those that the allow-lists have (S-12).

        A server that cannot be reached does not end the list: it is in `failures`. If none can be, the first error is
        raised.

        Args:
            server: the name of the only server to ask.
            timeout: how long one request may take, in milliseconds.
            progress: called with each `Progress`, on the event loop.

        Raises:
            ReadFailedError: while iterating: no server could be asked.
        """
        stream = self._caller.list(False, (server, _milliseconds(timeout), progress))
        return ListedIterator(self, stream, ListedResource)

    def list_templates(
        self,
        *,
        server: str | None = None,
        timeout: int | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> ListedIterator[ListedTemplate]:
        """Lists the templates of all servers that can expand to an allowed URI (S-12). Walks all pages.

        Args and errors are those of `list`.
        """
        stream = self._caller.list(True, (server, _milliseconds(timeout), progress))
        return ListedIterator(self, stream, ListedTemplate)

    async def read(
        self,
        uri: str,
        *,
        server: str | None = None,
        timeout: int | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> Read:
        """The contents of a resource: one text as `str`, one blob as `bytes`, else a list of `Contents`.

        Of several servers that may have it, those that do not have it are passed over. Contents under a URI that is
        not allowed are left out.

        Args:
            uri: its URI.
            server: the name of the only server to ask.
            timeout: how long a request may take, in milliseconds.
            progress: called with each `Progress`, on the event loop.

        Raises:
            ResourceNotFoundError: no server has it.
            AccessDeniedError: it is not allowed, and was not asked for; or the server refuses it.
            InvalidUriError: it is not a URI.
            ReadFailedError: anything else.
        """
        future = self._future()
        asked = (server, timeout, progress) if timeout is None else (server, _milliseconds(timeout), progress)
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
        """The contents of a resource, always as a list, each with its URI, media type and `_meta`.

        Args and errors are those of `read`.
        """
        future = self._future()
        number = self._caller.read(future, uri, True, (server, _milliseconds(timeout), progress))
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
        """Values for a variable of a template.

        Args:
            template: the text of the template.
            argument: the variable.
            value: what is typed so far.
            context: values that were chosen for other variables; revisions before 2025-06-18 do not have them.
            server: the name of the only server to ask.
            timeout: how long the request may take, in milliseconds.

        Raises:
            AccessDeniedError: no expansion of the template is allowed.
            ReadFailedError: anything else.
        """
        future = self._future()
        what = (template, argument, value)
        chosen = list((context or {}).items())
        number = self._caller.complete(future, what, chosen, (server, _milliseconds(timeout), None))
        values, total, has_more = await self._wait(future, number)
        return Completion(values, total=total, has_more=has_more)

    def watch(self, uri: str, *, server: str | None = None) -> ChangeIterator:
        """Watches a resource: first its contents, then its contents after each change (S-13).

        Ending the iteration ends the subscription: `break`, `aclose()`, or letting go of the iterator. A slow reader
        gets the newest contents of each URI. A watch goes on when its server is lost and comes back, and when the
        resource is gone: the contents are then `None`. Contents that are as before are not reported again.

        Args:
            uri: its URI.
            server: the name of the only server to ask.

        Raises:
            AccessDeniedError: while iterating: it is not allowed. Nothing is sent.
            InvalidUriError: while iterating: it is not a URI.
            ReadFailedError: while iterating: it cannot be watched.
        """
        return ChangeIterator(self, self._caller.watch(uri, (server, None, None)), Change)

    def list_changes(self) -> NameIterator:
        """The names of servers whose lists have changed, from now on, until the client is closed.

        A server of revision 2026-07-28 tells of them while something of it is watched.
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
        """Makes a request with any method to one server, and returns its result.

        Args:
            method: its name.
            params: its params, a JSON object.
            server: the name of the server, if there are several.
            timeout: how long the request may take, in milliseconds.
            progress: called with each `Progress`, on the event loop.

        Raises:
            AccessDeniedError: the method is about resources, and not everything is allowed.
            ReadFailedError: anything else.
        """
        future = self._future()
        asked = (server, _milliseconds(timeout), progress)
        number = self._caller.request(future, method, to_json(dict(params or {})), asked)
        result: dict[str, Any] = loads(await self._wait(future, number))
        return result

    async def about(self, *, server: str | None = None, timeout: int | None = None) -> ServerAbout:
        """What a server says of itself. Connects to it.

        Args:
            server: its name, if there are several.
            timeout: how long that may take, in milliseconds.

        Raises:
            ReadFailedError: it cannot be reached.
        """
        future = self._future()
        number = self._caller.about(future, (server, _milliseconds(timeout), None))
        revision, info, capabilities, instructions = await self._wait(future, number)
        return ServerAbout(revision, loads(info), loads(capabilities), instructions)

    async def close(self) -> None:
        """Ends the client: calls are cancelled, watches end, and the servers that it has started end.

        After the first call there is nothing left to do.
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
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._begin()
        return loop.create_future()

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        if self._loop is not None:
            self._caller.servers()  # after a fork, this is what is wrong
            raise RuntimeError("this client belongs to another event loop: make one for each loop")
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

    # What the native half calls, on the loop.

    def _progressed(
        self, report: Callable[[Progress], object], progress: float, total: float | None, message: str | None
    ) -> None:
        try:
            report(Progress(progress, total, message))
        except Exception as error:
            failed("the function for progress", repr(report), error)

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
            self._caller.answer(number, answer, "the function that answers it has failed")

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
    """The exception for an error of the core's."""
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
    """How a server is reached. What belongs to another kind of server is an error."""
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
        raise ConfigError(f"server: {server!r} is no list of texts, URL or ResourceServer")
    for option, value in given.items():
        if value is None:
            continue
        if option not in used:
            raise ConfigError(f"{option}: it does not belong to {kind}")
        target[option] = os.fsencode(value) if option == "cwd" else list(dict(value).items())  # type: ignore[arg-type]
    return target


def _globs(resources: Sequence[str] | str) -> list[str] | None:
    if resources == "*":
        return None
    if isinstance(resources, str) or not all(isinstance(glob, str) for glob in resources):
        raise ConfigError(f'resources: {resources!r} is neither a list of globs nor "*"')
    return list(resources)


def _milliseconds(timeout: int | None) -> int | None:
    if timeout is None or (type(timeout) is int and timeout > 0):
        return timeout
    raise ConfigError(f"timeout: {timeout!r} is no number of milliseconds: a whole number above 0")


def _text(option: str, value: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{option}: {value!r} is no text")
    return value


def _functions(answers: Mapping[str, Answer] | None) -> dict[str, Answer]:
    for name, function in (answers or {}).items():
        if name not in Client._QUESTIONS:
            raise ConfigError(unexpected("answers: question", name, list(Client._QUESTIONS)))
        if not callable(function):
            raise ConfigError(f"answers[{name!r}]: {function!r} cannot be called")
    return dict(answers or {})
