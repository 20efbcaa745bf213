"""Sources of resources that are ready to serve: made here, and served by `ResourceServer.mount`.

from mcp_resources import ResourceServer, providers

server = ResourceServer("notes")
folder = providers.memory()
server.mount(providers.files("."), providers.clock(), folder)
folder.put("today.md", "Buy milk", "text/markdown")

They answer on threads of their own: no request for them waits for the event loop, or for the interpreter. The guard,
limits, audit and `redact` of the server hold for them as for functions. `redact` is called on such a thread.
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

Root: TypeAlias = str | os.PathLike[str]
"""A directory, or a file."""
Content: TypeAlias = str | bytes
Embedder: TypeAlias = Callable[[list[str]], Sequence[Sequence[float]]]
"""Makes a vector of each text, all of one length: a list of lists, or an array of NumPy."""


class ApiOptions(TypedDict, total=False):
    """The keyword arguments of `api` that may be left out: for all of its endpoints."""

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
    """The keyword arguments of `config` that may be left out: for all of its files."""

    reveal: str | Sequence[str]
    """Globs: the values of keys that match one of them are never masked. Default: none."""
    redact: Literal["all"] | Sequence[str]
    """The detectors of secrets that mask values, by name, or `all`. Keys such as `password` or `api_key` are masked in
    any case. Default `all`."""


class EnvVariable(TypedDict):
    """A variable of the environment, in the place of a text that is secret."""

    env: str
    """The name of the variable."""


class DbOptions(TypedDict, total=False):
    """What is served of a `Database`, and how. Nothing of it is served but what this names."""

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


class Database(DbOptions):
    """A database for `db`."""

    url: str | EnvVariable
    """`sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/NAME`, or the environment variable that contains it."""


class DocsOptions(TypedDict, total=False):
    """The keyword arguments of `docs`: for all of its sites."""

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


class ClockOptions(TypedDict, total=False):
    """The keyword arguments of `clock`."""

    zones: str | Sequence[str]
    """The time zones in `resources/list`, such as `Asia/Tokyo`; every zone can be read. Default: UTC and the local
    zone."""


class EnvOptions(TypedDict, total=False):
    """The keyword arguments of `env` that may be left out."""

    reveal: str | Sequence[str]
    """The names of variables whose values are never masked. Default: none."""
    redact: Literal["all"] | Sequence[str]
    """The detectors of secrets that mask values, by name, or `all`. Variables such as `PASSWORD` or `API_KEY` are
    masked in any case. Default `all`."""


class FilesOptions(TypedDict, total=False):
    """The keyword arguments of `files`: for all of its roots."""

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
    """The keyword arguments of `git`: for all of its repositories."""

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


class MetricsOptions(TypedDict, total=False):
    """The keyword arguments of `metrics`."""

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
    """The keyword arguments of `rag`: for all of its collections."""

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


class ResultsOptions(TypedDict, total=False):
    """The keyword arguments of `results`."""

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
    """A cache of results. `results` makes it.

    For any thread, but for `get_or_compute`, which is a coroutine. It is for one server.
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
        """The contents under an id, or what `compute` returns, which is put.

        Concurrent calls with the same id and principal run one computation, in whatever thread and event loop they are,
        and get the same contents or the same exception. Nothing is kept of a computation that fails. It goes on when
        the call is cancelled.

        Args:
            id: see `put`.
            compute: a function, or a coroutine function, without arguments.
            ttl: see `put`.
            mime_type: see `put`.
            principal: see `put`.

        Raises:
            TypeError: `compute` is no function.
            Exception: what `compute` raises, and what `put` raises of its result.
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
                task = asyncio.get_running_loop().create_task(self._lead(flight, id, principal, make))
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
        """Computes for all who wait. Its end is theirs; if it is cancelled, one of them computes in its place."""

        def end() -> None:
            with self._lock:
                self._computing.pop((id, principal), None)

        try:
            # Another one may have put it since.
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
    """The keyword arguments of `skills`: for all of its directories."""

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
    """Declared endpoints of HTTP APIs: `api:///{name}/{endpoint}/{+id}` (S-20).

    An endpoint is a URL, or a mapping with `url`, `headers` (values, or `{"env": NAME}`), `pick` (a JSON pointer) and
    `ids` (what is listed). `{id}` in the URL stands for the end of the resource's URI, encoded as one segment. Requests
    go to public addresses alone unless `private_networks` is set. Variables of the environment are read when this is
    called.

    Args:
        apis: by name, each with its `endpoints` by name.
        options: see `ApiOptions`.

    Raises:
        ValueError: an endpoint cannot be served, a variable is not set, or an option has a value that is not allowed.
        TypeError: an option has a wrong type, or there is none of this name.
    """
    return declared("api", {"apis": apis, **options})


def clock(**options: Unpack[ClockOptions]) -> Provider:
    """The time: `clock:///now`, and `clock:///{+zone}` for a zone of this machine's database, as `clock:///Asia/Tokyo`.

    Clients that subscribe to it are notified every second. A clock is for one server: make another for each.

    Args:
        options: see `ClockOptions`.

    Raises:
        ValueError: there is no such zone.
        TypeError: an option has a wrong type, or there is none of this name.
    """
    return declared("clock", {**options})


def config(
    apps: Root | Sequence[Root] | Mapping[str, Root], *, allow: str | Sequence[str], **options: Unpack[ConfigOptions]
) -> Provider:
    """The keys of configuration files: `config:///{app}` and `config:///{app}/{+key}` (S-04).

    The URI of a key is `config:///demo/server/port`. Files are YAML, TOML, JSON or `.env`. Only keys that `allow` names
    exist, and values that may be secrets are masked. Clients that watch a key or a whole file are notified when what
    they see of it changes. A file that is half-written leaves its values as they were.

    Args:
        apps: a file, which has its own name without the extension, a list of them, or files by the names that they are
            to have.
        allow: globs over the paths of keys: `server` is that key, `server/**` all in it, `*` is within a segment.
        options: see `ConfigOptions`.

    Raises:
        ValueError: a file is not there or makes no sense, two have one name, or an option has a value that is not
            allowed.
        TypeError: an option has a wrong type, or there is none of this name.
    """
    return declared("config", {"apps": _paths(apps), "allow": allow, **options})


def db(databases: Mapping[str, Database]) -> Provider:
    """The tables and views of databases: `db:///{name}/{table}` and `db:///{name}/{table}/{key}` (S-20).

    Rows and pages are JSON; `next` in a page is the URI of the next one. Clients never send SQL, and nothing is
    written. Subscribers of a row, a page or a view are notified when it changes: SQLite is asked for commits, Postgres
    tells of them once it has the triggers that `mcp-resources triggers` prints.

    A server has one such provider: name all databases in one call.

    Args:
        databases: the databases, by the names that they are to have in URIs.

    Raises:
        ValueError: a file is not there, or a name, a URL, a table or a statement cannot be served.
        TypeError: an option has a wrong type, or there is none of this name.
    """
    if not isinstance(databases, Mapping):
        raise TypeError("db() takes databases by their names, such as {'shop': {'url': 'sqlite:shop.db'}}")
    for name, database in databases.items():
        # It may be a URL with a password, which no message shows.
        if not isinstance(database, Mapping):
            raise TypeError(f"db(): {name} takes a mapping of options, such as {{'url': …, 'tables': […]}}")
    return declared("db", {"databases": {name: dict(database) for name, database in databases.items()}})


def docs(sites: Root | Sequence[Root] | Mapping[str, Root], **options: Unpack[DocsOptions]) -> Provider:
    """The Markdown pages of directories, with full-text search in Japanese and English (S-07).

    The URI of a page is `docs:///handbook/guide/search.md`, that of a section ends with `#slug`, and
    `docs:///handbook/search/WORDS` is a search. Subscribers of a page, a section or a search are notified when it
    changes. Searches of a site share an index that is built with the first request.

    Args:
        sites: a directory, which has its own name, a list of them, or directories by the names that they are to have.
        options: see `DocsOptions`.

    Raises:
        ValueError: a directory is not there, two have one name, or an option has a value that is not allowed.
        TypeError: an option has a wrong type, or there is none of this name.
    """
    return declared("docs", {"sites": _paths(sites), **options})


def env(*, allow: str | Sequence[str], **options: Unpack[EnvOptions]) -> Provider:
    """Variables of the environment: `env:///{name}`, and `env:///` for all that are allowed (S-04).

    They are read once, when this is called: what `os.environ` sets later is not seen. Values that may be secrets are
    masked.

    Args:
        allow: the names of the variables that exist, as far as they are set; `LC_*` is all that begin so.
        options: see `EnvOptions`.

    Raises:
        ValueError: an option has a value that is not allowed.
        TypeError: an option has a wrong type, or there is none of this name.
    """
    return declared("env", {"allow": allow, **options})


def files(roots: Root | Sequence[Root] | Mapping[str, Root], **options: Unpack[FilesOptions]) -> Provider:
    """The files of directories: `file:///{root}/{+path}`, with `?lines=10-40` for a part of a text (S-01).

    Subscribers of a file or directory are notified when it changes, and clients are notified that the list has changed
    when files are added or removed. Nothing outside a directory is read, wherever its links lead.

    Args:
        roots: a directory, which has its own name, a list of them, or directories by the names that they are to have.
        options: see `FilesOptions`.

    Raises:
        ValueError: a directory is not there, two have one name, or an option has a value that is not allowed.
        TypeError: an option has a wrong type, or there is none of this name.
    """
    return declared("files", {"roots": _paths(roots), **options})


def git(repos: Root | Sequence[Root] | Mapping[str, Root], **options: Unpack[GitOptions]) -> Provider:
    """Git repositories, read-only: statuses, logs, commits, diffs, and files of any revision (S-02).

    The URIs are `git:///{repo}/status`, `/branches`, `/tags`, `/log`, `/log/{ref}`, `/commit/{id}`,
    `/diff/{from}/{to}`, `/tree/{ref}/{+path}` and `/blob/{ref}/{+path}`. Nothing of a repository is run: no hook,
    filter, text converter or file system monitor. Clients that watch a resource are notified when a commit, a fetch or
    an edit changes what they see of it.

    Args:
        repos: the root of a working tree or a bare repository, which has the name of its directory, a list of them, or
            directories by the names that they are to have.
        options: see `GitOptions`.

    Raises:
        ValueError: a directory is not a repository, or leads to another one; two have one name; or an option has a
            value that is not allowed.
        TypeError: an option has a wrong type, or there is none of this name.
    """
    return declared("git", {"repos": _paths(repos), **options})


def metrics(**options: Unpack[MetricsOptions]) -> Metrics:
    """Series of numbers: `metrics:///{name}` is the last hour of one, `?from=-5m&step=10s` another part of it (S-05).

    `push` adds samples, from any thread. If there are more samples than `points`, a read combines them: each point has
    their least, greatest and mean value, so no spike is lost. With `host`, the CPU, memory, disks and network of this
    machine are measured while clients watch or read.

    Args:
        options: see `MetricsOptions`.

    Raises:
        ValueError: an option has a value that is not allowed.
        TypeError: an option has a wrong type, or there is none of this name.
    """
    return _metrics(options)


def rag(
    collections: Mapping[str, Root | Mapping[str, object]],
    *,
    embedder: Embedder | None = None,
    **options: Unpack[RagOptions],
) -> Provider:
    """Documents of folders and of Google Drive, found by questions (S-03).

    `rag:///kb/search/QUESTION` gives passages, each with the URI of its document, `rag:///kb/doc/ID`, and with its
    score and position in `_meta`. The ranking is BM25: it knows words, not meanings.

    Args:
        collections: by their names, a directory, `{"folder": DIR}`, or
            `{"drive": {"credentials": FILE, "folder": ID}}`, where `{"drive": FILE}` names a YAML or JSON file that has
            the same.
        embedder: makes vectors of texts, for passages and for questions: a search then combines BM25 with the nearest
            vectors. It is called from threads of the provider, with up to 64 texts at once. What it raises is logged,
            and passages that have no vector are found by their words.
        options: see `RagOptions`.

    Raises:
        ValueError: a directory or file is not there, or an option has a value that is not allowed.
        TypeError: an option has a wrong type, or there is none of this name.
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
    """A cache of results: `results:///{analysisId}`, and `results:///` for all that a client may see (S-06).

    A program puts what it has computed; clients list, read and watch it until it expires. A read says how long it may
    be kept. A result is for everybody, or for one principal: for others it is not there.

    Args:
        options: see `ResultsOptions`.

    Raises:
        ValueError: an option has a value that is not allowed, or the file cannot be used.
        TypeError: an option has a wrong type, or there is none of this name.
    """
    given: dict[str, object] = {**options}
    if "file" in given:
        given["file"] = _paths(given["file"])
    return Results(given)


