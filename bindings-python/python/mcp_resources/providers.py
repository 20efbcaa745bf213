"""The ready-made providers, to be mounted with `ResourceServer.mount`.

from mcp_resources import ResourceServer, providers

server = ResourceServer("notes")
folder = providers.memory()
server.mount(providers.files("."), providers.clock(), folder)
folder.put("today.md", "Buy milk", "text/markdown")

Providers answer on threads of their own: their requests do not wait for the event loop or the interpreter. The guard,
limits, audit and `redact` of the server apply to them as to functions. `redact` is called on a thread of the provider.
"""

import asyncio
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TypeAlias, Unpack

from . import checks
from ._core import Memory, Metrics, Provider, ResultCache, declared, embedded, memory
from ._core import metrics as _metrics
from .loops import running_loop
from .provider_options import (
    ApiOptions,
    ClockOptions,
    ConfigOptions,
    Database,
    DbOptions,
    DocsOptions,
    EnvOptions,
    EnvVariable,
    FilesOptions,
    GitOptions,
    MetricsOptions,
    RagOptions,
    ResultsOptions,
    Root,
    ServerEntry,
    SkillsOptions,
)

__all__ = [
    "ApiOptions",
    "ClockOptions",
    "ConfigOptions",
    "Database",
    "DbOptions",
    "DocsOptions",
    "EnvOptions",
    "EnvVariable",
    "FilesOptions",
    "GitOptions",
    "Memory",
    "Metrics",
    "MetricsOptions",
    "Provider",
    "RagOptions",
    "Results",
    "ResultsOptions",
    "Root",
    "ServerEntry",
    "SkillsOptions",
    "api",
    "clock",
    "config",
    "db",
    "docs",
    "env",
    "files",
    "git",
    "memory",
    "metrics",
    "rag",
    "results",
    "skills",
    "upstream",
]


def __dir__() -> list[str]:
    """What an editor or a notebook offers: the names of this module, not those that it imports."""
    return __all__


Content: TypeAlias = str | bytes
Embedder: TypeAlias = Callable[[list[str]], Sequence[Sequence[float]]]
"""Returns one vector for each text, all of the same length: a list of lists, or a NumPy array."""


