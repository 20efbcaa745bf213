"""Counts the instructions of the hot paths under callgrind, and holds them against instructions.toml.

usage: instructions.py            fails if a piece of work costs more than its budget
       instructions.py --write    writes what was counted as the new budget
       instructions.py --release  counts the optimised build, for reading only

Instructions do not depend on what else the machine does. The budget is for the build that the tests use, so that
nothing is compiled for it alone.
"""

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUDGET = HERE / "instructions.toml"
# Hash seeds and addresses differ from run to run, allocators from machine to machine.
TOLERANCE = 0.10
FEW, MANY = 50, 150


def main() -> int:
    options = sys.argv[1:]
    if set(options) - {"--write", "--release"}:
        print(__doc__, file=sys.stderr)
        return 2
    if shutil.which("valgrind") is None:
        print("not checked: there is no valgrind here (Debian: apt-get install valgrind)")
        return 0
    program = build("--release" in options)
    names = output([program]).splitlines()
    counted = {name: per_call(program, name) for name in names}
    if "--write" in options:
        write(counted)
        return 0
    return compare(counted, None if "--release" in options else budget())


def build(release: bool) -> str:
    """The measuring program, built; where it is."""
    command = ["cargo", "build", "--quiet", "--bench", "instructions", "--message-format=json"]
    built = output(command + ["--profile=bench"] * release)
    made = (json.loads(line) for line in built.splitlines())
    programs: list[str] = [line["executable"] for line in made if line.get("target", {}).get("name") == "instructions"]
    return programs[-1]


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


def budget() -> dict[str, int]:
    instructions: dict[str, int] = tomllib.loads(BUDGET.read_text(encoding="utf-8"))["instructions"]
    return instructions


def write(counted: dict[str, int]) -> None:
    head = "# Instructions of one call (instructions.py --write). More than a tenth above fails `make check-perf`.\n"
    lines = [f'"{name}" = {count:_}\n' for name, count in counted.items()]
    BUDGET.write_text(head + "[instructions]\n" + "".join(lines), encoding="utf-8")


def compare(counted: dict[str, int], allowed: dict[str, int] | None) -> int:
    """Prints every piece; 1 if one is above its budget, without one, or gone."""
    failed = False
    for name, count in counted.items():
        limit = (allowed or {}).get(name)
        line = f"{name:36} {count:>12,}"
        if limit is not None:
            line += f"  {count / limit - 1:+7.1%} of {limit:,}"
        if allowed is not None and (limit is None or count > limit * (1 + TOLERANCE)):
            failed, line = True, line + ("  ABOVE THE BUDGET" if limit else "  HAS NO BUDGET")
        print(line)
    for name in set(allowed or {}) - set(counted):
        failed = True
        print(f"{name:36} is in the budget alone")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
