"""Runs a file of match cases: a line for each failure, then `N passed, M failed`. See `tests/fixtures/run-match`."""

import json
import sys
from pathlib import Path
from typing import Any

from mcp_resources import (
    InvalidTemplateError,
    InvalidUriError,
    Match,
    Rejected,
    TemplateConflictError,
    TemplateSet,
    UriTemplate,
    Variable,
)

Case = dict[str, Any]


def run(cases: list[Case]) -> tuple[int, list[str]]:
    """How many cases passed, and a line for each that did not. Each is run in both orders of registration."""
    failures = []
    for case in cases:
        texts = case.get("templates") or [case["template"]]
        for order in (texts, texts[::-1]):
            got = outcome(case, order)
            if got != expected(case, got):
                failures.append(f"{case['id']}: {order} on {case['uri']!r}: {got}")
                break
    return len(cases) - len(failures), failures


def expected(case: Case, got: Case) -> Case:
    """The expected outcome of a case. Members that it leaves open are those of the outcome."""
    wanted: Case = {"outcome": case["outcome"]}
    if case["outcome"] == "match":
        wanted |= case["expect"]
    if case["outcome"] == "rejected":
        wanted |= {name: case.get(name, got.get(name)) for name in ("var", "why")}
    return wanted


def outcome(case: Case, texts: list[str]) -> Case:
    """The outcome of a case, in the format of the file."""
    options = case.get("opts", {})
    variables = {name: Variable(**words) for name, words in options.get("vars", {}).items()}
    try:
        templates = [UriTemplate(text, variables, extra_query=options.get("extra_query", "ignore")) for text in texts]
        found = TemplateSet(templates)
        if case["uri"] is None:
            return {"outcome": "registered"}
        result = found.match(case["uri"])
        if len(templates) == 1 and described(templates[0].match(case["uri"])) != described(result):
            return {"outcome": "something else without an index"}
        return described(result)
    except InvalidTemplateError:
        return {"outcome": "invalid_template"}
    except TemplateConflictError:
        return {"outcome": "conflict"}
    except InvalidUriError:
        return {"outcome": "invalid_uri"}


def described(result: object) -> Case:
    """A lookup in the words of the format."""
    if isinstance(result, Match):
        return {"outcome": "match", "template": result.template, "vars": result.params}
    if isinstance(result, Rejected):
        return {"outcome": "rejected", "var": result.variable, "why": result.why}
    return {"outcome": "none"}


def main() -> int:
    """Runs the file that the first argument names."""
    if len(sys.argv) != 2:
        print("usage: run_match.py FILE", file=sys.stderr)
        return 2
    passed, failures = run(json.loads(Path(sys.argv[1]).read_text("utf-8"))["cases"])
    for failure in failures:
        print(failure)
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
