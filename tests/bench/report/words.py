"""How numbers are said, and which figures there are."""

from dataclasses import dataclass

from data import Spread

PEERS = {
    "ours-python": ("python-sdk", "fastmcp"),
    "ours-node": ("ts-sdk",),
    "ours-rust": ("rmcp",),
    "ours-command": ("fastmcp", "git", "rg"),
}
OFFICIAL = {"ours-python": "python-sdk", "ours-node": "ts-sdk", "ours-rust": "rmcp"}


@dataclass(frozen=True)
class Figure:
    """One column: the name in the data, its title, the digits shown, whether less is better."""

    name: str
    title: str
    digits: int
    less: bool = True


P50 = Figure("p50_us", "p50 µs", 1)
P99 = Figure("p99_us", "p99 µs", 0)
CPU = Figure("cpu_us", "CPU µs/request", 2)
CPU_CLIENT = Figure("cpu_us", "CPU µs/request of the client", 2)
RATE = Figure("rate", "requests/s", 0, less=False)
MIB_S = Figure("mib_s", "MiB/s", 0, less=False)
LISTED = Figure("rate", "resources/s", 0, less=False)
CPU_ITEM = Figure("cpu_us_item", "CPU µs/resource", 3)
CPU_PAGE = Figure("cpu_us_page", "CPU µs/page", 0)
UPDATES = Figure("rate", "updates/s", 0, less=False)
TOLD = Figure("told_us", "CPU µs/listener told", 2)
MEMORY = Figure("listener_kib", "KiB/listener", 1)
FAN_OUT = Figure("fan_out_ms", "fan-out ms", 0)
FIRST = Figure("first_ms", "first page, ms", 1)
WHOLE = Figure("whole_ms", "whole list, ms", 0)
FIRST_READ = Figure("first_ms", "first answer, ms", 1)
CPU_FIRST = Figure("cpu_first_us", "CPU µs of the first", 0)
CPU_ENDED = Figure("cpu_us_item", "CPU µs/subscription ended", 2)
CPU_BEGUN = Figure("cpu_us_begin", "CPU µs/subscription begun", 2)
ENDED = Figure("whole_ms", "all ended, ms", 0)
IDLE = Figure("idle_percent", "% of a core while nothing changes", 2)
FIRST_LIST = Figure("start_ms", "start to first list, ms", 1)
CPU_START = Figure("cpu_ms", "CPU ms", 1)
WALKED = Figure("after_mib", "MiB after it", 1)
ROWS_S = Figure("rate", "rows/s", 0, less=False)
CPU_ROW = Figure("cpu_us_item", "CPU µs/row", 2)
PAGES_S = Figure("pages_s", "pages indexed/s", 0, less=False)
CPU_INDEX = Figure("cpu_us_page", "CPU µs/page indexed", 0)
EDIT_P50 = Figure("edit_p50_ms", "edit → found p50 ms", 1)
EDIT_P99 = Figure("edit_p99_ms", "edit → found p99 ms", 1)
START = Figure("start_ms", "start to first answer, ms", 1)
IMPORT = Figure("import_ms", "import, ms", 1)
REST = Figure("rest_mib", "MiB at rest", 1)
AFTER = Figure("after_mib", "MiB after 10,000 reads", 1)
PEAK = Figure("peak_mib", "MiB at most", 1)
CPU_LIST = Figure("cpu_us", "CPU µs/list", 0)
LISTS_S = Figure("rate", "lists/s", 0, less=False)
CALL = Figure("call_us", "`notify_updated`, µs", 2)
IDLE_MS = Figure("idle_ms", "CPU ms/s at rest", 1)
CHANGES_S = Figure("changes_s", "changes/s", 0, less=False)
TELLER = Figure("teller_percent", "% of a core of the process that changes", 1)
HEARER = Figure("hearer_percent", "% of a core of each other process", 1)
TOLD_S = Figure("told_s", "notifications/s of each", 0, less=False)
SILENT = Figure("silent", "listeners not notified", 0)
LOG = Figure("log_ms", "start to first log, ms", 1)
BLOB = Figure("blob_ms", "start to first file, ms", 1)
STATUS = Figure("status_ms", "start to first status, ms", 1)
SEARCHED = Figure("search_ms", "start to first answer, ms", 0)
INDEXED = Figure("index_ms", "start to the whole index, ms", 0)
LISTED_FIRST = Figure("first_ms", "start to first page, ms", 1)
LISTED_WHOLE = Figure("whole_ms", "start to the whole list, ms", 0)
RSS = Figure("rss_kib", "KiB at rest (RSS)", 0)
PSS = Figure("pss_kib", "KiB at rest (PSS)", 0)
WAKES_ALONE = Figure("alone_wakes", "wake-ups/min, no subscription", 0)
CPU_ALONE = Figure("alone_cpu_ms", "CPU ms/min, no subscription", 2)
WAKES_WATCHED = Figure("watched_wakes", "wake-ups/min, one subscription", 0)
CPU_WATCHED = Figure("watched_cpu_ms", "CPU ms/min, one subscription", 2)
TOOLS_IMPORT = Figure("tools_ms", "more with the modules for tools, ms", 2)


