"""The options of the providers. `make options` writes this file from the rows in Rust."""

import os
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, TypedDict

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
    "MetricsOptions",
    "RagOptions",
    "ResultsOptions",
    "Root",
    "ServerEntry",
    "SkillsOptions",
]

Root: TypeAlias = str | os.PathLike[str]
"""The path of a directory or file."""


class EnvVariable(TypedDict):
    """An environment variable that contains a secret text."""

    env: str
    """The name of the variable."""


class ApiOptions(TypedDict, total=False):
    """The options of `api`, for all endpoints."""

    private_networks: bool
    """Whether requests may go to addresses that are not public, such as those of this machine. Default `False`."""
    redirects: int
    """The maximum number of redirects that are followed. Headers are not sent to another origin. Default 0."""
    timeout: int | str
    """The maximum time for an answer, with redirects. A text such as `"10s"`, or milliseconds. Default `10s`."""
    bytes: int | str
    """The largest answer. A text such as `"1 MiB"`, or a number of bytes. Default `1 MiB`."""
    poll: int | str
    """The interval at which a resource is requested while clients watch it: at least 100 ms. A text such as `"30s"`, or
    milliseconds. Default `30s`."""


class ClockOptions(TypedDict, total=False):
    """The options of `clock`."""

    zones: str | Sequence[str]
    """The time zones in `resources/list`, such as `Asia/Tokyo`; every zone can be read. Default: UTC and the local
    zone."""


class ConfigOptions(TypedDict, total=False):
    """The options of `config`, for all files."""

    reveal: str | Sequence[str]
    """Globs: the values of keys that match one of them are never masked. Default: none."""
    redact: Literal["all"] | Sequence[str]
    """The detectors of secrets that mask values, by name, or `all`. Keys such as `password` or `api_key` are masked in
    any case. Default `all`."""


class DbOptions(TypedDict, total=False):
    """The tables and views of a `Database` that are served. Others are not."""

    password: str | EnvVariable | None
    """The password for Postgres, if the URL does not have it."""
    sslmode: Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]
    """The use of TLS with Postgres, as libpq names it. Default: that of the URL, or `prefer`."""
    sslrootcert: Root | None
    """The certificates of the authorities that may sign that of the Postgres server, in PEM. Default: those of the
    system."""
    sslcert: Root | None
    """The certificate that a Postgres server is shown, in PEM."""
    sslkey: Root | None
    """The private key of `sslcert`, in PEM. Only its owner may be able to read it."""
    connections: int
    """The most connections to the database for requests. One more reports changes while a client watches. From 1 to 32.
    Default 4."""
    tables: str | Sequence[str]
    """The tables that are served, such as `customers`, or `sales.customers` for a schema of Postgres. Default: none."""
    columns_deny: str | Sequence[str]
    """The columns that are not served, such as `password`, or `customers.password` for one table. Default: none."""
    views: Mapping[str, str]
    """SQL queries that clients can run, by name. Each is a `SELECT`; clients supply values for parameters such as
    `:city`. Default: none."""
    rows: int
    """The number of rows on a page of a table unless the client chooses one. From 1 to 1000. Default 100."""
    poll: int | str
    """The interval of checks for changes while a client watches. A text such as `"200ms"`, or milliseconds. From 10ms
    to 1d. Default `200ms`."""
    tools: bool | str | Sequence[str]
    """The tools that are offered, out of `db_rows`, `db_row`, and `db_NAME_VIEW` for each view. Default: all, if the
    server offers its resources as tools."""


class Database(DbOptions):
    """A database for `db`."""

    url: str | EnvVariable
    """`sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/NAME`, or the environment variable that has it."""


