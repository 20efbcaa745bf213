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
from typing import Literal, TypeAlias, TypedDict, Unpack

from . import checks
from ._core import Memory, Metrics, Provider, ResultCache, declared, embedded, memory
from ._core import metrics as _metrics
from .loops import running_loop

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
]


def __dir__() -> list[str]:
    """What an editor or a notebook offers: the names of this module, not those that it imports."""
    return __all__


Root: TypeAlias = str | os.PathLike[str]
"""The path of a directory or file."""
Content: TypeAlias = str | bytes
Embedder: TypeAlias = Callable[[list[str]], Sequence[Sequence[float]]]
"""Returns one vector for each text, all of the same length: a list of lists, or a NumPy array."""


class ApiOptions(TypedDict, total=False):
    """The options of `api`, for all endpoints."""

    private_networks: bool
    """Whether requests may go to addresses that are not public, such as those of this machine. Default `False`."""
    redirects: int
    """The most redirects that are followed. Headers are not sent to another origin. Default 0."""
    timeout: int | str
    """The longest time for an answer: a text such as `"10s"`, or milliseconds. Default 10 s."""
    bytes: int | str
    """The largest answer: a text such as `"1 MiB"`, or a number of bytes. Default 1 MiB."""
    poll: int | str
    """How often a resource is requested while clients watch it: a text such as `"30s"`, or milliseconds. Default 30
    s."""


class ConfigOptions(TypedDict, total=False):
    """The options of `config`, for all files."""

    reveal: str | Sequence[str]
    """Globs: the values of keys that match one of them are never masked. Default: none."""
    redact: Literal["all"] | Sequence[str]
    """The detectors of secrets that mask values, by name, or `all`. Keys such as `password` or `api_key` are masked in
    any case. Default `all`."""


class EnvVariable(TypedDict):
    """An environment variable that contains a secret text."""

    env: str
    """The name of the variable."""


class DbOptions(TypedDict, total=False):
    """The tables and views of a `Database` that are served. Others are not."""

    password: str | EnvVariable | None
    """The password for Postgres, if the URL does not have it. Default: none."""
    tables: str | Sequence[str]
    """The tables that are served, such as `customers`, or `sales.customers` for a schema of Postgres. Default: none."""
    columns_deny: str | Sequence[str]
    """The columns that are not served, such as `password`, or `customers.password` for one table. Default: none."""
    views: Mapping[str, str]
    """SQL queries that clients can run, by name. Each is a `SELECT`; clients supply values for parameters such as
    `:city`. Default: none."""
    rows: int
    """The rows on one page of a table if the client does not choose, from 1 to 1,000. Default 100."""
    poll: str | int
    """How often the database is checked for changes while clients watch: a text such as `"200ms"`, or milliseconds, at
    least 10 ms. Default 200 ms."""
    tools: bool | str | Sequence[str]
    """The tools that are offered: all of them (`True`), none, or those with these names: `db_rows`, `db_row`,
    and `db_NAME_VIEW` for each view.
    Default: all, if the server has `expose_as_tools`."""


class Database(DbOptions):
    """A database for `db`."""

    url: str | EnvVariable
    """`sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/NAME`, or the environment variable that contains it."""


class DocsOptions(TypedDict, total=False):
    """The options of `docs`, for all sites."""

    include: str | Sequence[str]
    """Globs: only pages whose path within the site matches one of them are served. `*` matches within a path segment,
    `**` across segments. Default: all."""
    exclude: str | Sequence[str]
    """Globs: files and directories whose path within the site matches one of them are not served, nor anything below
    them. Default: none."""
    gitignore: bool
    """Whether files that `.gitignore`, `.ignore` or `.git/info/exclude` excludes are not served. Default `True`."""
    hidden: bool
    """Whether files and directories whose name begins with a dot are served. Default `False`."""
    list_max: int
    """The most pages in `resources/list`; all can be read and searched. Default 1,000."""
    watch: bool
    """Whether clients are notified of changes. Default `True`."""
    watch_dirs: int
    """The most directories that the operating system watches; further ones are checked periodically. Default 8,192."""
    max_bytes: int | None
    """The largest page that is read, in bytes. Default: `Limits.contents` of the server."""
    index: str | None
    """The path of a file that keeps the search index between runs. Default: the index is kept in memory."""
    tools: bool | str | Sequence[str]
    """The tools that are offered: all of them (`True`), none, or those with these names: `docs_search`.
    Default: all, if the server has `expose_as_tools`."""


