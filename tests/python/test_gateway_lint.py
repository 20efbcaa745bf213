"""`mcp-resources lint --config FILE`: what a gateway cannot merge."""

import json
import subprocess
from pathlib import Path
from typing import Any

from gateway import configured, stub


def lint(program: Path, file: Path, *words: str) -> tuple[int, list[dict[str, Any]], str]:
    command = [str(program), "lint", "--config", str(file), "--json", *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_what_cannot_be_merged_is_found(program: Path, tmp_path: Path) -> None:
    """G3: equal names, URIs, pages and templates, and what agents see then."""
    servers = {
        "a": stub(
            "a",
            resources={"note://x": "a", "ui://p": "a"},
            only_tools={"echo": None, "own": None},
            prompts=["ask"],
            templates=["item://{id}", "bad://{"],
        ),
        "b": stub(
            "b",
            era="modern",
            resources={"NOTE://x": "b", "ui://p": "b", "note://b": "b"},
            only_tools={"echo": None},
            prompts=["ask"],
            templates=["item://{+path}"],
        ),
        "c": stub("c", resources={"note://x": "c"}, only_tools={"echo": None}, entry={"prefix": "c"}),
    }
    status, found, said = lint(program, configured(tmp_path, servers))
    assert status == 1, said
    assert sorted((one["rule"], one["subject"]) for one in found) == [
        ("equal-page", "ui://p"),
        ("equal-prompt-name", "ask"),
        ("equal-tool-name", "echo"),
        ("equal-uri", "note://x"),
        ("invalid-template", "bad://{"),
        ("overlapping-template", "item://{id}"),
    ]
    by_rule = {one["rule"]: one for one in found}
    assert by_rule["equal-tool-name"]["what"] == "a and b have a tool of this name; agents see a_echo and b_echo"
    assert by_rule["equal-uri"]["what"] == "a and b have it; agents see note://x and b+NOTE://x"
    assert "ui://b+p" in by_rule["equal-page"]["what"]
    assert all(one["fix"] for one in found)
    assert "6 mistakes found in 3 servers" in said
    # What an agent does not see clashes with nothing.
    file = configured(
        tmp_path,
        servers,
        {
            "one": {
                "token": "one",
                "mcpServers": {
                    "a": {"resources": ["note://**"], "tools": ["own"]},
                    "b": {"resources": ["note://b"], "tools": ["echo"]},
                },
            }
        },
    )
    status, found, said = lint(program, file)
    assert (status, [one["rule"] for one in found]) == (1, ["invalid-template"]), said


def test_a_server_that_cannot_be_looked_at(program: Path, tmp_path: Path) -> None:
    """G3: a server that does not start is a finding with status 2, a wrong file one sentence."""
    servers = {"a": stub("a"), "gone": {"command": "no-such-program-anywhere", "resources": "*"}}
    status, found, said = lint(program, configured(tmp_path, servers))
    assert status == 2, said
    assert [(one["rule"], one["subject"]) for one in found] == [("unreachable-server", "gone")]
    agents = {"one": {"token": "one", "mcpServers": {"wiki": {"resources": "*"}}}}
    status, found, said = lint(program, configured(tmp_path, {"a": stub("a"), "b": stub("b")}, agents))
    assert (status, found) == (2, [])
    assert "wiki" in said
    assert "one" in said
