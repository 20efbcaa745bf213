"""Mistakes in code, and the messages about them: the value, the reason and the fix."""

import json
import re
from typing import Any

import pytest
from mistakes import said
from vectors import ROOT

FOLDER = ROOT / "tests/fixtures/mistakes"
ROWS: list[dict[str, Any]] = json.loads((FOLDER / "python.json").read_text("utf-8"))


def test_there_are_enough_each_with_a_name_of_its_own() -> None:
    assert len(ROWS) >= 60
    assert len({row["name"] for row in ROWS}) == len(ROWS)


def test_a_mistake_of_both_languages_has_one_name() -> None:
    python, node, both = (
        json.loads((FOLDER / f"{name}.json").read_text("utf-8")) for name in ("python", "node", "both")
    )
    assert both == sorted({row["name"] for row in python} & {row["name"] for row in node})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
async def test_a_mistake_is_answered(row: dict[str, Any]) -> None:
    message = await said(row["code"])
    assert message is not None, "nothing was said"
    if "pattern" in row:
        assert re.search(row["pattern"], message), message
    else:
        assert message == row["message"]