class ClockOptions(TypedDict, total=False):
    """The options of `clock`."""

    zones: str | Sequence[str]
    """The time zones in `resources/list`, such as `Asia/Tokyo`; every zone can be read. Default: UTC and the local
    zone."""


class EnvOptions(TypedDict, total=False):
    """The options of `env`."""

    reveal: str | Sequence[str]
    """The names of variables whose values are never masked. Default: none."""
    redact: Literal["all"] | Sequence[str]
    """The detectors of secrets that mask values, by name, or `all`. Variables such as `PASSWORD` or `API_KEY` are
    masked in any case. Default `all`."""


class FilesOptions(TypedDict, total=False):
    """The options of `files`, for all roots."""

    include: str | Sequence[str]
    """Globs: only files whose path within the root matches one of them are served. `*` matches within a path segment,
    `**` across segments. Default: all."""
    exclude: str | Sequence[str]
    """Globs: files and directories whose path within the root matches one of them are not served, nor anything below
    them. Default: none."""
    gitignore: bool
    """Whether files that `.gitignore`, `.ignore` or `.git/info/exclude` excludes are not served. Default `True`."""
    hidden: bool
    """Whether files and directories whose name begins with a dot are served. Default `False`."""
    symlinks: Literal["never", "inside"]
    """Whether symbolic links are followed: `never`, or `inside` for links to a target below the same root. Default
    `never`."""
    list_max: int
    """The most files in `resources/list`; all can be read. Default 1,000."""
    watch: bool
    """Whether clients are notified of changes. Default `True`."""
    watch_dirs: int
    """The most directories that the operating system watches; further ones are checked periodically. Default 8,192."""
    max_bytes: int | None
    """The largest file that is read, in bytes. Default: `Limits.contents` of the server."""


class GitOptions(TypedDict, total=False):
    """The options of `git`, for all repositories."""

    include: str | Sequence[str]
    """Globs: only files whose path within the repository matches one of them are served. `*` matches within a path
    segment, `**` across segments. Default: all."""
    exclude: str | Sequence[str]
    """Globs: files and directories whose path within the repository matches one of them are not served, nor anything
    below them. Default: none."""
    hidden: bool
    """Whether files and directories whose name begins with a dot are served. Default `False`."""
    log_max: int
    """The most commits in a log. Default 1,000."""
    diff_bytes: int | str
    """The largest diff: a text such as `"1 MiB"`, or a number of bytes. Default 1 MiB."""
    refs: str | Sequence[str]
    """The kinds of references that clients can name: `heads` (branches), `tags` and `remotes`. Default `heads` and
    `tags`."""
    watch: bool
    """Whether clients are notified of changes. Default `True`."""
    tools: bool | str | Sequence[str]
    """The tools that are offered: all of them (`True`), none, or those with these names: `git_log`, `git_diff`,
    `git_show`.
    Default: all, if the server has `expose_as_tools`."""


class MetricsOptions(TypedDict, total=False):
    """The options of `metrics`."""

    series: int
    """The most series, from 1 to 10,000; a push to a further one is refused. Default 256."""
    samples: int
    """The samples that each series keeps, from 1 to 1,000,000; a new sample replaces the oldest. A series needs 16
    bytes per sample. Default 3,600."""
    points: int
    """The most points of a read that does not choose a `step`, from 2 to 10,000. Default 240."""
    interval: str | int
    """How often this machine is measured, and how often subscribers of a series are notified at most: a text such as
    `"10s"`, or milliseconds. Default 1 s."""
    host: bool
    """Whether the CPU, memory, disks and network of this machine are measured. Default `False`."""


