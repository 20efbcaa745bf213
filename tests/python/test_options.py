"""The options of providers stand in one table, in Rust: what documents and types say of them is compared with it."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from mcp_resources import providers
from vectors import ROOT

DOCUMENTS = {
    "api": "api.md",
    "config": "config.md",
    "db": "db.md",
    "docs": "docs.md",
    "env": "config.md",
    "files": "files.md",
    "git": "git.md",
    "metrics": "metrics.md",
    "rag": "rag.md",
    "results": "results.md",
    "skills": "skills.md",
}
"""The kinds that have options, and where these are documented."""
KINDS = pytest.mark.parametrize("kind", DOCUMENTS)
NODE = ROOT / "bindings-node" / "dist" / "provider-options.d.ts"


@pytest.fixture(scope="module")
def tables(program: Path) -> dict[str, list[dict[str, str | None]]]:
    """By kind, the rows."""
    done = subprocess.run([program, "__options"], capture_output=True, check=True, text=True)
    kinds = [json.loads(line) for line in done.stdout.splitlines()]
    return {kind["kind"]: kind["options"] for kind in kinds}


def test_the_command_has_every_kind(tables: dict[str, list[dict[str, str | None]]]) -> None:
    """S-01: a kind that is added must be looked at here."""
    # `clock` is an example of a provider: the table of words in docs/serve.md has its one option.
    assert sorted(kind for kind, rows in tables.items() if rows and kind != "clock") == sorted(DOCUMENTS)


@KINDS
def test_every_language_has_the_options(tables: dict[str, list[dict[str, str | None]]], kind: str) -> None:
    """S-01, S-04: the same names; what must be given is an argument of its own, or a member that cannot be left out."""
    names = {row["name"] for row in tables[kind] if row["default"] is not None}
    shape = f"{kind.capitalize()}Options"
    assert set(getattr(providers, shape).__annotations__) == names
    found = re.search(rf"interface {shape} \{{(.*?)\n\}}", NODE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    members = set(re.findall(r"readonly (\w+)\?:", found[1]))
    assert members == {re.sub(r"_(\w)", lambda m: m[1].upper(), name or "") for name in names}


@KINDS
def test_the_documents_have_the_table(tables: dict[str, list[dict[str, str | None]]], kind: str) -> None:
    """S-01, S-04: the page of the provider has it word for word."""
    text = (ROOT / "docs" / DOCUMENTS[kind]).read_text("utf-8")
    assert written(tables[kind]) in text, f"\n{written(tables[kind])}"


def written(rows: list[dict[str, str | None]]) -> str:
    """A table as documents have it."""
    lines = ["| option | value | default | what it does |", "| --- | --- | --- | --- |"]
    for row in rows:
        default = "must be given" if row["default"] is None else f"`{row['default']}`"
        lines.append(f"| `{row['name']}` | {row['kind']} | {default} | {row['about']} |")
    return "\n".join(lines) + "\n"
