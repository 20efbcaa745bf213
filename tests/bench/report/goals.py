"""What is to be reached, and what was."""

from collections.abc import Iterator
from dataclasses import dataclass

from data import Results, Spread
from reasons import REASONS
from words import spread, times

# Where the time of a small read goes, by server.
WHY = {
    "ours-rust": "engine",
    "ours-python": "threads",
    "ours-python, inline": "asyncio",
    "ours-python, async": "tasks",
    "ours-node": "libuv",
}


@dataclass(frozen=True)
class Goal:
    """One goal, and what was measured of it."""

    workload: str
    what: str
    bound: float
    found: Spread | None
    # At most the bound, or at least.
    below: bool = True
    unit: str = "×"
    # The key of a reason, told if the goal is short.
    why: str = ""
    # The ratio that nothing can pass, and what shows it. A goal above it is lowered to it.
    ceiling: str = ""

    @property
    def met(self) -> bool | None:
        if self.found is None:
            return None
        return self.found.median <= self.bound if self.below else self.found.median >= self.bound

    def line(self) -> str:
        sign = "≤" if self.below else "≥"
        goal = f"{sign} {self.bound:g} {self.unit}".rstrip()
        if self.found is None:
            return f"| {self.workload} | {self.what} | {goal} | not measured | |"
        found = times(self.found) if self.unit == "×" else spread(self.found, 1)
        verdict = "met" if self.met else f"missed{self._by(self.found)}"
        ceiling = f"; cannot pass {self.ceiling}" if self.ceiling else ""
        return f"| {self.workload} | {self.what} | {goal} | {found} | {verdict}{ceiling} |"

    def _by(self, found: Spread) -> str:
        if self.bound == 0:
            return ""
        share = found.median / self.bound
        return f": {percent(share - 1)} above" if self.below else f": {percent(1 - share)} below"


