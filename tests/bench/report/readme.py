"""What the README quotes: a short table of ratios."""

from collections.abc import Sequence
from pathlib import Path

from data import Results, Table
from tables import better, date
from words import times

BEGIN, END = "<!-- written by make bench -->", "<!-- end of what make bench writes -->"
# What is compared, by workload, ours, the peer, and the figure.
QUOTED = (
    ("Python `def`, stdio, 64 in flight", "W2", "ours-python", "python-sdk", "cpu_us"),
    ("Python `async def`, stdio, 64 in flight", "W2", "ours-python, async", "python-sdk, async", "cpu_us"),
    ("Python, 64 HTTP connections", "W7-64/modern", "ours-python", "python-sdk", "cpu_us"),
    ("Node, stdio, 64 in flight", "W2", "ours-node", "ts-sdk", "cpu_us"),
    ("Node, 64 HTTP connections", "W7-64/modern", "ours-node", "ts-sdk", "cpu_us"),
    ("Rust, stdio, 64 in flight", "W2", "ours-rust", "rmcp", "cpu_us"),
    ("Rust, 64 HTTP connections", "W7-64/modern", "ours-rust", "rmcp", "cpu_us"),
    ("a tool in Python (`def`), stdio, 64 in flight", "W19-64", "ours-python", "python-sdk", "cpu_us"),
    ("a tool in Node, stdio, 64 in flight", "W19-64", "ours-node", "ts-sdk", "cpu_us"),
    ("a tool in Rust, stdio, 64 in flight", "W19-64", "ours-rust", "rmcp", "cpu_us"),
)


def section(results: Results) -> str:
    """The Markdown between the two marks."""
    names = {name for _, name, *_ in QUOTED}
    quoted = [table for table in results.tables if f"{table.workload}{'/modern' if table.modern else ''}" in names]
    lines = [
        "CPU time of the server for each read, or call of a tool, beside the official SDK of the same language",
        f"({'; '.join(_runs(quoted))}; median and spread of the rounds):",
        *_quoted(results, QUOTED),
    ]
    worse = sum(1 for table in results.tables for _ in better(table))
    lines += ["", "[All results](tests/bench/RESULTS.md) have more workloads, peers and plots."]
    if worse:
        where = "tests/bench/RESULTS.md#where-a-peer-is-better"
        lines[-1] += f" In {worse} of their figures [a peer is better]({where})."
    return "\n".join(lines)


def _runs(quoted: Sequence[Table]) -> list[str]:
    """The machines and days of the tables; reads and tools may be of different runs."""
    tools = [table for table in quoted if table.workload.startswith("W19")]
    reads = [table for table in quoted if table not in tools]
    of_reads, of_tools = (
        ", ".join(dict.fromkeys(f"{table.machine}, {date(table.time)}" for table in tables))
        for tables in (reads, tools)
    )
    if not of_reads or not of_tools or of_reads == of_tools:
        return [of_reads or of_tools]
    return [f"reads: {of_reads}", f"tools: {of_tools}"]


def _quoted(results: Results, which: Sequence[tuple[str, str, str, str, str]]) -> list[str]:
    """A table of what there are figures for."""
    rows = []
    for what, name, ours, peer, figure in which:
        mine, its = results.figure(name, ours, figure), results.figure(name, peer, figure)
        if mine and its:
            ratio = times(results.ratio(name, peer, ours, figure))
            rows.append(f"| {what} | {mine.median:,.1f} | {its.median:,.1f} | {ratio} |")
    head = ["", "| | ours, µs | official SDK, µs | ratio |", "| --- | --- | --- | --- |"]
    return [*head, *rows] if rows else []


def replace(path: Path, results: Results) -> None:
    """Puts the section between its marks."""
    text = path.read_text()
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{path} lacks the marks {BEGIN} and {END}")
    path.write_text(f"{head}{BEGIN}\n{section(results)}\n{END}{tail}")
