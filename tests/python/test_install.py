"""`install` and `uninstall`: every client, in a home of its own, read back as that client reads its file."""

import json
import os
import re
import stat
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

# A text, or a comment outside of one.
COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//.*|/\*.*?\*/')
FILES = {
    "claude-code": ".mcp.json",
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "vscode": ".vscode/mcp.json",
    "cursor": ".cursor/mcp.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "goose": ".config/goose/config.yaml",
    "zed": ".config/zed/settings.json",
    "opencode": "opencode.json",
    "windsurf": ".codeium/windsurf/mcp_config.json",
}
KEYS = {
    "vscode": "servers",
    "codex": "mcp_servers",
    "goose": "extensions",
    "zed": "context_servers",
    "opencode": "mcp",
}
# What stands in the file before, with comments, and which parts must stay.
MINE = {
    "codex": '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "a" # the other\n\n[tui]\ntheme = "y"\n',
    "goose": "# mine\nGOOSE_MODE: auto\nextensions:\n  other: # the other\n    type: builtin\nlast: 1\n",
}
WRONG = {
    "codex": ["[mcp_servers", "mcp_servers = 3\n"],
    "goose": ["a: [", "extensions: [a]\n", "extensions: {other: {enabled: true}}\n"],
}


def mine(client: str) -> str:
    key = KEYS.get(client, "mcpServers")
    return MINE.get(
        client,
        f'{{\n  // mine\n  "theme": "x",\n  "{key}": {{\n    "other": {{"command": "a"}} /* the other */\n  }}\n}}\n',
    )


def read(client: str, path: Path) -> dict[str, Any]:
    """The servers in the file."""
    text = path.read_text("utf-8")
    if client == "codex":
        whole = tomllib.loads(text)
    elif client == "goose":
        whole = yaml.safe_load(text)
    else:
        whole = json.loads(COMMENT.sub(lambda found: found[1] or "", text))
    # A table of TOML without entries is no table.
    found: dict[str, Any] = whole.get(KEYS["codex"], {}) if client == "codex" else whole[KEYS.get(client, "mcpServers")]
    return found


