"""The match cases through `UriTemplate` and `TemplateSet` (DEC-14)."""

import json

import run_match
from vectors import ROOT


def test_the_corpus_passes() -> None:
    cases = json.loads((ROOT / "tests" / "fixtures" / "match" / "corpus.json").read_text("utf-8"))["cases"]
    passed, failures = run_match.run(cases)
    assert failures == []
    assert passed >= 327


def test_a_wrong_expectation_is_a_failure() -> None:
    template = {"template": "x://{a}"}
    for wrong in (
        {"uri": "x://1", "outcome": "match", "expect": {"template": "x://{a}", "vars": {"a": "2"}}},
        {"uri": "x://1", "outcome": "none"},
        {"uri": "x://..", "outcome": "rejected", "var": "a", "why": "Slash"},
        {"uri": None, "outcome": "conflict"},
    ):
        passed, failures = run_match.run([{"id": "x", **template, **wrong}])
        assert (passed, len(failures)) == (0, 1), wrong