@dataclass(frozen=True)
class Kind:
    """What is said of a workload: a line, its figures, the one whose ratios are shown, its floor."""

    title: str
    figures: tuple[Figure, ...]
    ratio: Figure
    floor: str | None = None
    who: str = "server"


KINDS = {
    "W1": Kind("read `bench://static`, one at a time, stdio", (P50, CPU, RATE), CPU, "floor"),
    "W2": Kind("read `bench://item/{id}`, 64 in flight, stdio", (CPU, RATE), CPU, "floor"),
    "W2-each": Kind("as W2, but each request in a write of its own", (CPU, RATE), CPU, "floor"),
    "W2-provider": Kind(
        "as W2, from a function, or from a provider: at once, or on a worker", (CPU, RATE), CPU, "floor"
    ),
    "W3-text": Kind("read 1 MiB of text, one at a time, stdio", (MIB_S, CPU), CPU, "floor"),
    "W3-blob": Kind("read 1 MiB of bytes, one at a time, stdio", (MIB_S, CPU), CPU, "floor"),
    "W4-1000": Kind("list 1,000 resources to the end, stdio", (LISTED, CPU_ITEM, CPU_PAGE), CPU_ITEM),
    "W4-100000": Kind("list 100,000 resources to the end, stdio", (LISTED, CPU_ITEM, CPU_PAGE), CPU_ITEM),
    "W5-1": Kind("read from the one template more, 8 in flight, stdio", (CPU, RATE), CPU),
    "W5-100": Kind("read from the last of 100 templates more, 8 in flight, stdio", (CPU, RATE), CPU),
    "W5-1000": Kind("read from the last of 1,000 templates more, 8 in flight, stdio", (CPU, RATE), CPU),
    "W5-10000": Kind("read from the last of 10,000 templates more, 8 in flight, stdio", (CPU, RATE), CPU),
    "W6-one": Kind("one subscriber of 10,000 resources, one update of each, stdio", (P50, P99, CPU, UPDATES), CPU),
    "W6-many": Kind("one update told to 1,000 HTTP listeners", (MEMORY, FAN_OUT, TOLD), TOLD),
    "W7-8": Kind("read `bench://item/{id}` over 8 HTTP connections", (P99, CPU, RATE), CPU, "floor-http"),
    "W7-64": Kind("read `bench://item/{id}` over 64 HTTP connections", (P99, CPU, RATE), CPU, "floor-http"),
    "W7-open-250": Kind("250 reads in a second, come what may, over HTTP", (P50, P99, CPU), CPU, "floor-http"),
    "W7-open-5000": Kind("5,000 reads in a second, come what may, over HTTP", (P50, P99, CPU), CPU, "floor-http"),
    "W8": Kind("start, import, memory", (START, IMPORT, REST, AFTER, PEAK), START),
    "W9": Kind("10,000 idle HTTP listeners, then one update", (MEMORY, FAN_OUT, TOLD), MEMORY),
    "W10-list": Kind(
        "list a folder of 100,000 files to the end, stdio", (FIRST, WHOLE, CPU_ITEM, WALKED, PEAK), CPU_ITEM
    ),
    "W10-read": Kind("read a file of 4 KiB of that folder, 64 in flight, stdio", (CPU, RATE), CPU),
    "W10-change": Kind("change of a file in that folder → notification, stdio", (P50, P99, WALKED), P50),
    "W11": Kind(
        "documentation: index 10,000 pages of Japanese and English, search them, edit one, stdio",
        (PAGES_S, CPU_INDEX, P50, P99, CPU, EDIT_P50, EDIT_P99, PEAK),
        CPU,
    ),
    "W12-blob": Kind("read a file of 4 KiB of a repository with 10,000 commits, stdio", (P50, CPU, RATE), CPU),
    "W12-log": Kind("the newest 100 commits of that repository, stdio", (P50, CPU, RATE), CPU),
    "W12-status": Kind("the status of its working tree with 10,000 files, stdio", (P50, CPU, RATE), CPU),
    "W12-complete": Kind(
        "complete a path in a directory with 100,000 files of a revision, stdio", (P50, P99, CPU, RATE), CPU
    ),
    "W15": Kind(
        "serve a folder of 1,000 files over stdio: to the first list", (FIRST_LIST, CPU_START, REST), FIRST_LIST
    ),
    "W17-pages": Kind("read a table of 20,000 rows in SQLite in pages of 1,000, stdio", (CPU_ROW, ROWS_S), CPU_ROW),
    "W17-change": Kind("commit of another process → notification of a row, stdio", (P50, P99, CPU), P50),
    "W16-1": Kind(
        "a client reads `bench://item/{id}` of our server, one at a time, stdio",
        (CPU_CLIENT, RATE),
        CPU_CLIENT,
        who="client",
    ),
    "W16-64": Kind(
        "a client reads `bench://item/{id}` of our server, 64 in flight, stdio",
        (CPU_CLIENT, RATE),
        CPU_CLIENT,
        who="client",
    ),
    "W13-read": Kind(
        "read `bench://item/{id}` of an SDK's server, alone and with ours attached, stdio", (CPU, RATE), CPU
    ),
    "W13-tool": Kind("call its tool `echo(text)`, which stays with the SDK, stdio", (CPU, RATE), CPU),
    "W14-read": Kind(
        "read `bench://item/{id}` of one server, alone and through a gateway, stdio", (P50, CPU, RATE), CPU
    ),
    "W14-http": Kind("the same over one HTTP connection", (P50, P99, CPU, RATE), CPU),
    "W14-tool": Kind("call `echo(text)` of one server, alone and through a gateway, stdio", (P50, CPU, RATE), CPU),
    "W14-list": Kind("list 1,000 resources of ten servers through a gateway, stdio", (CPU_LIST, LISTS_S), CPU_LIST),
    "W14-listeners": Kind(
        "1,000 HTTP listeners of a resource of one server, alone and through a gateway", (MEMORY, FAN_OUT, TOLD), MEMORY
    ),
    "W18": Kind("read a key of a configuration file, stdio", (P50, CPU, RATE), CPU),
    "W19-1": Kind("call the tool `echo(text)`, one at a time, stdio", (P50, CPU, RATE), CPU),
    "W19-64": Kind("call the tool `echo(text)`, 64 in flight, stdio", (CPU, RATE), CPU),
    "W19-http-1": Kind("call the tool `echo(text)` over one HTTP connection", (P50, P99, CPU, RATE), CPU),
    "W19-http-64": Kind("call the tool `echo(text)` over 64 HTTP connections", (P99, CPU, RATE), CPU),
    "W19-list": Kind("list 1,000 tools to the end, stdio", (CPU_LIST, LISTS_S), CPU_LIST),
    "W19-import": Kind("import the package, and its modules for tools", (IMPORT, TOOLS_IMPORT), IMPORT),
    "W20": Kind(
        "a change in one process → the notification of another, over a bus, HTTP",
        (P50, P99, CALL, IDLE_MS),
        P50,
        who="bus",
    ),
    "W20-load": Kind(
        "10,000 changes a second in one of three processes with 1,000 listeners each, HTTP",
        (CHANGES_S, TELLER, HEARER, TOLD_S, SILENT),
        HEARER,
        who="bus",
    ),
    "W20-rates": Kind("a read over one HTTP connection, with rates", (CPU,), CPU, who="rates"),
    "W23-log": Kind(
        "log of a path that 21 of 50,000 commits changed, without a commit-graph, stdio",
        (CPU, P50, FIRST_READ, CPU_FIRST),
        CPU,
    ),
    "W23-graph": Kind(
        "the same log, with a commit-graph that has the changed paths, stdio", (CPU, P50, FIRST_READ, CPU_FIRST), CPU
    ),
    "W23-tags": Kind("the newest 1,000 of 20,000 tags, stdio", (CPU, P50, FIRST_READ, CPU_FIRST), CPU),
    **{
        f"W24-{count}": Kind(
            f"list {int(count):,} pages of documentation, stdio", (FIRST, WHOLE, CPU_ITEM, CPU_INDEX, PEAK), CPU_ITEM
        )
        for count in ("10000", "20000", "40000")
    },
    "W25-directories": Kind("4,000 directories that are watched by looking, stdio", (IDLE, CPU_START, REST), IDLE),
    "W25-files": Kind("1,500 subscribed files that are watched by looking, stdio", (IDLE, CPU_START, REST), IDLE),
    "W26-4000": Kind("end 4,000 subscriptions one by one, stdio", (ENDED, CPU_ENDED, CPU_BEGUN), CPU_ENDED),
    "W26-16000": Kind("end 16,000 subscriptions one by one, stdio", (ENDED, CPU_ENDED, CPU_BEGUN), CPU_ENDED),
    "W27-git": Kind(
        "cold start of `git` with 50,000 commits, and memory at rest, stdio",
        (LOG, BLOB, STATUS, CPU_START, PEAK, RSS, PSS),
        LOG,
    ),
    "W27-docs": Kind(
        "cold start of `docs` with 10,000 pages, and memory at rest, stdio",
        (SEARCHED, INDEXED, CPU_START, PEAK, RSS, PSS),
        SEARCHED,
    ),
    "W27-files": Kind(
        "cold start of `files` with 100,000 files and nested ignore rules, and memory at rest, stdio",
        (LISTED_FIRST, LISTED_WHOLE, CPU_START, PEAK, RSS, PSS),
        LISTED_FIRST,
    ),
    "W28": Kind(
        "a server while nothing changes and no request comes",
        (WAKES_ALONE, CPU_ALONE, WAKES_WATCHED, CPU_WATCHED),
        WAKES_ALONE,
        who="provider",
    ),
}


def number(value: float, digits: int) -> str:
    """With thousands apart."""
    return f"{value:,.{digits}f}"


def spread(found: Spread | None, digits: int) -> str:
    """The median, and in brackets the least and the most."""
    if found is None:
        return ""
    return f"{number(found.median, digits)} ({number(found.least, digits)}–{number(found.most, digits)})"


def times(found: Spread | None) -> str:
    """A ratio, with as many digits as matter."""
    return "" if found is None else f"{_ratio(found.median)} ({_ratio(found.least)}–{_ratio(found.most)})"


def _ratio(value: float) -> str:
    return f"{value:,.2f}" if value < 10 else f"{value:,.0f}"
