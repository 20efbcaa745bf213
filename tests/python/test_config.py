"""Configuration and environment, served by the command: no planted secret leaves, and watching leaves nothing."""

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mcp_resources import providers
from process import eventually, refused_at_start, running, thread_names
from vectors import MODERN

PLANTED = "hunter2-canary"
APP = f"""
server: {{port: 8080, db_password: {PLANTED}}}
url: postgres://me:{PLANTED}@host/x
conn: 'Server=x;Pwd={PLANTED};'
monkey: banana
max_tokens: 4096
hidden: {PLANTED}
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    file = tmp_path / "app.yaml"
    file.write_text(APP, "utf-8")
    return file


def config(app: Path, **more: object) -> Path:
    """A file for `serve --config`."""
    declared = [
        {
            "config": {
                "apps": {"demo": app.name},
                "allow": ["server", "server/**", "url", "conn", "monkey", "max_tokens", "gone"],
            }
        },
        {"env": {"allow": ["PLANTED_TOKEN", "TZ"]}},
    ]
    file = app.parent / "resources.json"
    file.write_text(json.dumps({"name": "settings", "providers": declared} | more), "utf-8")
    return file


@contextmanager
def listening(program: Path, file: Path, log: Path) -> Iterator[str]:
    """The command over HTTP; its URL. What it says goes to `log`."""
    planted = {"PLANTED_TOKEN": PLANTED, "PLANTED_OTHER": PLANTED, "TZ": "UTC"}
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [program, "serve", "--config", file, "--http", "0"],
            env=os.environ | planted,
            stdin=subprocess.DEVNULL,
            stderr=stderr,
        ) as process,
    ):
        try:
            assert eventually(lambda: "serving at " in log.read_text("utf-8")), log.read_text("utf-8")
            yield log.read_text("utf-8").partition("serving at ")[2].split()[0]
        finally:
            process.terminate()


def post(url: str, method: str, params: dict[str, object]) -> str:
    """A modern request; the answer as text."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params | {"_meta": meta}}
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": method,
    }
    if uri := params.get("uri"):
        headers["mcp-name"] = str(uri)
    request = urllib.request.Request(url, json.dumps(message).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return str(response.read().decode())
    except urllib.error.HTTPError as error:
        return error.read().decode()


def test_no_planted_secret_leaves(program: Path, app: Path, tmp_path: Path) -> None:
    """S-04: not in an answer, the log, the metrics or the audit log, and not while the file is half-written."""
    file = config(app, guard={"audit": "audit.jsonl", "http": {"metrics": "/metrics"}})
    log, heard = tmp_path / "log", []
    with listening(program, file, log) as url:
        for round in (APP, f"{APP}\nbroken: [{PLANTED}", "", f"{APP}\nurl: {PLANTED}"):
            app.write_text(round, "utf-8")
            heard.append(post(url, "resources/list", {}))
            uris = [item["uri"] for item in json.loads(heard[-1])["result"]["resources"]]
            assert "config:///demo/server/db_password" in uris
            assert "env:///PLANTED_TOKEN" in uris
            uris += ["config:///demo/hidden", "config:///demo/gone", "env:///PLANTED_OTHER", "env:///PATH"]
            heard += [post(url, "resources/read", {"uri": uri}) for uri in uris]
            for template, variable in (("config:///{app}/{+key}", "key"), ("env:///{name}", "name")):
                reference = {"type": "ref/resource", "uri": template}
                params = {"ref": reference, "argument": {"name": variable, "value": ""}}
                heard.append(post(url, "completion/complete", params))
        with urllib.request.urlopen(url.replace("/mcp", "/metrics"), timeout=60) as response:
            heard.append(response.read().decode())
    audit = (tmp_path / "audit.jsonl").read_text("utf-8")
    said = log.read_text("utf-8")
    assert len(audit.splitlines()) > 40
    assert said.count("still served") == 3
    assert all(shown in "".join(heard) for shown in ("8080", "banana", "4096"))
    assert "Server=x;Pwd=[redacted:" in "".join(heard)
    for text in (*heard, audit, said):
        assert PLANTED not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["config:app.yaml"], 'nothing of ./app.yaml is allowed; say which keys are served: `allow: ["server"'),
        (["config:"], "names no file; write config:FILE,GLOB"),
        (["config:none.yaml,a"], "none.yaml does not exist"),
        (["config:a=app.yaml,x", "config:a=app.yaml,y"], 'two files have the name "a"'),
        (["env:"], "names no variable; write env:NAME,NAME"),
        (["env:A=hunter2-canary"], "has no `=`"),
    ],
)
def test_what_cannot_be_served_is_said_at_once(program: Path, app: Path, words: list[str], said: str) -> None:
    """S-04: with the fix, without the value, and though stdin is open."""
    error = refused_at_start(program, *words, at=app.parent)
    assert said in error
    assert PLANTED not in error


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.yaml", f"a: 1\n---\nb: {PLANTED}\n", "line 2: it has more than one document; only one can be read"),
        ("a.yaml", f"a: 1\na: {PLANTED}\n", "line 2: a key stands twice"),
        ("a.yaml", f"a: !!int {PLANTED}\n", "line 1: a value does not fit its tag"),
        ("a.yaml", f"a: {'[' * 100}{PLANTED}{']' * 100}\n", "line 1: it is nested too deeply"),
        ("a.yaml", f"a: [{'1,' * 250_000}]\n", "line 1: it has too many values"),
        ("a.env", f"A='{PLANTED}\nB=1\n", "line 1: a quote does not close"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(program: Path, tmp_path: Path, name: str, text: str, said: str) -> None:
    """S-04: the reason itself, and not that it is no YAML; without contents."""
    (tmp_path / name).write_text(text, "utf-8")
    error = refused_at_start(program, f"config:{name},**", at=tmp_path)
    assert said in error
    assert PLANTED not in error


def test_lines_that_are_no_variables_are_left_out(program: Path, tmp_path: Path) -> None:
    """S-04: the rest of a .env file is served, and the log names the line."""
    (tmp_path / "a.env").write_text(f"1A=1\n{PLANTED}\nÄ=2\nB=`x 'y'`\n", "utf-8")
    command = [program, "read", "config:///a", "--", program, "serve", f"config:{tmp_path / 'a.env'},**"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"1A": "1", "Ä": "2", "B": "x 'y'"}
    assert "line 2 is not NAME=VALUE and is left out" in done.stderr
    assert PLANTED not in done.stderr


def test_the_thread_ends_with_the_last_watcher(program: Path, app: Path) -> None:
    """S-04: the files are looked at while somebody watches, and no longer; again after that."""
    with running([str(program), "serve", f"config:{app},**", "env:TZ"]) as server:

        def threads() -> int:
            return thread_names(server.process.pid).count("mcp-config")

        for round in range(2):
            assert eventually(lambda: threads() == 0)
            # Not in a legacy session, which hears of the lists all the time.
            wanted = {"resourceSubscriptions": ["config:///app/url", "env:///TZ"]}
            server.modern(round, "subscriptions/listen", {"notifications": wanted})
            assert eventually(lambda: threads() == 1)
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": round}})
        assert eventually(lambda: threads() == 0)


def test_what_python_gives_wrong_is_named(app: Path) -> None:
    """S-04: the options have types, and wrong ones say what would be right."""
    with pytest.raises(TypeError, match="reveals"):
        providers.config(app, allow=["a"], reveals=["b"])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="allow"):
        providers.config(app)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="allow is 5"):
        providers.env(allow=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='did you mean "jwt"'):
        providers.env(allow=["A"], redact=["jwtt"])
    with pytest.raises(ValueError, match="does not exist"):
        providers.config({"a": "none.yaml"}, allow="**")
    assert repr(providers.config([app], allow="**")) == "<provider config>"
