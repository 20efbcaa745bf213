"""Runs a file of guard cases: a line for each failure, then `N passed, M failed`. See `tests/fixtures/run-guard`."""

import json
import sys
from pathlib import Path
from typing import Any

from mcp_resources import Guard, InvalidTemplateError, InvalidUriError, RegistrationError

Case = dict[str, Any]


def run(cases: list[Case]) -> tuple[int, list[str]]:
    """How many decisions were as the cases want them, and a line for each that was not."""
    passed, failures = 0, []
    for case in cases:
        for what, got, wanted in checks(case):
            if got == wanted:
                passed += 1
            else:
                failures.append(f"{case['name']}: {what}: expected {wanted}, got {got}")
    return passed, failures


def checks(case: Case) -> list[tuple[str, str, str]]:
    """The questions of a case, the answers, and the expected answers."""
    try:
        guard = Guard(case["policy"], explicit_denials=case.get("explicit", False))
    except RegistrationError as error:
        field = str(error).removeprefix("guard: ").split(": ")[0]
        return [("the policy", field, case.get("refused", "accepted"))]
    if "refused" in case:
        return [("the policy", "accepted", case["refused"])]
    who = case.get("as", {})
    found = [
        (uri, decided(guard, uri, who), word) for word in ("allow", "hidden", "denied") for uri in case.get(word, [])
    ]
    for uri in case.get("never", []):
        word = decided(guard, uri, who)
        found.append((uri, "hidden" if word == "invalid_uri" else word, "hidden"))
    for uri, scopes in case.get("missing", {}).items():
        found.append((uri, decided(guard, uri, who), f"missing_scope {' '.join(scopes)}"))
    for word in ("known", "unknown"):
        found += [(template, known(guard, template, who), word) for template in case.get(word, [])]
    return found


def decided(guard: Guard, uri: str, who: Case) -> str:
    """The word for what is said of a URI, with the scopes that are missing."""
    try:
        word = guard.decide(uri, **who)
    except InvalidUriError:
        return "invalid_uri"
    return f"{word} {' '.join(guard.missing_scopes(uri, **who))}" if word == "missing_scope" else word


def known(guard: Guard, template: str, who: Case) -> str:
    """Whether a template is listed, in the words of the format."""
    try:
        return "known" if guard.knows_template(template, **who) else "unknown"
    except InvalidTemplateError as error:
        return str(error)


def main() -> int:
    """Runs the file that the first argument names."""
    if len(sys.argv) != 2:
        print("usage: run_guard.py FILE", file=sys.stderr)
        return 2
    passed, failures = run(json.loads(Path(sys.argv[1]).read_text("utf-8"))["cases"])
    for failure in failures:
        print(failure)
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