class DocsOptions(TypedDict, total=False):
    """The options of `docs`, for all sites."""

    include: str | Sequence[str]
    """Globs: only pages whose path within the site matches one of them are served. `*` matches within a path segment,
    `**` across segments. Default: all."""
    exclude: str | Sequence[str]
    """Globs: pages and directories whose path within the site matches one of them are not served, nor anything in them.
    Default: none."""
    gitignore: bool
    """Whether files that `.gitignore`, `.ignore` or `.git/info/exclude` excludes are left out. Default `True`."""
    hidden: bool
    """Whether files and directories whose name begins with a dot are served. Default `False`."""
    list_max: int
    """The maximum number of pages in `resources/list`; all can be read and searched. Default 1,000."""
    watch: bool
    """Whether clients are notified of changes. Default `True`."""
    watch_dirs: int
    """The maximum number of directories that the operating system watches; further ones are checked periodically.
    Default 8,192."""
    max_bytes: int | None
    """The largest page that is read, in bytes. Default: the server's limit `contents`."""
    index: Root | None
    """The path of a file that keeps the search index between two runs. Default: the index is in memory."""
    tools: bool | str | Sequence[str]
    """The tools that are offered, out of `docs_search`. Default: all, if the server offers its resources as tools."""


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
    """Globs: files and directories whose path within the root matches one of them are not served, nor anything in them.
    Default: none."""
    gitignore: bool
    """Whether files that `.gitignore`, `.ignore` or `.git/info/exclude` excludes are left out. Default `True`."""
    hidden: bool
    """Whether files and directories whose name begins with a dot are served. Default `False`."""
    symlinks: Literal["never", "inside"]
    """Whether symbolic links are followed: `never`, or `inside` for links to a target within the same root. Default
    `never`."""
    list_max: int
    """The maximum number of files in `resources/list`; all can be read. Default 1,000."""
    watch: bool
    """Whether clients are notified of changes. Default `True`."""
    watch_dirs: int
    """The maximum number of directories that the operating system watches; further ones are checked periodically.
    Default 8,192."""
    max_bytes: int | None
    """The largest file that is read, in bytes. Default: the server's limit `contents`."""


class GitOptions(TypedDict, total=False):
    """The options of `git`, for all repositories."""

    include: str | Sequence[str]
    """Globs: only files whose path within the repository matches one of them are served. `*` matches within a path
    segment, `**` across segments. Default: all."""
    exclude: str | Sequence[str]
    """Globs: files and directories whose path within the repository matches one of them are not served, nor anything in
    them. Default: none."""
    hidden: bool
    """Whether files and directories whose name begins with a dot are served. Default `False`."""
    log_max: int
    """The maximum number of commits in a log. Default 1,000."""
    diff_bytes: int | str
    """The largest diff; a larger one is an error. A text such as `"1 MiB"`, or a number of bytes. Default `1 MiB`."""
    refs: str | Sequence[str]
    """The references that clients can name, as folders of `refs`: `heads` (branches), `tags`, `remotes`, or one such as
    `remotes/origin`. Default `heads` and `tags`."""
    watch: bool
    """Whether clients are notified of changes. Default `True`."""
    tools: bool | str | Sequence[str]
    """The tools that are offered, out of `git_log`, `git_diff` and `git_show`. Default: all, if the server offers its
    resources as tools."""


class MetricsOptions(TypedDict, total=False):
    """The options of `metrics`."""

    series: int
    """The maximum number of series; a push to a further one is refused. From 1 to 10000. Default 256."""
    samples: int
    """The samples that each series keeps; a new sample replaces the oldest. The first sample of a series reserves 16
    bytes for each. From 1 to 1000000. Default 3,600."""
    points: int
    """The maximum number of points of a read without a `step`. From 2 to 10000. Default 240."""
    interval: int | str
    """The interval at which this machine is measured, and the shortest time between two notifications about a series. A
    text such as `"1s"`, or milliseconds. From 10ms to 1d. Default `1s`."""
    host: bool
    """Whether the CPU, memory, disks and network of this machine are measured. Default `False`."""


