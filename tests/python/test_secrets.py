"""All providers at once, with secrets planted wherever they may read: no planted secret leaves by any way."""

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from process import eventually
from test_config import post

PLANTED = "hunter2-canary"
"""A secret without a form: only its place says that it is one."""
TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
"""A secret that is known by its form."""

FILES = {
    "project/readme.md": "# Project\n",
    "project/src/main.py": "print('hello')\n",
    "project/.env": f"PASSWORD={PLANTED}\nTOKEN={TOKEN}\n",
    "project/.git/config": f'[remote "origin"]\n\turl = https://me:{PLANTED}@host/x\n[http]\n\textraHeader = {TOKEN}\n',
    "project/.git/HEAD": "ref: refs/heads/main\n",
    "project/.gitignore": "local.toml\n",
    "project/local.toml": f"secret = '{PLANTED}'\n",
    "project/keys/server.key": f"{PLANTED} {TOKEN}\n",
    "outside/secret.txt": f"{PLANTED} {TOKEN}\n",
    "app.yaml": (
        f"server: {{port: 8080, db_password: {PLANTED}}}\n"
        f"url: postgres://me:{PLANTED}@host/x\n"
        f"text: the token {TOKEN} is in here\n"
        f"hidden: {PLANTED}\n"
    ),
    "other.env": f"API_KEY={PLANTED}\nPLAIN=shown\nPATH_LIKE=/usr/bin\n",
}
DECLARED: list[dict[str, Any]] = [
    {"files": {"roots": {"project": "project"}}},
    {"config": {"apps": {"demo": "app.yaml"}, "allow": ["server", "server/**", "url", "text"]}},
    {"config": {"apps": {"other": "other.env"}, "allow": ["**"]}},
    {"env": {"allow": ["PLANTED_*", "TZ"]}},
    {"metrics": {"host": True, "interval": "50ms"}},
]
ENVIRONMENT = {"PLANTED_PASSWORD": PLANTED, "PLANTED_TOKEN": TOKEN, "OTHER_SECRET": PLANTED, "TZ": "UTC"}

ABSENT = [
    "file:///project/.env",
    "file:///project/.git/config",
    "file:///project/local.toml",
    "file:///project/keys/server.key",
    "file:///project/link.txt",
    "file:///project/../outside/secret.txt",
    "file:///project/..%2Foutside%2Fsecret.txt",
    "file:///project/src/main.py?lines=0-99999999999",
    "file:///outside/secret.txt",
    "config:///demo/hidden",
    "config:///demo/server/db_password/x",
    "env:///OTHER_SECRET",
    "env:///PLANTED",
    "metrics:///OTHER_SECRET",
    "metrics:///cpu_usage_percent?from=OTHER_SECRET",
    "metrics:///..%2Foutside",
]
"""What is asked for though it is not there."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    (tmp_path / "project" / "link.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    guard = {"audit": "audit.jsonl", "deny": ["**/*.key"], "http": {"metrics": "/metrics"}}
    declared = {"name": "secrets", "providers": DECLARED, "guard": guard}
    (tmp_path / "resources.json").write_text(json.dumps(declared), "utf-8")
    return tmp_path


@pytest.fixture
def served(program: Path, folder: Path) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """The command over HTTP, with all of it: its URL, and its process. What it says goes to the file `log`."""
    log = folder / "log"
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [program, "serve", "--config", folder / "resources.json", "--http", "0"],
            env=os.environ | ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stderr=stderr,
        ) as process,
    ):
        try:
            assert eventually(lambda: "serving at " in log.read_text("utf-8")), log.read_text("utf-8")
            yield log.read_text("utf-8").partition("serving at ")[2].split()[0], process
        finally:
            process.terminate()


def everything(url: str) -> list[str]:
    """All that a client can be told: lists, templates, reads, completions, and the answers to what is not there."""
    heard = [post(url, method, {}) for method in ("server/discover", "resources/templates/list")]
    templates = [item["uriTemplate"] for item in json.loads(heard[-1])["result"]["resourceTemplates"]]
    uris, cursor = [], None
    while True:
        heard.append(post(url, "resources/list", {"cursor": cursor} if cursor else {}))
        page = json.loads(heard[-1])["result"]
        uris += [item["uri"] for item in page["resources"]]
        if (cursor := page.get("nextCursor")) is None:
            break
    for kind in ("file:///project/src/main.py", "config:///demo/url", "env:///PLANTED_TOKEN", "metrics:///cpu"):
        assert any(uri.startswith(kind) for uri in uris), kind
    metrics = [uri for uri in uris if uri.startswith("metrics:///") and uri != "metrics:///"]
    uris += [f"{uri}?format={form}" for uri in metrics for form in ("csv", "openmetrics")]
    heard += [post(url, "resources/read", {"uri": uri}) for uri in [*uris, *ABSENT]]
    for template in templates:
        for variable in ("root", "path", "app", "key", "name"):
            if variable in template:
                for typed in ("", "p", "."):
                    argument = {"name": variable, "value": typed}
                    context = {"arguments": {"root": "project"}} if variable == "path" else {}
                    params = {"ref": {"type": "ref/resource", "uri": template}, "argument": argument}
                    heard.append(post(url, "completion/complete", params | {"context": context}))
    return heard


def test_no_planted_secret_leaves(served: tuple[str, "subprocess.Popen[bytes]"], folder: Path) -> None:
    """S-01, S-04, S-05: of the environment, files, configuration or a repository; also while files are broken."""
    url, process = served
    heard = everything(url)
    for name in ("app.yaml", "other.env"):
        file = folder / name
        file.write_text(f"{file.read_text('utf-8')}\nbroken: [{PLANTED} '{TOKEN}\n", "utf-8")
    heard += everything(url)
    with urllib.request.urlopen(url.replace("/mcp", "/metrics"), timeout=60) as response:
        heard.append(response.read().decode())
    # What is wrong with a file that is read again is said without its contents.
    (folder / "resources.json").write_text('{"providers": [{"env": {"allow": ["A"]}}], ' + TOKEN, "utf-8")
    before = (folder / "log").stat().st_size
    process.send_signal(signal.SIGHUP)
    assert eventually(lambda: (folder / "log").stat().st_size > before)
    audit, said = ((folder / name).read_text("utf-8") for name in ("audit.jsonl", "log"))
    # Both were asked for, and what may be seen was.
    assert len(audit.splitlines()) > 100
    assert "still served" in said
    shown = "".join(heard)
    for text in ("print('hello')", "8080", "[redacted:key-name]", "[redacted:github-token]", "cpu_usage_percent"):
        assert text in shown, text
    for text in (*heard, audit, said):
        assert PLANTED not in text
        assert TOKEN not in text
        # Nor where it all stands on this machine.
        assert text is said or str(folder) not in text