def table(results: Results) -> str:
    """A line for each goal, and why the short ones are."""
    found = list(goals(results))
    lines = ["| workload | what | goal | measured | |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*lines, *(goal.line() for goal in found), "", *_reasons(found)])


def _reasons(found: list[Goal]) -> Iterator[str]:
    """For each reason the goals that it makes short, and what it is."""
    short = [goal for goal in found if goal.met is False]
    if short:
        yield "Why some goals are missed. The rest of this file is measured; these sentences and their figures were"
        yield "written by hand from profiles, each on the day in its brackets:"
        yield ""
    for key, reason in REASONS.items():
        whose = [f"{goal.workload} ({goal.what})" for goal in short if goal.why == key]
        if whose:
            yield f"- {'; '.join(whose)} [{reason.written}]: {reason.text}"
    rest = [f"{goal.workload} ({goal.what})" for goal in short if goal.why not in REASONS]
    if rest:
        yield f"- {'; '.join(rest)}: not looked into."


def percent(share: float) -> str:
    """A share above nothing, never rounded to nothing."""
    return f"{share:.0%}".replace("%", " %") if share >= 0.01 else "less than 1 %"


def goals(results: Results) -> Iterator[Goal]:
    """Every goal."""
    yield from _stdio(results)
    yield from _large(results)
    yield from _catalogue(results)
    yield from _updates(results)
    yield from _http(results)
    yield from _start(results)
    yield from _files(results)
    yield from _cold(results)
    yield from _client(results)
    yield from _tools(results)
    yield from _attached(results)
    yield from _gateway(results)
    yield from _metrics(results)


def _tools(results: Results) -> Iterator[Goal]:
    for peer, server, bound in (
        ("python-sdk", "ours-python", 30),
        ("ts-sdk", "ours-node", 4),
        ("rmcp", "ours-rust", 8),
    ):
        found = results.ratio("W19-64", peer, server)
        yield Goal("W19", f"CPU of a tool's call, {peer} over {server}", bound, found, below=False)
    for peer, server in (("python-sdk", "ours-python"), ("ts-sdk", "ours-node"), ("rmcp", "ours-rust")):
        found = results.ratio("W19-list", peer, server)
        what = f"CPU of a list of 1,000 tools, {peer} over {server}"
        yield Goal("W19", what, 50, found, below=False, why="list tools")
    more = results.figure("W19-import", "ours-python", "tools_ms")
    yield Goal("W19", "import of the modules for tools, beyond the package", 1, more, unit="ms")


def _attached(results: Results) -> Iterator[Goal]:
    for server in ("python-sdk", "fastmcp", "ts-sdk"):
        most = 1.6 if server == "ts-sdk" else 1.1
        for work, name in (("W13-read", "a read"), ("W13-tool", "a tool's call")):
            found = results.ratio(work, f"{server}, attached", server)
            yield Goal("W13", f"CPU of {name}, {server} with ours attached over {server} alone", most, found)
    for server in ("python-sdk", "fastmcp"):
        found = results.ratio("W13-read", server, f"{server}, in front")
        yield Goal("W13", f"CPU of a read, {server} alone over {server} with ours in front", 40, found, below=False)
    for server in ("python-sdk", "fastmcp", "ts-sdk"):
        for work in ("W13-tool", "W13-tool/modern"):
            found = results.ratio(work, f"{server}, in front", server)
            what = f"CPU of a tool's call, {server} with ours in front over {server} alone"
            yield Goal(work, what, 0.7, found, why="front node" if server == "ts-sdk" else "front python")


def _gateway(results: Results) -> Iterator[Goal]:
    ours, peer = "ours-command, gateway", "fastmcp, gateway"
    for name in ("W14-read", "W14-read/modern"):
        row, alone = results.row(name, ours), results.row(name, "ours-rust")
        added = row.more_than(alone, "p50_us") if row and alone else None
        yield Goal(name, "p50 that the gateway adds to a read", 100, added, unit="µs")
        yield Goal(
            name, "CPU of a read, fastmcp as a proxy over the gateway", 10, results.ratio(name, peer, ours), below=False
        )


def _metrics(results: Results) -> Iterator[Goal]:
    push = results.micro.get("metrics/push/one series")
    found = Spread(push["ns"], push["least"], push["most"]) if push else None
    yield Goal("M1", "a sample pushed to a full series", 200, found, unit="ns")


def _stdio(results: Results) -> Iterator[Goal]:
    for server, bound in (("ours-rust", 1.25), ("ours-python, inline", 1.6), ("ours-node", 1.6)):
        found = results.ratio("W1", server, "floor", "p50_us")
        yield Goal("W1", f"p50, {server} over the floor", bound, found, why=WHY[server])
    for peer, server, bound in (
        ("python-sdk", "ours-python, inline", 60),
        ("python-sdk", "ours-python", 18),
        ("ts-sdk", "ours-node", 6),
    ):
        found = results.ratio("W1", peer, server)
        yield Goal("W1", f"CPU, {peer} over {server}", bound, found, below=False, why=WHY[server])
    inline = results.ratio("W2", "python-sdk", "ours-python, inline")
    for peer, server, bound, ceiling in (
        ("python-sdk", "ours-python", 270, f"{times(inline)} ×, `inline` without threads"),
        ("python-sdk, async", "ours-python, async", 100, ""),
        ("ts-sdk", "ours-node", 20, ""),
        ("rmcp", "ours-rust", 20, ""),
    ):
        found = results.ratio("W2", peer, server)
        yield Goal("W2", f"CPU, {peer} over {server}", bound, found, below=False, why=WHY[server], ceiling=ceiling)
    # The floor that these were set against answers request by request.
    limits = {"ours-rust": 1.5, "ours-python": 2.5, "ours-node": 2.5, "ours-python, async": 7.0}
    for server, limit in limits.items():
        found = results.ratio("W2-each", server, "floor")
        yield Goal("W2-each", f"CPU, {server} over the floor", limit, found, why=WHY[server])
    guarded, usual = (results.row("W2", server) for server in ("ours-rust, guarded", "ours-rust"))
    if guarded and usual:
        yield Goal("W2", "CPU that a guard of 1,000 globs adds", 1, guarded.more_than(usual, "cpu_us"), unit="µs")


def _large(results: Results) -> Iterator[Goal]:
    for kind, bound in (("blob", 2), ("text", 3)):
        name = f"engine/modern/read/1 MiB {kind}"
        found = _bytes(results, name)
        yield Goal("W3", f"engine alone, {kind}", 5, found, below=False, unit="GB/s", why=kind)
        for server in ("ours-rust", "ours-python", "ours-node"):
            found = results.ratio(f"W3-{kind}", server, "floor")
            yield Goal("W3", f"CPU of {kind}, {server} over the floor", bound, found, why=kind)


def _catalogue(results: Results) -> Iterator[Goal]:
    for peer, server in (("python-sdk", "ours-python"), ("ts-sdk", "ours-node"), ("rmcp", "ours-rust")):
        for size in (1_000, 100_000):
            found = results.ratio(f"W4-{size}", peer, server, "cpu_us_item")
            what = f"CPU of {size:,} resources, {peer} over {server}"
            yield Goal("W4", what, 50, found, below=False, why="list")
    for server in ("ours-rust", "ours-python", "ours-node"):
        # Not of a page: those of 1,000 resources and some more are half full on average.
        found = results.across("W4-100000", "W4-1000", server, "cpu_us_item")
        what = f"CPU of a listed resource, {server}, 100,000 over 1,000 resources"
        yield Goal("W4", what, 1.25, found, why="page")
    for server in ("ours-rust", "ours-python", "ours-node"):
        found = results.across("W5-10000", "W5-1", server, "cpu_us")
        yield Goal("W5", f"CPU, {server}, 10,000 templates over 1", 1.5, found)


def _updates(results: Results) -> Iterator[Goal]:
    word = _elements(results, "one subscriber of 10,000 URIs/word each")
    yield Goal("W6", "engine alone, notifications worded", 1, word, below=False, unit="M/s")
    mark = results.micro.get("one update/mark and wake/1000")
    found = Spread(*(mark[key] / 1e6 for key in ("ns", "least", "most"))) if mark else None
    yield Goal("W6", "engine alone, marking and waking 1,000 subscribers", 1, found, unit="ms")
    for server in ("ours-rust", "ours-python", "ours-node"):
        told = results.figure("W6-many/modern", server, "told_us")
        yield Goal("W6", f"CPU for each listener told, {server}", 15, told, unit="µs", why="told")
    for server in ("ours-rust", "ours-python", "ours-node"):
        late = results.figure("W6-one/modern", server, "p99_us")
        yield Goal("W6", f"update to notification over stdio, p99, {server}", 1_000, late, unit="µs")


def _http(results: Results) -> Iterator[Goal]:
    name = "W7-64/modern"
    constant = "ours-rust, constant"
    found = results.ratio(name, constant, "floor-http")
    yield Goal("W7", "CPU, engine-answered over floor-http", 2.5, found, why="http")
    found = results.ratio(name, "rmcp", constant)
    yield Goal("W7", "CPU, rmcp over engine-answered", 4, found, below=False, why="http")
    found = results.ratio(name, "python-sdk", "ours-python")
    yield Goal("W7", "CPU, python-sdk over ours-python", 20, found, below=False)


def _start(results: Results) -> Iterator[Goal]:
    yield Goal("W8", "import mcp_resources", 30, results.figure("W8", "ours-python", "import_ms"), unit="ms")
    for server, bound in (("ours-python", 120), ("ours-rust", 2)):
        found = results.figure("W8", server, "start_ms")
        yield Goal("W8", f"start to first answer, {server}", bound, found, unit="ms", why=f"start {server}")
    ours, bare = (results.row("W8", server) for server in ("ours-node", "bare-node"))
    if ours and bare:
        more = ours.more_than(bare, "start_ms")
        yield Goal("W8", "start to first answer beyond a bare Node", 40, more, unit="ms", why="start ours-node")
    ours, bare = (results.row("W8", server) for server in ("ours-python", "bare-python"))
    if ours and bare:
        more = ours.more_than(bare, "rest_mib")
        yield Goal("W8", "memory beyond a Python with asyncio", 8, more, unit="MiB", why="rest ours-python")
    for era in ("W9", "W9/modern"):
        for server in ("ours-rust", "ours-python", "ours-node"):
            found = results.figure(era, server, "listener_kib")
            yield Goal(era, f"memory of an idle listener, {server}", 6, found, unit="KiB", why="listener")


def _files(results: Results) -> Iterator[Goal]:
    ours = "ours-command"
    for what, figure, bound, unit in (
        ("first list of 100,000 files", "first_ms", 50, "ms"),
        ("whole list of 100,000 files", "whole_ms", 1_000, "ms"),
        ("memory at most while they are listed", "peak_mib", 32, "MiB"),
    ):
        found = results.figure("W10-list", ours, figure)
        yield Goal("W10", what, bound, found, unit=unit, why=f"files {figure}")
    found = results.ratio("W10-read/modern", "fastmcp", ours)
    ceiling = "about 100 ×, openat2, fstat, read and close on a worker"
    what = "CPU of a read of 4 KiB, fastmcp over ours"
    yield Goal("W10", what, 100, found, below=False, why="files read", ceiling=ceiling)
    late = results.figure("W10-change", ours, "p99_us")
    found = Spread(late.median / 1_000, late.least / 1_000, late.most / 1_000) if late else None
    yield Goal("W10", "change to notification, p99", 50, found, unit="ms", why="files change")
    for what, figure, bound, unit, below in (
        ("pages indexed", "pages_s", 2_000, "pages/s", False),
        ("edit to found, p99", "edit_p99_ms", 100, "ms", True),
    ):
        found = results.figure("W11/modern", ours, figure)
        yield Goal("W11", what, bound, found, below=below, unit=unit, why=f"docs {figure}")
    late = results.figure("W11/modern", ours, "p99_us")
    found = Spread(late.median / 1_000, late.least / 1_000, late.most / 1_000) if late else None
    yield Goal("W11", "search, p99", 10, found, unit="ms", why="docs p99_us")
    found = results.ratio("W12-blob/modern", "git", ours)
    yield Goal("W12", "CPU of a file of a revision, `git show` over ours", 20, found, below=False, why="git blob")
    late = results.figure("W12-complete/modern", ours, "p99_us")
    found = Spread(late.median / 1_000, late.least / 1_000, late.most / 1_000) if late else None
    yield Goal("W12", "completion in a directory with 100,000 files, p99", 10, found, unit="ms", why="git complete")
    for server, bound in ((ours, 50), ("ours-python", 150), ("ours-node", 250)):
        found = results.figure("W15", server, "start_ms")
        yield Goal("W15", f"start to first list, {server}", bound, found, unit="ms", why=f"serve {server}")
    found = results.figure("W15", ours, "rest_mib")
    yield Goal("W15", f"memory at rest, {ours}", 16, found, unit="MiB", why="serve rest")


def _cold(results: Results) -> Iterator[Goal]:
    ours = "ours-command"
    for name, what, figure, bound in (
        ("W27-git", "start to first log of 50,000 commits", "log_ms", 50),
        ("W27-git", "start to first file of 50,000 commits", "blob_ms", 50),
        ("W27-git", "start to first status", "status_ms", 100),
        ("W27-docs", "start to the whole index of 10,000 pages", "index_ms", 5_000),
        ("W27-files", "start to first page of 100,000 files", "first_ms", 50),
        ("W27-files", "start to the whole list of 100,000 files", "whole_ms", 1_000),
    ):
        found = results.figure(f"{name}/modern", ours, figure)
        yield Goal(name, what, bound, found, unit="ms", why=f"cold {figure}")
    for kind in ("files", "git", "docs", "db"):
        for way in ("stdio", "HTTP"):
            found = results.figure("W28/modern", f"{kind}, {way}", "alone_wakes")
            what = f"wake-ups in a minute without a subscription, {kind}, {way}"
            yield Goal("W28", what, 0, found, unit="", why="idle")


def _client(results: Results) -> Iterator[Goal]:
    for workload in ("W16-1", "W16-1/modern", "W16-64", "W16-64/modern"):
        alone = workload.startswith("W16-1")
        for peer, ours, bound, ceiling in (
            ("python-sdk", "ours-python", 20, "21 ×, a bare pipe in asyncio"),
            ("ts-sdk", "ours-node", 3 if alone else 5, "3 to 4 ×, a bare pipe in Node"),
        ):
            what = f"CPU of the client, {peer} over {ours}"
            found = results.ratio(workload, peer, ours)
            yield Goal(
                workload, what, bound, found, below=False, why=f"client {ours}", ceiling=ceiling if alone else ""
            )


def _bytes(results: Results, name: str) -> Spread | None:
    entry = results.micro.get(name)
    if not entry or "bytes" not in entry:
        return None
    return Spread(*(entry["bytes"] / entry[key] for key in ("ns", "most", "least")))


def _elements(results: Results, name: str) -> Spread | None:
    entry = results.micro.get(name)
    if not entry or "elements" not in entry:
        return None
    return Spread(*(entry["elements"] / entry[key] * 1_000 for key in ("ns", "most", "least")))
