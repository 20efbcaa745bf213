#!/usr/bin/env python3
"""Compares what the test runs recorded with `tests/requirements.json` and `tests/skips.toml`.

Each runner writes one file of JSON lines to `target/ran`: `{"of": test, "cites": text}` for a test that passed,
`{"of": test, "left_out": reason}` for one that did not run, and `{"ended": true}` at the end of a run that passed. A
requirement is covered by a test that passed and cites it: in Rust in the comment above the test, in Python in its
docstring, in Node in its name, and in a fixture under `covers`.

usage: ran.py [ID …], which lists the tests that cover each ID instead
"""

import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_ID = re.compile(r"\b(R|DEC|S|X)-(\d{2,3})\b(?:(?: to | ?(?:…|–) ?)(?:R|DEC|S|X)-(\d{2,3})\b)?")
_OURS = ("R", "DEC", "S")
"""The numbered requirements in `requirements.json`. X numbers are remarks on other documents."""


@dataclass
class Run:
    """The result of one suite."""

    suite: str
    covered: dict[str, set[str]] = field(default_factory=dict)
    """The tests that passed, by what they cite."""
    left_out: Counter[str] = field(default_factory=Counter)
    """How many tests did not run, by the reason."""
    ended: bool = False


def ids(text: str) -> Iterator[str]:
    """The requirements that a text names; `R-001 to R-003` names three."""
    for found in _ID.finditer(text):
        kind, first, last = found[1], found[2], found[3] or found[2]
        if kind in _OURS:
            for number in range(int(first), int(last) + 1):
                yield f"{kind}-{number:0{len(first)}}"


def read(suite: str, lines: Iterable[str]) -> Run:
    """Reads a record."""
    run = Run(suite)
    entries = [json.loads(line) for line in lines if line.strip()]
    absent = {entry.get("of") for entry in entries if "left_out" in entry}
    for entry in entries:
        run.ended |= entry.get("ended", False)
        if "left_out" in entry:
            run.left_out[entry["left_out"]] += 1
        elif entry.get("of") not in absent:
            for one in ids(entry.get("cites", "")):
                run.covered.setdefault(one, set()).add(entry["of"])
    return run


def incomplete(runs: list[Run]) -> Iterator[str]:
    """The suites that did not run to their end."""
    nodes = [run.suite for run in runs if run.suite.startswith("node-")]
    present = {run.suite for run in runs}
    for suite in ("rust", "python"):
        if suite not in present:
            yield f"{suite}: no record; run `make test-{suite}`"
    if not nodes:
        yield "node: no record; run `make test-node`"
    elif all(int(suite.removeprefix("node-")) < 22 for suite in nodes):
        yield "node: the tests ran on an old Node alone; tests/node/newer-node could not install a newer one"
    for run in runs:
        if not run.ended:
            yield f"{run.suite}: the run did not end, or failed"


def uncovered(runs: list[Run], requirements: list[dict[str, str]]) -> Iterator[str]:
    """Requirements without a test or a reason, with both, and citations of unknown ones."""
    known = {entry["id"]: entry.get("untested") for entry in requirements}
    covered = {one for run in runs for one in run.covered}
    for one, reason in known.items():
        if one not in covered and reason is None:
            yield f"{one}: no test that ran covers it, and tests/requirements.json has no `untested` reason"
        if one in covered and reason is not None:
            tests = ", ".join(sorted(test for run in runs for test in run.covered.get(one, ())))
            yield f"{one}: covered by {tests}; remove `untested` from tests/requirements.json"
    for one in sorted(covered - set(known)):
        yield f"{one}: cited by a test, but not in tests/requirements.json"


def unexpected(runs: list[Run], expected: dict[str, dict[str, int | list[int]]]) -> Iterator[str]:
    """The suites that left out other tests than `skips.toml` says. Several counts are those of different machines."""
    for run in runs:
        table = run.suite.partition("-")[0]
        wanted = expected.get(table, {})
        for reason in sorted(wanted.keys() | run.left_out.keys()):
            count, want = run.left_out.get(reason, 0), wanted.get(reason, 0)
            if count not in (want if isinstance(want, list) else [want]):
                line = f'`"{reason}" = {count}`' if count else "no line for it"
                yield (
                    f'{run.suite}: {count} tests left out because "{reason}", not {want}; '
                    f"if that is meant, tests/skips.toml needs {line} under [{table}]"
                )


def main() -> int:
    """Exit status 0 when the records agree with both tables."""
    folder = ROOT / "target" / "ran"
    runs = [read(path.name, path.read_text("utf-8").splitlines()) for path in sorted(folder.glob("*"))]
    if sys.argv[1:]:
        for one in sys.argv[1:]:
            tests = sorted(f"{run.suite}: {test}" for run in runs for test in run.covered.get(one, ()))
            print(one, *(tests or ["no test"]), sep="\n  ")
        return 0
    requirements = json.loads((ROOT / "tests" / "requirements.json").read_text("utf-8"))["requirements"]
    findings = [*incomplete(runs), *uncovered(runs, requirements)]
    for run in runs:
        print(f"{run.suite}: {sum(run.left_out.values())} tests left out")
        for reason, count in sorted(run.left_out.items()):
            print(f"  {count} because {reason}")
    findings += unexpected(runs, tomllib.loads((ROOT / "tests" / "skips.toml").read_text("utf-8")))
    untested = sum("untested" in entry for entry in requirements)
    print(f"{len(requirements) - untested} requirements are to be covered by tests, {untested} have a reason")
    for finding in findings:
        print(f"  {finding}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
