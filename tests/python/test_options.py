"""The options of providers are rows in Rust; the interfaces, the dictionaries and the tables are made of them."""

from pathlib import Path

import make_options
import pytest
from mcp_resources import providers
from vectors import ROOT


@pytest.fixture(scope="module")
def tables(program: Path) -> dict[str, list[make_options.Row]]:
    """By kind, the rows."""
    return make_options.kinds(program)


def test_every_file_is_current(tables: dict[str, list[make_options.Row]]) -> None:
    """S-01, S-04: the languages and the pages of the providers have the options, word for word."""
    assert make_options.stale(make_options.files(tables)) == [], "run `make options`"


def test_a_row_that_changes_makes_files_old(tables: dict[str, list[make_options.Row]]) -> None:
    """S-01: another option or another sentence is seen in each language and in the guide."""
    changed = {**tables, "git": [{**row, "about": "Other words."} for row in tables["git"]]}
    old = make_options.stale(make_options.files(changed))
    assert old == [make_options.NODE, make_options.PYTHON, "docs/git.md"]


def test_an_argument_is_no_member(tables: dict[str, list[make_options.Row]]) -> None:
    """S-01: paths and names are arguments; a dictionary has the options that may be left out."""
    for kind, rows in tables.items():
        options = getattr(providers, f"{kind.capitalize()}Options", None)
        if options is not None and kind != "db":
            assert set(options.__annotations__) == {row["name"] for row in rows if row["default"] is not None}
    assert (ROOT / make_options.NODE).read_text("utf-8").count("readonly allow: string") == 2
