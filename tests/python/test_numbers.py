"""Numbers of every size as options and limits: the server serves or refuses them with a sentence, and never panics."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mcp_resources import ResourceServer
from mcp_resources._core import Server
from mcp_resources.testing import Client

U64, I64 = 2**64 - 1, 2**63 - 1
NUMBERS = [0, 1, 2**31, 2**32 - 1, I64, U64 - 1, U64]
WRONG = [-1, U64 + 1, 1.5, 1e308]
PATIENCE = 120.0
REQUEST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "resources/list",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}
WAYS = {
    "files": {"roots": "folder"},
    "git": {"repos": "folder"},
    "docs": {"sites": "folder"},
    "rag": {"collections": {"a": "folder"}},
    "skills": {"paths": "folder"},
    "db": {"url": "sqlite:///d.db", "tables": ["t"]},
    "api": {"apis": {"s": {"url": "http://127.0.0.1:9", "resources": {"r": {"path": "/r"}}}}},
}
"""What each kind needs beside the option that is looked at."""


def limits() -> list[str]:
    """The names of all limits, as the error for an unknown one lists them."""
    from mcp_resources.options import Limits

    return list(Limits.__annotations__)


@pytest.mark.parametrize("name", limits())
async def test_every_limit(name: str) -> None:
    """S-01."""
    for number in NUMBERS:
        if (name, number) == ("message", 1):
            continue  # no request is short enough to be answered
        async with asyncio.timeout(PATIENCE):
            try:
                server = ResourceServer("numbers", limits={name: number})  # type: ignore[misc]
                server.resource("a://{x}")(lambda x: x)
                async with Client(server) as client:
                    [contents] = await client.read("a://b")
                    assert contents.body == "b"
            except Exception as error:
                # A small limit refuses; nothing else is wrong.
                if number > 1 or "panic" in repr(error).lower():
                    raise AssertionError(f"{name} = {number}") from error
    for wrong in WRONG:
        with pytest.raises((TypeError, ValueError), match=name):
            ResourceServer("numbers", limits={name: wrong})  # type: ignore[misc]


def kinds(program: Path) -> list[dict[str, Any]]:
    lines = subprocess.run([program, "__options"], capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in lines.splitlines()]


def ends(program: Path, path: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [program, "serve", "--config", str(path)],
        input=json.dumps(REQUEST) + "\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def check(program: Path, folder: Path, document: Any) -> None:
    path = folder / "resources.yaml"
    path.write_text(json.dumps(document))
    ended = ends(program, path)
    assert "panicked" not in ended.stderr, (document, ended.stderr)
    assert ended.returncode in (0, 2), (document, ended.returncode, ended.stderr)
    if ended.returncode == 0:
        answers = [json.loads(line)["id"] for line in ended.stdout.splitlines()]
        # Without grace, the end of input comes before the answer.
        assert answers == [1] or document.get("guard") == {"limits": {"grace": 0}}, document
    else:
        assert ended.stderr.startswith("error: "), (document, ended.stderr)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    import sqlite3

    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.md").write_text("# A\n")
    (tmp_path / "a.json").write_text('{"a": 1}')
    subprocess.run(["git", "init", "-q", tmp_path / "folder"], check=True)
    with sqlite3.connect(tmp_path / "d.db") as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    db.close()
    return tmp_path


@pytest.mark.parametrize("kind", ["api", "db", "docs", "files", "git", "metrics", "rag", "results", "skills"])
def test_every_option_of_a_provider(program: Path, folder: Path, kind: str) -> None:
    """S-01: through YAML, with the options that the command lists."""
    [found] = [entry for entry in kinds(program) if entry["kind"] == kind]
    rows = [one for row in found["options"] for one in (row, *row["members"])]
    names = [row["name"] for row in rows if any(word in row["kind"] for word in ("number", "time", "size"))]
    assert names
    for name in names:
        for number in (0, 1, U64 - 1, U64, -1, 1e308):
            check(program, folder, {"providers": [{kind: {**WAYS.get(kind, {}), name: number}}]})


def test_every_number_of_the_guard(program: Path, folder: Path) -> None:
    """S-01."""
    for number in (0, 1, U64 - 1, U64, -1, 1e308, 1e-308):
        for guard in (
            {"rate": {"read": {"per_second": number}}},
            {"rate": {"list": {"per_second": 1, "burst": number}}},
            {"concurrency": number},
            {"max_size": {"**": number}},
            {"http": {"polling": [number, number]}},
        ):
            check(program, folder, {"providers": [{"files": {"roots": "folder"}}], "guard": guard})


@pytest.mark.parametrize("number", [0, U64])
def test_every_limit_of_a_file(program: Path, folder: Path, number: int) -> None:
    """S-01."""
    for name in limits():
        document = {"providers": [{"files": {"roots": "folder"}}], "guard": {"limits": {name: number}}}
        check(program, folder, document)


def test_the_core_is_the_one_that_was_built() -> None:
    """The test above is one of the binary, not of a stub."""
    assert Server.__module__ == "mcp_resources._core"
