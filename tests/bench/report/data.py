"""The rounds that the driver wrote, and what may be asked of them: medians with spread, ratios round by round."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Spread:
    """The median of some rounds, and how far they lie apart."""

    median: float
    least: float
    most: float

    @staticmethod
    def of(values: Iterable[float]) -> "Spread | None":
        found = list(values)
        return Spread(median(found), min(found), max(found)) if found else None


@dataclass(frozen=True)
class Row:
    """One server's rounds of one workload, or why there are none."""

    server: str
    rounds: list[dict[str, float]]
    missing: str | None

    def figure(self, name: str) -> Spread | None:
        return None if self.missing else Spread.of(found[name] for found in self.rounds if name in found)

    def over(self, other: "Row | None", name: str) -> Spread | None:
        """How many times the other's figure this one's is, round by round."""
        if other is None or self.missing or other.missing:
            return None
        pairs = zip(self.rounds, other.rounds, strict=False)
        return Spread.of(mine[name] / its[name] for mine, its in pairs if mine.get(name) and its.get(name))

    def more_than(self, other: "Row", name: str) -> Spread | None:
        """By how much this one's figure is above the other's, round by round."""
        pairs = zip(self.rounds, other.rounds, strict=False)
        return Spread.of(mine[name] - its[name] for mine, its in pairs if name in mine and name in its)


@dataclass(frozen=True)
class Table:
    """One workload under one envelope."""

    workload: str
    modern: bool
    time: int
    machine: str
    # The version of ours that was measured; none in results of before this was kept.
    version: str | None
    rows: list[Row]

    def row(self, server: str) -> Row | None:
        return next((row for row in self.rows if row.server == server), None)


class Results:
    """Everything that was measured: the tables, the micro-benchmarks, the versions."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.tables = [_table(table) for table in raw["tables"]]
        self.micro: dict[str, dict[str, float]] = raw.get("micro", {})
        self.versions: list[str] = raw["versions"]

    def table(self, name: str) -> Table | None:
        """The table with this name: `W2`, or `W2/modern`."""
        workload, _, era = name.partition("/")
        wanted = (workload, era == "modern")
        return next((table for table in self.tables if (table.workload, table.modern) == wanted), None)

    def row(self, name: str, server: str) -> Row | None:
        table = self.table(name)
        return table.row(server) if table else None

    def figure(self, name: str, server: str, figure: str) -> Spread | None:
        row = self.row(name, server)
        return row.figure(figure) if row else None

    def ratio(self, name: str, server: str, other: str, figure: str = "cpu_us") -> Spread | None:
        """How many times the other server's figure this one's is."""
        row = self.row(name, server)
        return row.over(self.row(name, other), figure) if row else None

    def across(self, name: str, other: str, server: str, figure: str) -> Spread | None:
        """How many times its figure in another workload a server's figure is."""
        row = self.row(name, server)
        return row.over(self.row(other, server), figure) if row else None


def merged(lines: Path, kept: Path, versions: list[str], micro: dict[str, dict[str, float]]) -> dict[str, Any]:
    """What was measured now, and of the results kept before whatever was not measured again."""
    raw: dict[str, Any] = {"versions": versions, "micro": micro, "tables": []}
    if kept.exists():
        before = json.loads(kept.read_text())
        raw["tables"] = before["tables"]
        raw["micro"] = dict(sorted((before["micro"] | micro).items()))
    for line in lines.read_text().splitlines():
        table = json.loads(line) | ({"version": versions[0]} if versions else {})
        place = [_key(other) for other in raw["tables"]]
        if _key(table) in place:
            raw["tables"][place.index(_key(table))] = table
        else:
            raw["tables"].append(table)
    return raw


def written(raw: dict[str, Any]) -> str:
    """The results as JSON, a row on each line, so that two runs can be compared."""
    tables = []
    for table in raw["tables"]:
        head = {name: value for name, value in table.items() if name != "rows"}
        rows = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in table["rows"])
        tables.append(f'  {json.dumps(head, ensure_ascii=False)[:-1]}, "rows": [\n{rows}\n  ]}}')
    versions, micro, note = (json.dumps(raw.get(name), ensure_ascii=False) for name in ("versions", "micro", "note"))
    joined = ",\n".join(tables)
    return f'{{"versions": {versions},\n"note": {note},\n"micro": {micro},\n"tables": [\n{joined}\n]}}\n'


def _key(table: dict[str, Any]) -> tuple[str, bool]:
    return table["workload"], table["modern"]


def _table(raw: dict[str, Any]) -> Table:
    rows = [Row(row["server"], row["rounds"], row.get("missing")) for row in raw["rows"]]
    return Table(raw["workload"], raw["modern"], raw["time"], raw["machine"], raw.get("version"), rows)