class Results(ResultCache):
    """A cache of computed results, for one server. Made by `results`.

    Its methods can be called from any thread; `get_or_compute` is a coroutine.
    """

    def __init__(self, _options: object) -> None:
        """See `results`."""
        self._lock = threading.Lock()
        self._computing: dict[tuple[str, str | None], Future[Content | None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def get_or_compute(
        self,
        id: str,
        compute: Callable[[], Awaitable[Content] | Content],
        *,
        ttl: int | str | None = None,
        mime_type: str | None = None,
        principal: str | None = None,
    ) -> Content:
        """Returns the contents under an id. If there are none, calls `compute`, and stores and returns its result.

        Concurrent calls with the same id and principal, from any thread and event loop, share one computation and its
        result or exception. Exceptions are not stored. The computation continues if the call is cancelled.

        Args:
            id: see `put`.
            compute: a function without arguments that returns the contents; it may be `async`.
            ttl: see `put`.
            mime_type: see `put`.
            principal: see `put`.

        Raises:
            TypeError: `compute` is not a function.
            Exception: the exceptions of `compute` and of `put`.
        """
        if not callable(compute):
            raise TypeError(f"what computes {id!r} is {compute!r}, expected a function that returns the body")

        async def make() -> Content:
            made = compute()
            body = await made if inspect.isawaitable(made) else made
            self.put(id, body, ttl=ttl, mime_type=mime_type, principal=principal)
            return body

        while (found := self.get(id, principal=principal)) is None:
            with self._lock:
                flight = self._computing.get((id, principal))
                leads = flight is None
                flight = flight or self._computing.setdefault((id, principal), Future())
            if leads:
                task = running_loop().create_task(self._lead(flight, id, principal, make))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            found = await asyncio.shield(asyncio.wrap_future(flight))
            if found is not None:
                break
        return found

    async def _lead(
        self,
        flight: Future[Content | None],
        id: str,
        principal: str | None,
        make: Callable[[], Awaitable[Content]],
    ) -> None:
        """Computes for all concurrent calls. If it is cancelled, another one of them computes instead."""

        def end() -> None:
            with self._lock:
                self._computing.pop((id, principal), None)

        try:
            # Another call may have stored it in the meantime.
            body = self.get(id, principal=principal)
            body = await make() if body is None else body
        except asyncio.CancelledError:
            end()
            flight.set_result(None)
            raise
        except BaseException as error:
            end()
            flight.set_exception(error)
        else:
            end()
            flight.set_result(body)


def api(apis: Mapping[str, Mapping[str, object]], **options: Unpack[ApiOptions]) -> Provider:
    """Serves endpoints of HTTP APIs: `api:///{name}/{endpoint}/{+id}`.

    An endpoint is a URL, or a mapping with `url`, `headers` (values, or `{"env": NAME}`), `pick` (a JSON pointer to the
    part of the answer that is served) and `ids` (the ids that are listed and completed). `{id}` in the URL stands for
    the end of the resource's URI, encoded as one path segment; a URL with other variables has a template of its own.
    With `openapi` (a file or a URL) and `allow` (such as `["GET /items/*"]`), the GET operations of a document are
    endpoints, with its `headers` and `base_url`. Requests go to public addresses only, unless `private_networks` is
    set. Environment variables are read when this function is called.

    Args:
        apis: the APIs by name, each with its `endpoints` by name, or with `openapi` and `allow`.
        options: see `ApiOptions`.

    Raises:
        RegistrationError: an endpoint cannot be served, a variable is not set, or the value of an option is not
            allowed.
        TypeError: an option does not exist, or its value has the wrong type.
    """
    return declared("api", {"apis": _paths(apis), **options})


def clock(**options: Unpack[ClockOptions]) -> Provider:
    """Serves the current time: `clock:///now`, and `clock:///{+zone}` for a time zone, such as `clock:///Asia/Tokyo`.

    Subscribers are notified every second. A clock belongs to one server; make another one for each.

    Args:
        options: see `ClockOptions`.

    Raises:
        RegistrationError: there is no such zone.
        TypeError: an option does not exist, or its value has the wrong type.
    """
    return declared("clock", {**options})


def config(
    apps: Root | Sequence[Root] | Mapping[str, Root], *, allow: str | Sequence[str], **options: Unpack[ConfigOptions]
) -> Provider:
    """Serves the values of configuration files: `config:///{app}`, and `config:///{app}/{+key}` for one key.

    Files are YAML, TOML, JSON or `.env`; the URI of a key is `config:///demo/server/port`. Only keys in `allow` are
    served, and values that may be secrets are masked. Subscribers of a key or a file are notified when a value that
    they see changes. While a file is incomplete, its previous values are served.

    Args:
        apps: a file, a list of files, or files by name. Without a name, a file is served under its own, without the
            extension.
        allow: globs over the paths of keys: only keys that match one of them are served. `server` is one key,
            `server/**` all keys in it; `*` matches within a path segment.
        options: see `ConfigOptions`.

    Raises:
        RegistrationError: a file does not exist or cannot be parsed, two have the same name, or the value of an option
            is not allowed.
        TypeError: an option does not exist, or its value has the wrong type.
    """
    return declared("config", {"apps": _paths(apps), "allow": allow, **options})


def db(databases: Mapping[str, Database]) -> Provider:
    """Serves tables and views of databases: `db:///{name}/{table}` and `db:///{name}/{table}/{key}`.

    Rows and pages are JSON; `next` in a page is the URI of the next one. Clients never send SQL, and nothing is
    written. Subscribers of a row, page or view are notified of its changes: SQLite is checked for commits, Postgres
    needs the triggers that `mcp-resources triggers` prints. A server can have only one such provider: name all
    databases in one call.

    Args:
        databases: the databases, by their names in URIs.

    Raises:
        RegistrationError: a file does not exist, or a name, URL, table or query is not allowed.
        TypeError: an option does not exist, or its value has the wrong type.
    """
    if not isinstance(databases, Mapping):
        raise TypeError("db() takes databases by their names, such as {'shop': {'url': 'sqlite:shop.db'}}")
    for name, database in databases.items():
        # It may be a URL with a password, which no message shows.
        if not isinstance(database, Mapping):
            raise TypeError(f"db(): {name} takes a mapping of options, such as {{'url': …, 'tables': […]}}")
    return declared("db", {"databases": {name: _options(database) for name, database in databases.items()}})


def docs(sites: Root | Sequence[Root] | Mapping[str, Root], **options: Unpack[DocsOptions]) -> Provider:
    """Serves the Markdown pages of directories, with full-text search in Japanese and English.

    The URI of a page is `docs:///handbook/guide/search.md`; `#slug` names a section of it.
    `docs:///handbook/search/WORDS` is a search. Subscribers of a page, section or search are notified of its changes.
    The search index of a site is built at the first request.

    Args:
        sites: a directory, a list of directories, or directories by name. Without a name, a directory is served under
            its own.
        options: see `DocsOptions`.

    Raises:
        RegistrationError: a directory does not exist, two have the same name, or the value of an option is not allowed.
        TypeError: an option does not exist, or its value has the wrong type.
    """
    return declared("docs", {"sites": _paths(sites), **_options(options)})


def env(*, allow: str | Sequence[str], **options: Unpack[EnvOptions]) -> Provider:
    """Serves environment variables: `env:///{name}`, and `env:///` for all that are allowed.

    They are read once, when this function is called; later changes of `os.environ` have no effect. Values that may be
    secrets are masked.

    Args:
        allow: the names of the variables that are served, if they are set. `LC_*` stands for all names that begin with
            `LC_`.
        options: see `EnvOptions`.

    Raises:
        RegistrationError: the value of an option is not allowed.
        TypeError: an option does not exist, or its value has the wrong type.
    """
    return declared("env", {"allow": allow, **options})


def files(roots: Root | Sequence[Root] | Mapping[str, Root], **options: Unpack[FilesOptions]) -> Provider:
    """Serves the files of directories: `file:///{root}/{+path}`, with `?lines=10-40` for a part of a text.

    Subscribers of a file or directory are notified of its changes; the list changes when files are added or removed.
    Files outside of a directory are never read, also not through links.

    Args:
        roots: a directory, a list of directories, or directories by name. Without a name, a directory is served under
            its own.
        options: see `FilesOptions`.

    Raises:
        RegistrationError: a directory does not exist, two have the same name, or the value of an option is not allowed.
        TypeError: an option does not exist, or its value has the wrong type.
    """
    return declared("files", {"roots": _paths(roots), **options})


def git(repos: Root | Sequence[Root] | Mapping[str, Root], **options: Unpack[GitOptions]) -> Provider:
    """Serves Git repositories, read-only: status, log, commits, diffs, and files of any revision.

    The URIs are `git:///{repo}/status`, `/branches`, `/tags`, `/log`, `/log/{ref}`, `/commit/{id}`,
    `/diff/{from}/{to}`, `/tree/{ref}/{+path}` and `/blob/{ref}/{+path}`. No program of a repository is run: no hook,
    filter, text converter or file system monitor. Subscribers are notified when a commit, a fetch or an edit changes
    the resource.

    Args:
        repos: a repository (the root of a working tree, or a bare repository), a list of them, or repositories by name.
            Without a name, a repository is served under that of its directory.
        options: see `GitOptions`.

    Raises:
        RegistrationError: a directory is not a repository or leads to another one, two have the same name, or the value
            of an option is not allowed.
        TypeError: an option does not exist, or its value has the wrong type.
    """
    return declared("git", {"repos": _paths(repos), **options})


def metrics(**options: Unpack[MetricsOptions]) -> Metrics:
    """Serves series of numbers: `metrics:///{name}` is the last hour of a series.

    `?from=-5m&step=10s` reads another part. `push` adds samples, from any thread. If there are more samples than
    `points`, a read combines them: each point has their minimum, maximum and mean, so no spike is lost. With
    `host`, the CPU, memory, disks and network of this machine are measured while clients read or watch them.

    Args:
        options: see `MetricsOptions`.

    Raises:
        RegistrationError: the value of an option is not allowed.
        TypeError: an option does not exist, or its value has the wrong type.
    """
    return _metrics(options)


def rag(
    collections: Mapping[str, Root | Mapping[str, object]],
    *,
    embedder: Embedder | None = None,
    **options: Unpack[RagOptions],
) -> Provider:
    """Serves passages of documents for retrieval, from folders and Google Drive.

    `rag:///kb/search/QUESTION` returns passages, each with the URI of its document, `rag:///kb/doc/ID`, and with its
    score and position in `_meta`. The ranking is BM25, which compares words, not meanings.

    Args:
        collections: the collections by name: each a directory, `{"folder": DIR}`, or
            `{"drive": {"credentials": FILE, "folder": ID}}`. `{"drive": FILE}` names a YAML or JSON file with the
            options of Drive.
        embedder: makes vectors of passages and questions; a search then combines BM25 with the nearest vectors. A plain
            function, called on threads of the provider with up to 64 texts at once. Errors are logged; passages without
            a vector are ranked by BM25 only. Default: the ranking is BM25 only.
        options: see `RagOptions`.

    Raises:
        RegistrationError: a directory or file does not exist, or the value of an option is not allowed.
        TypeError: an option does not exist, or its value has the wrong type.
    """
    if not isinstance(collections, Mapping):
        shown = checks.shown(collections)
        raise TypeError(f"rag() takes collections by their names, such as {{'kb': 'notes'}}, not {shown}")
    pairs = [[name, _paths(origin)] for name, origin in collections.items()]
    given = {"collections": pairs, **_options(options)}
    if embedder is None:
        return declared("rag", given)
    checks.plain_function("embedder", embedder, "it is called on threads of the provider")
    return embedded(given, embedder)


def results(**options: Unpack[ResultsOptions]) -> Results:
    """Serves a cache of computed results: `results:///{analysisId}`, and `results:///` for all of them.

    A program puts its results into the cache; clients list, read and watch them until they expire. Reads carry the
    remaining time as a caching hint. A result is visible to all clients or to one principal; to others it does not
    exist.

    Args:
        options: see `ResultsOptions`.

    Raises:
        RegistrationError: the value of an option is not allowed, or the file cannot be used.
        TypeError: an option does not exist, or its value has the wrong type.
    """
    return Results(_options(options))


def skills(paths: Root | Sequence[Root] | Mapping[str, Root], **options: Unpack[SkillsOptions]) -> Provider:
    """Serves directories of Agent Skills: `skill://{+path}`, with the methods of the skills extension.

    A directory with a `SKILL.md` is a skill: `skill://acme/billing/refunds/SKILL.md` is in the directory
    `acme/billing/refunds`. `skills/list` and `skills/get` return the front matter of a skill and the digest of each of
    its files, `resources/directory/read` the children of a directory. Clients without the extension read the files as
    resources. Skills that violate the Agent Skills specification are logged and not served.

    Args:
        paths: a directory that is a skill or contains skills, a list of them, or directories by the prefix of their
            paths, such as `acme/billing`.
        options: see `SkillsOptions`.

    Raises:
        RegistrationError: a directory does not exist, or the value of an option is not allowed.
        TypeError: an option does not exist, or its value has the wrong type.
    """
    return declared("skills", {"paths": _paths(paths), **options})


def upstream(servers: Mapping[str, str | ServerEntry]) -> Provider:
    """Serves what other MCP servers have: their resources, templates, tools and prompts.

    The servers may use any SDK, stdio or HTTP, and any protocol revision. URIs and names stay as they are, unless two
    servers have the same, or a server has a `prefix`. A server is started when it is first needed. One that fails does
    not affect the others. Updates of theirs reach the subscribers of this server. A server can have only one such
    provider: name all servers in one call.

    Args:
        servers: the servers by name: each a URL, or a mapping with `command` or `url`.

    Raises:
        RegistrationError: an entry has neither or both of `command` and `url`, a variable is not set, or the value of
            an option is not allowed.
        TypeError: an option does not exist, or its value has the wrong type.
    """
    if not isinstance(servers, Mapping):
        raise TypeError("upstream() takes servers by their names, such as {'wiki': 'https://wiki.example/mcp'}")
    entries = {name: _options(entry) if isinstance(entry, Mapping) else entry for name, entry in servers.items()}
    return declared("upstream", {"servers": entries})


def _options(options: Mapping[str, object]) -> dict[str, object]:
    """The same with paths as texts."""
    return {name: _paths(value) if isinstance(value, os.PathLike) else value for name, value in options.items()}


def _paths(roots: object) -> object:
    """Paths as texts. Other values are left to the core, which refuses them."""
    if isinstance(roots, os.PathLike):
        return os.fspath(roots)
    if isinstance(roots, Mapping):
        return {name: _paths(root) for name, root in roots.items()}
    if isinstance(roots, Sequence) and not isinstance(roots, str | bytes):
        return [_paths(root) for root in roots]
    return roots