class RagOptions(TypedDict, total=False):
    """The options of `rag`, for all collections."""

    include: str | Sequence[str]
    """Globs: only files of folders whose path matches one of them are used. `*` matches within a path segment, `**`
    across segments. Default: all."""
    exclude: str | Sequence[str]
    """Globs: files and directories of folders whose path matches one of them are not used, nor anything below them.
    Default: none."""
    list_max: int
    """The most documents in `resources/list`; all can be read and searched. Default 1,000."""
    poll: int | str
    """How often Google Drive is checked for changes while it is in use: a text such as `"30s"`, or milliseconds.
    Default 30 s."""
    hits: int
    """The passages that a search returns, at most 100. Default 10."""
    index: str | None
    """The path of a file that keeps the search index between runs. Default: the index is kept in memory."""
    tools: bool | str | Sequence[str]
    """The tools that are offered: all of them (`True`), none, or those with these names: `rag_search`.
    Default: all, if the server has `expose_as_tools`."""


class ResultsOptions(TypedDict, total=False):
    """The options of `results`."""

    scheme: str
    """The scheme of the URIs `SCHEME:///ID`. Default `results`."""
    entries: int
    """The most results that are kept; the least recently used one is dropped for a new one. Default 1,000."""
    bytes: int | str
    """The contents of all results together: a text such as `"64 MiB"`, or a number of bytes. Default 64 MiB."""
    ttl: int | str
    """How long a result is kept that is put without its own `ttl`: a text such as `"1h"`, or milliseconds. Default 1
    h."""
    file: Root | None
    """The path of an SQLite file that keeps the results; it is created if it does not exist. Default: results are kept
    in memory."""


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


class SkillsOptions(TypedDict, total=False):
    """The options of `skills`, for all directories."""

    exclude: str | Sequence[str]
    """Globs: files and directories whose path within the directory matches one of them are not served, nor anything
    below them. Default: none."""
    gitignore: bool
    """Whether files that `.gitignore`, `.ignore` or `.git/info/exclude` excludes are not served. Default `True`."""
    hidden: bool
    """Whether files and directories whose name begins with a dot are served. Default `False`."""
    list_max: int
    """The most files in `resources/list`; all can be read. Default 1,000."""
    watch: bool
    """Whether clients are notified of changes. Default `True`."""


def api(apis: Mapping[str, Mapping[str, object]], **options: Unpack[ApiOptions]) -> Provider:
    """Serves endpoints of HTTP APIs: `api:///{name}/{endpoint}/{+id}`.

    An endpoint is a URL, or a mapping with `url`, `headers` (values, or `{"env": NAME}`), `pick` (a JSON pointer to the
    part of the answer that is served) and `ids` (the ids that are listed and completed). `{id}` in the URL stands for
    the end of the resource's URI, encoded as one path segment. Requests go to public addresses only, unless
    `private_networks` is set. Environment variables are read when this function is called.

    Args:
        apis: the APIs by name, each with its `endpoints` by name.
        options: see `ApiOptions`.

    Raises:
        RegistrationError: an endpoint cannot be served, a variable is not set, or the value of an option is not
            allowed.
        TypeError: an option does not exist, or its value has the wrong type.
    """
    return declared("api", {"apis": apis, **options})


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
    return declared("db", {"databases": {name: dict(database) for name, database in databases.items()}})


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
    return declared("docs", {"sites": _paths(sites), **options})


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
    given = {"collections": pairs, **options}
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
    given: dict[str, object] = {**options}
    if "file" in given:
        given["file"] = _paths(given["file"])
    return Results(given)


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


def _paths(roots: object) -> object:
    """Paths as texts. Other values are left to the core, which refuses them."""
    if isinstance(roots, os.PathLike):
        return os.fspath(roots)
    if isinstance(roots, Mapping):
        return {name: _paths(root) for name, root in roots.items()}
    if isinstance(roots, Sequence) and not isinstance(roots, str | bytes):
        return [_paths(root) for root in roots]
    return roots