def skills(paths: Root | Sequence[Root] | Mapping[str, Root], **options: Unpack[SkillsOptions]) -> Provider:
    """Folders of Agent Skills: `skill://{+path}`, with the methods of the skills extension.

    A directory with a `SKILL.md` is a skill: `skill://acme/billing/refunds/SKILL.md` is in the directory
    `acme/billing/refunds`. `skills/list` and `skills/get` give the front matter of a skill and the digest of each of
    its files, `resources/directory/read` the children of a directory. Clients without the extension read the files as
    resources. What does not follow the Agent Skills specification is logged and not served.

    Args:
        paths: a directory that is a skill or holds skills, a list of them, or directories by the prefixes that stand
            before the paths of their skills, as `acme/billing`.
        options: see `SkillsOptions`.

    Raises:
        ValueError: a directory is not there, or an option has a value that is not allowed.
        TypeError: an option has a wrong type, or there is none of this name.
    """
    return declared("skills", {"paths": _paths(paths), **options})


def _paths(roots: object) -> object:
    """Paths as texts. What is none is the core's to refuse."""
    if isinstance(roots, os.PathLike):
        return os.fspath(roots)
    if isinstance(roots, Mapping):
        return {name: _paths(root) for name, root in roots.items()}
    if isinstance(roots, Sequence) and not isinstance(roots, str | bytes):
        return [_paths(root) for root in roots]
    return roots