class RagOptions(TypedDict, total=False):
    """The options of `rag`, for all collections."""

    include: str | Sequence[str]
    """Globs: only files of folders whose path matches one of them are used. `*` matches within a path segment, `**`
    across segments. Default: all."""
    exclude: str | Sequence[str]
    """Globs: files and directories of folders whose path matches one of them are not used, nor anything in them.
    Default: none."""
    list_max: int
    """The maximum number of documents in `resources/list`; all can be read and searched. Default 1,000."""
    poll: int | str
    """The interval at which Google Drive is asked for changes while it is in use. A text such as `"30s"`, or
    milliseconds. From 10ms to 1d. Default `30s`."""
    hits: int
    """The number of passages that a search returns. From 1 to 100. Default 10."""
    index: Root | None
    """The path of a file that keeps the search index between two runs. Default: the index is in memory."""
    tools: bool | str | Sequence[str]
    """The tools that are offered, out of `rag_search`. Default: all, if the server offers its resources as tools."""


class ResultsOptions(TypedDict, total=False):
    """The options of `results`."""

    scheme: str
    """The scheme of the URIs `SCHEME:///ID`. Default `results`."""
    entries: int
    """The maximum number of results; a new one replaces the least recently used. Default 1,000."""
    bytes: int | str
    """The maximum size of the contents of all results. A text such as `"64 MiB"`, or a number of bytes. Default `64
    MiB`."""
    ttl: int | str
    """The time for which a result is kept if it is put without one of its own. A text such as `"1h"`, or milliseconds.
    Default `1h`."""
    file: Root | None
    """The path of an SQLite file that keeps the results; it is created if it does not exist. Default: results are in
    memory."""


class SkillsOptions(TypedDict, total=False):
    """The options of `skills`, for all directories."""

    exclude: str | Sequence[str]
    """Globs: files and directories whose path within the directory matches one of them are not served, nor anything in
    them. Default: none."""
    gitignore: bool
    """Whether files that `.gitignore`, `.ignore` or `.git/info/exclude` excludes are left out. Default `True`."""
    hidden: bool
    """Whether files and directories whose name begins with a dot are served. Default `False`."""
    list_max: int
    """The maximum number of files in `resources/list`; all can be read. Default 1,000."""
    watch: bool
    """Whether clients are notified of changes. Default `True`."""


class ServerEntry(TypedDict, total=False):
    """A server for `upstream`: a `command` or a `url`, and what is served of it."""

    command: str
    """The program of the server, which is started when it is first needed, and used over its stdin and stdout."""
    args: str | Sequence[str]
    """The arguments of `command`. Default: none."""
    env: Mapping[str, str | EnvVariable]
    """Environment variables of `command`, in addition to those of this process: their values, or the variables that
    contain them. Default: none."""
    cwd: Root | None
    """The working directory of `command`. Default: that of this process."""
    url: str
    """The URL of a server over HTTP, instead of `command`."""
    headers: Mapping[str, str | EnvVariable]
    """Headers of every request to `url`: their values, or the environment variables that contain them. Default:
    none."""
    resources: str | Sequence[str]
    """The URIs that are served. Others do not exist for clients. `*` is all. Default `*`."""
    tools: str | Sequence[str]
    """The names of the tools and prompts that are served. `*` is all. Default `*`."""
    prefix: str
    """The prefix of all URIs, tools and prompts of the server, such as `wiki`: `wiki+note://x` and `wiki_search`.
    Default: only names that two servers have get one."""
    timeout: int | str
    """The maximum time for an answer of the server. No time ends the call of a tool. A text such as `"30s"`, or
    milliseconds. From 1ms to 1d. Default `30s`."""
    idle: int | str
    """The time without requests and subscriptions after which the server is ended. Default: it is never ended. A text
    such as `"10min"`, or milliseconds."""
    per_client: bool
    """Whether each client has a process of `command`, or a connection to `url`, of its own for its calls, so that a
    server from before 2026-07-28 can ask it for input, and log to it. At a `url`, clients that can be asked always have
    one. Default `False`."""