def started(client: str, entry: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """The command and the variables with which the client starts the server."""
    if client == "opencode":
        assert (entry["type"], entry["enabled"]) == ("local", True)
        return entry["command"], entry.get("environment", {})
    if client == "goose":
        assert (entry["type"], entry["enabled"], entry["name"]) == ("stdio", True, "notes")
        return [entry["cmd"], *entry["args"]], entry.get("envs", {}) | {
            key: f"${key}" for key in entry.get("env_keys", [])
        }
    if client in ("claude-code", "vscode"):
        assert entry["type"] == "stdio"
    names = {key: f"${key}" for key in entry.get("env_vars", [])}
    return [entry["command"], *entry["args"]], entry.get("env", {}) | names


def called(client: str, entry: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """The address and the headers with which the client calls the server."""
    key = {"gemini": "httpUrl", "windsurf": "serverUrl", "goose": "uri"}.get(client, "url")
    kind = {"claude-code": "http", "vscode": "http", "goose": "streamable_http", "opencode": "remote"}.get(client)
    assert entry.get("type") == kind
    if client == "codex":
        bearer = entry.get("bearer_token_env_var")
        headers = {"Authorization": f"Bearer ${bearer}"} if bearer else {}
        own = {name: f"${value}" for name, value in entry.get("env_http_headers", {}).items()}
        return entry[key], headers | own | entry.get("http_headers", {})
    return entry[key], entry.get("headers", {})


@pytest.fixture
def run(program: Path, tmp_path: Path) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Runs the program in a home of its own, which is the project too."""

    def run(*words: str, status: int = 0) -> "subprocess.CompletedProcess[str]":
        kept = {key: value for key, value in os.environ.items() if key not in ("XDG_CONFIG_HOME", "CODEX_HOME")}
        environment = {**kept, "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            [program, *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done

    return run


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(params=FILES)
def client(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_every_client_starts_what_was_installed(run: Run, client: str, tmp_path: Path) -> None:
    path = tmp_path / FILES[client]
    (tmp_path / "docs").mkdir()
    words = (
        "install",
        client,
        "--name",
        "notes",
        "--yes",
        "--env",
        "MODE=a",
        "--",
        "cat",
        "serve",
        "files:docs",
        "--x",
    )
    shown = run(*words).stdout
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    entries = read(client, path)
    command, variables = started(client, entries["notes"])
    if client in ("codex", "goose", "zed", "windsurf", "claude-desktop"):
        # One entry for all projects: the directory is any.
        found = Path(command[0])
        assert found.is_absolute()
        assert found.name == "cat"
        assert command[1:] == ["serve", f"files:{tmp_path.resolve()}/docs", "--x"]
    else:
        assert command == ["cat", "serve", "files:docs", "--x"]
    assert variables == {"MODE": "a"}
    assert shown == path.read_text(), "what is printed is what is written into an empty file"
    run("uninstall", client, "--name", "notes", "--yes")
    assert read(client, path) == {}


def test_every_client_replaces_variables_in_its_own_syntax(run: Run, client: str, tmp_path: Path) -> None:
    path = tmp_path / FILES[client]
    secret = ("--env", "KEY=${KEY}", "--", "cat")
    with_header = (
        "--header",
        "Authorization: Bearer ${KEY}",
        "--header",
        "X-Mode: a",
        "--server",
        "http://127.0.0.1:1/mcp",
    )
    if client in ("claude-desktop", "zed"):
        for words in (secret, with_header):
            said = run(
                "install", client, "--yes", *words, status=1 if "http" in words[-1] and client != "zed" else 2
            ).stderr
            assert "error: " in said
        assert not path.exists()
        return
    run("install", client, "--name", "notes", "--yes", *secret)
    written = {"claude-code": "${KEY}", "gemini": "${KEY}", "opencode": "{env:KEY}", "codex": "$KEY", "goose": "$KEY"}
    expected = written.get(client, "${env:KEY}")
    assert started(client, read(client, path)["notes"])[1] == {"KEY": expected}
    run("install", client, "--name", "notes", "--yes", *with_header)
    url, headers = called(client, read(client, path)["notes"])
    expected = "${KEY}" if client == "goose" else expected
    assert (url, headers) == ("http://127.0.0.1:1/mcp", {"Authorization": f"Bearer {expected}", "X-Mode": "a"})
    if client == "goose":
        assert read(client, path)["notes"]["env_keys"] == ["KEY"]


def test_what_a_person_wrote_stays(run: Run, client: str, tmp_path: Path) -> None:
    path = tmp_path / FILES[client]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(mine(client))
    path.chmod(0o640)
    before = read(client, path)
    run("install", client, "--name", "notes", "--yes", "--", "cat")
    run("install", client, "--name", "notes", "--yes", "--", "cat", "again")
    assert started(client, read(client, path)["notes"])[0][1:] == ["again"]
    run("uninstall", client, "--name", "notes", "--yes")
    text = path.read_text()
    assert read(client, path) == before
    assert "mine" in text
    assert "the other" in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [left.name for left in path.parent.iterdir() if "tmp" in left.name] == []


def test_a_wrong_file_is_not_touched(run: Run, client: str, tmp_path: Path) -> None:
    path = tmp_path / FILES[client]
    path.parent.mkdir(parents=True, exist_ok=True)
    key = KEYS.get(client, "mcpServers")
    for wrong in WRONG.get(client, ["{ broken", f'{{"{key}": 1}}', "[]"]):
        path.write_text(wrong)
        said = run("install", client, "--yes", "--", "cat", status=1).stderr
        assert f"{FILES[client]}: " in said
        assert "nothing is written" in said
        assert path.read_text() == wrong
        run("uninstall", client, "--name", "other", "--yes", status=1)
        assert path.read_text() == wrong
    path.unlink()
    assert "no entry" in run("uninstall", client, status=1).stderr
    assert not path.exists()


def test_nothing_is_written_without_a_terminal_or_consent(run: Run, client: str, tmp_path: Path) -> None:
    path = tmp_path / FILES[client]
    assert "note: add this to" in run("install", client, "--", "cat").stderr
    assert not path.exists()
    run("install", client, "--yes", "--", "mcp-resources", "serve")
    before = path.read_text()
    assert "nothing is changed without --yes" in run("uninstall", client).stderr
    assert path.read_text() == before
    run("uninstall", client, "--yes")
    assert read(client, path) == {}


def test_the_list_shows_which_clients_are_here_and_have_us(run: Run, tmp_path: Path) -> None:
    for name in (".codex", ".config/zed"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / ".config/zed/settings.json").write_text("{ broken")
    run("install", "codex", "--name", "notes", "--yes", "--", "uvx", "mcp-resources", "serve", ".")
    run("install", "codex", "--name", "other", "--yes", "--", "cat")
    run("install", "vscode", "--yes", "--", "npx", "-y", "mcp-resources", "serve", ".")
    done = run("install", "--list", "--json")
    found = {row["client"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert [*found] == [*FILES]
    assert found["codex"]["found"]
    assert found["codex"]["entries"] == [{"file": str(tmp_path / ".codex/config.toml"), "names": ["notes"]}]
    assert found["vscode"]["entries"] == [{"file": ".vscode/mcp.json", "names": ["mcp-resources"]}]
    assert found["zed"]["found"]
    assert found["zed"]["entries"] == []
    assert not found["goose"]["found"]
    assert "settings.json is left out: it is not JSON" in done.stderr
    table = run("install", "--list").stdout.splitlines()
    assert table[0].split() == ["CLIENT", "FOUND", "ENTRIES"]
    assert re.fullmatch(r"codex +yes +notes \(.*config\.toml\)", table[5])
    assert re.fullmatch(r"goose +no +-", table[7])


def test_an_entry_without_a_name_must_be_the_only_one(run: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        run("install", "cursor", "--name", name, "--yes", "--", "mcp-resources", "serve")
    assert "add --name with one of a, b" in run("uninstall", "cursor", "--yes", status=2).stderr
    run("uninstall", "cursor", "--name", "a", "--yes")
    run("uninstall", "cursor", "--yes")
    assert read("cursor", tmp_path / ".cursor/mcp.json") == {}


def test_a_link_is_followed(run: Run, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("# mine\n")
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/config.toml").symlink_to(real)
    run("install", "codex", "--name", "notes", "--yes", "--", "cat")
    assert (tmp_path / ".codex/config.toml").is_symlink()
    assert real.read_text().startswith("# mine\n")
    assert "notes" in tomllib.loads(real.read_text())["mcp_servers"]
