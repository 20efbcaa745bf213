"""Counts the instructions of the hot paths under callgrind and compares them with instructions.toml.

usage: instructions.py                 fails if a piece of work costs more than its budget
       instructions.py --write REASON  makes what was counted the budget; REASON goes into the history of each raise

The build has the profile of a release. Instructions do not depend on what else the machine does.
"""

import json
import shutil
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUDGET = HERE / "instructions.toml"
# Hash seeds and addresses differ from run to run, allocators from machine to machine.
TOLERANCE = 0.10
FEW, MANY = 50, 150

Entry = dict[str, Any]


def main() -> int:
    match sys.argv[1:]:
        case []:
            reason = None
        case ["--write", reason] if reason.strip():
            pass
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    pieces = history()
    if wrong := unexplained(pieces):
        print("\n".join(wrong), file=sys.stderr)
        return 1
    if shutil.which("valgrind") is None:
        print("not checked: there is no valgrind here (Debian: apt-get install valgrind)")
        return 0
    program = build()
    counted = {name: per_call(program, name) for name in output([program]).splitlines()}
    if reason is not None:
        write({name: extended(pieces.get(name, []), count, reason) for name, count in counted.items()})
        return 0
    return compare(counted, {name: entries[-1]["count"] for name, entries in pieces.items()})


def build() -> str:
    """Builds the measuring program as releases are built, and returns where it is."""
    command = ["cargo", "build", "--quiet", "--release", "--package=mcp-resources-instructions"]
    made = (json.loads(line) for line in output([*command, "--message-format=json"]).splitlines())
    executable: str = next(line["executable"] for line in made if line.get("executable"))
    return executable


def per_call(program: str, name: str) -> int:
    """Instructions of one call: the difference of two runs, so that setting up is not counted."""
    few, many = (instructions(program, name, count) for count in (FEW, MANY))
    return round((many - few) / (MANY - FEW))


def instructions(program: str, name: str, count: int) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, name, str(count)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if run.returncode != 0:
        sys.exit(f"{name}: {run.stderr}")
    return next(int(line.split()[-1]) for line in run.stderr.splitlines() if "Collected" in line)


def output(command: list[str]) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=True).stdout


def history() -> dict[str, list[Entry]]:
    """Of each piece every budget that it had, the one in force last."""
    pieces: dict[str, list[Entry]] = tomllib.loads(BUDGET.read_text(encoding="utf-8"))
    return pieces


def unexplained(pieces: dict[str, list[Entry]]) -> list[str]:
    """A line for each entry without a reason. A budget is raised by a further entry, never by changing one."""
    return [
        f'{BUDGET.name}: "{name}" has the budget {entry["count"]:,} without a reason: give it a `why`'
        for name, entries in pieces.items()
        for entry in entries
        if not str(entry.get("why", "")).strip()
    ]


def extended(entries: list[Entry], count: int, reason: str) -> list[Entry]:
    """The history with this count. A lower one replaces the last number; a higher one is an entry with its reason."""
    if entries and count <= entries[-1]["count"]:
        return [*entries[:-1], {**entries[-1], "count": count}]
    return [*entries, {"count": count, "on": datetime.now(UTC).date(), "why": " ".join(reason.split())}]


def write(pieces: dict[str, list[Entry]]) -> None:
    head = (
        "# Instructions of one call in the profile that ships. More than a tenth above the last entry fails\n"
        "# `make check-perf`; `instructions.py --write REASON` writes a raise as a further entry.\n"
    )
    lines = [
        f'"{name}" = [\n'
        + "".join(
            f"  {{ count = {entry['count']:_}, on = {entry['on']}, why = {json.dumps(entry['why'])} }},\n"
            for entry in entries
        )
        + "]\n"
        for name, entries in pieces.items()
    ]
    BUDGET.write_text(head + "".join(lines), encoding="utf-8")


def compare(counted: dict[str, int], allowed: dict[str, int]) -> int:
    """Prints every piece; 1 if one is above its budget, without one, or gone."""
    failed = False
    for name, count in counted.items():
        limit = allowed.get(name)
        line = f"{name:36} {count:>12,}"
        if limit is not None:
            line += f"  {count / limit - 1:+7.1%} of {limit:,}"
        if limit is None or count > limit * (1 + TOLERANCE):
            failed, line = True, line + ("  ABOVE THE BUDGET" if limit else "  HAS NO BUDGET")
        print(line)
    for name in set(allowed) - set(counted):
        failed = True
        print(f"{name:36} is in the budget alone")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
