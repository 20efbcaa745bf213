"""RESULTS.md: where a peer is better, one table for each workload, and the goals as an appendix."""

from collections.abc import Iterator
from datetime import UTC, datetime

import goals
import micro
import plots
from data import Results, Row, Table
from words import KINDS, PEERS, Figure, Kind, spread, times

HOW = (
    "Client and server share one core. A figure is the median of the rounds with the least and the most in brackets; "
    "rounds are interleaved, ratios are taken round by round. CPU is the user and system time of the server's "
    "process by the kernel's account, in W16 of the client's. [README.md](README.md) says what each server does "
    "and how it is measured."
)
PLOTS = (
    ("throughput", "Reads in a second over stdio"),
    ("cpu", "CPU for each read over HTTP"),
    ("templates", "CPU for each read against the number of templates"),
    ("listeners", "Memory of an idle listener"),
    ("clients", "CPU of a client for each read over stdio"),
)


def document(results: Results) -> str:
    """The whole of it."""
    machines = sorted({table.machine for table in results.tables})
    counts = sorted({len(row.rounds) for table in results.tables for row in table.rows if row.rounds})
    rounds = " to ".join(str(count) for count in dict.fromkeys([counts[0], counts[-1]])) if counts else "no"
    newest = max((table.time for table in results.tables), default=0)
    parts = [
        "# Side by side",
        f"Written by `make bench` on {date(newest)}; do not edit. {'; '.join(machines)}; {rounds} rounds.",
        "Not all tables are of one run: below each stand its day and machine, and the version of ours if it is known."
        if len({(table.machine, date(table.time)) for table in results.tables}) > 1
        else "",
        "Versions of the newest run: " + ", ".join(results.versions) + ".",
        results.raw.get("note", ""),
        HOW,
        "## Where a peer is better",
        _better(results),
        "## Plots",
        "\n".join(images(results, "plots")),
        *(_table(table) for table in results.tables),
        micro.table(results.micro).rstrip(),
        "## Appendix: goals",
        "What the project wants to reach, beside what was measured.",
        goals.table(results).rstrip(),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def images(results: Results, folder: str) -> list[str]:
    """The plots that there are figures for."""
    found = {name for name, _ in plots.drawn(results)}
    return [f"![{title}]({folder}/{name}.svg)" for name, title in PLOTS if name in found]


def _better(results: Results) -> str:
    lines = [f"- {line}" for table in results.tables for line in better(table)]
    return "\n".join(lines) if lines else "Nowhere in these tables, beside the peer of the same language."


def better(table: Table) -> Iterator[str]:
    """Each figure in which the median of a peer of the same language beats ours."""
    for ours, peers in PEERS.items():
        mine = table.row(ours)
        for row in (found for peer in peers if (found := table.row(peer))):
            for figure in KINDS[table.workload].figures:
                ratio = mine.over(row, figure.name) if mine else None
                if ratio and (ratio.median > 1 if figure.less else ratio.median < 1):
                    yield f"{_name(table)}: {figure.title}, {row.server} {times(row.over(mine, figure.name))} × {ours}"


def _table(table: Table) -> str:
    kind = KINDS[table.workload]
    figures = [one for one in kind.figures if any(row.figure(one.name) for row in table.rows)]
    versus = [one for one in ("python-sdk", "ts-sdk", "rmcp") if _has(table.row(one), kind)]
    # Where the official SDKs do not take part.
    versus = versus or [one for one in ("fastmcp",) if _has(table.row(one), kind)]
    ratios = [f"{one} ÷ it" for one in versus]
    floor = [f"× {kind.floor}"] if kind.floor else []
    head = [kind.who, *(one.title for one in figures), *floor, *ratios]
    era = "2026-07-28" if table.modern else "2025-06-18"
    lines = [f"## {table.workload}: {kind.title} ({era})", "", "| " + " | ".join(head) + " |"]
    lines.append("|" + " --- |" * len(head))
    lines += [_line(row, table, kind, figures, versus) for row in table.rows]
    if floor or ratios:
        lines += ["", f"The ratios are of {kind.ratio.title}."]
    version = f", {table.version}" if table.version else ""
    lines += ["", f"Measured on {date(table.time)} on {table.machine}{version}."]
    return "\n".join(lines)


def _line(row: Row, table: Table, kind: Kind, figures: list[Figure], versus: list[str]) -> str:
    rest = len(figures) + bool(kind.floor) + len(versus)
    if row.missing:
        return f"| {row.server} | {row.missing} |" + " |" * (rest - 1)
    cells = [row.server, *(spread(row.figure(one.name), one.digits) for one in figures)]
    if kind.floor:
        cells.append(times(row.over(table.row(kind.floor), kind.ratio.name)))
    for one in versus:
        peer = table.row(one)
        cells.append(times(peer.over(row, kind.ratio.name)) if peer and one != row.server else "")
    return "| " + " | ".join(cells) + " |"


def _has(row: Row | None, kind: Kind) -> bool:
    return bool(row and row.figure(kind.ratio.name))


def _name(table: Table) -> str:
    return table.workload + ("/modern" if table.modern else "")


def date(time: int) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d")
