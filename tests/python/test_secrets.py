"""All providers at once, with secrets planted wherever they may read: no planted secret leaves by any way."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from http_aside import serving_aside
from mcp_resources import providers
from process import eventually
from repositories import commit, git
from test_config import post

PLANTED = "hunter2-canary"
"""A secret without a form: only its place says that it is one."""
TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
"""A secret that is known by its form."""

FILES = {
    "project/readme.md": "# Project\n",
    "project/src/main.py": "print('hello')\n",
    "project/.env": f"PASSWORD={PLANTED}\nTOKEN={TOKEN}\n",
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
    "site/page.md": "# A page\n",
    "site/.draft.md": f"# {PLANTED}\n\n{TOKEN}\n",
    "site/keys/own.key.md": f"---\ntitle: {PLANTED}\n---\n# Keys\n\n{TOKEN}\n",
    "skills/pdf/SKILL.md": "---\nname: pdf\ndescription: Fill forms\n---\n# Forms\n",
    "skills/pdf/.env": f"PASSWORD={PLANTED}\n",
    "skills/pdf/own.key": f"{PLANTED} {TOKEN}\n",
    "drive.json": json.dumps({"client_id": "me", "client_secret": PLANTED, "refresh_token": TOKEN}),
}
GIT_CONFIG = {"remote.origin.url": f"https://me:{PLANTED}@host/x", "http.extraHeader": f"Authorization: {TOKEN}"}
SCHEMA = f"""
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, password TEXT);
    INSERT INTO customers VALUES (1, 'Ada', '{PLANTED}');
    CREATE TABLE hidden (id INTEGER PRIMARY KEY, secret TEXT);
    INSERT INTO hidden VALUES (1, '{TOKEN}');
"""
DATABASES: dict[str, Any] = {
    "shop": {
        "url": "sqlite:shop.db",
        "tables": ["customers"],
        "columns_deny": ["password"],
        "views": {"names": "SELECT name FROM customers"},
    },
    # Nothing listens there, so that its errors are seen too.
    "away": {"url": f"postgres://me:{PLANTED}@127.0.0.1:1/x", "tables": ["customers"]},
    "named": {"url": {"env": "PLANTED_URL"}, "tables": ["customers"]},
}
DECLARED: list[dict[str, Any]] = [
    {"files": {"roots": {"project": "project"}}},
    {"config": {"apps": {"demo": "app.yaml"}, "allow": ["server", "server/**", "url", "text"]}},
    {"config": {"apps": {"other": "other.env"}, "allow": ["**"]}},
    {"env": {"allow": ["PLANTED_*", "TZ"]}},
    {"metrics": {"host": True, "interval": "50ms"}},
    {"git": {"repos": {"project": "project"}, "refs": ["heads", "tags", "remotes"]}},
    {"docs": {"sites": {"site": "site"}}},
    {"rag": {"collections": {"kb": {"drive": {"credentials": "drive.json", "base_url": "UPSTREAM"}}}}},
    {"rag": {"collections": {"pages": {"folder": "site"}}}},
    {"db": {"databases": DATABASES}},
    {"results": {"file": "results.db"}},
    {"skills": {"paths": ["skills"]}},
]
HEADERS = {"Authorization": {"env": "OTHER_SECRET"}, "X-Key": TOKEN}
ENVIRONMENT = {
    "PLANTED_PASSWORD": PLANTED,
    "PLANTED_TOKEN": TOKEN,
    "PLANTED_URL": f"postgres://me:{PLANTED}@127.0.0.1:1/x",
    "OTHER_SECRET": PLANTED,
    "TZ": "UTC",
}

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
    "git:///project/blob/HEAD/keys/server.key",
    "git:///project/blob/HEAD/.git/config",
    "git:///project/log?path=keys/server.key",
    "git:///project/log/stash",
    "git:///project/log/refs~2Fnotes~2Fcommits",
    "docs:///site/.draft.md",
    "docs:///site/keys/own.key.md",
    "rag:///pages/doc/.draft.md",
    "rag:///pages/doc/keys/own.key.md",
    "rag:///kb/doc/broken",
    "gdrive:///broken",
    "db:///away/schema",
    "db:///away/customers/1",
    "db:///named/customers",
    "db:///shop/hidden/1",
    "db:///shop/query/none",
    f"db:///shop/customers/{PLANTED[:3]}",
    "api:///shop/broken/7",
    "api:///shop/item/..%2Fsecret",
    "results:///of-another",
    "results:///expired",
    "skill://pdf/.env",
    "skill://pdf/own.key",
]
"""What is asked for though it is not there, may not be seen, or cannot be had."""
PRESENT = [
    "git:///project/commit/HEAD",
    "git:///project/diff/HEAD~1/HEAD",
    "git:///project/tree/HEAD/",
    "git:///project/tree/HEAD/keys",
    "git:///project/blob/HEAD/src/main.py",
    "docs:///site/search/page",
    "docs:///site/search/ghp",
    "docs:///site/search/hunter2",
    "rag:///kb/search/plan",
    "rag:///pages/search/hunter2",
    "rag:///kb/doc/plan",
    "db:///shop/customers",
    "db:///shop/customers/1",
    "db:///shop/query/names",
    "api:///shop/item/7",
    "results:///of-all",
]
"""What may be seen though no list has it, beside what may not."""


class Upstream(BaseHTTPRequestHandler):
    """An API, and Google Drive: what it answers has secrets where a server of ours must not look."""

    seen: list[str | None]

    def do_POST(self) -> None:
        """Gives an access token, and says the secrets that it was given."""
        form = self.rfile.read(int(self.headers["content-length"])).decode()
        self.answer(200, {"access_token": TOKEN, "expires_in": 3599, "form": form})

    def do_GET(self) -> None:
        """Answers as the API for `/items/7`, as Drive for `/drive/v3`, and says secrets for all else."""
        self.seen.append(self.headers["authorization"])
        path = self.path.partition("?")[0]
        plan = {"id": "plan", "name": "plan.txt", "mimeType": "text/plain", "version": "1"}
        match path:
            case "/items/7":
                self.answer(200, {"data": {"name": "shown-item"}, "debug": PLANTED})
            case "/drive/v3/files":
                broken = {**plan, "id": "broken", "name": "broken.txt"}
                self.answer(200, {"files": [plan, broken], "debug": PLANTED})
            case "/drive/v3/files/plan":
                self.answer(200, plan if "alt=media" not in self.path else "The plan of the drive.")
            case "/drive/v3/changes/startPageToken":
                self.answer(200, {"startPageToken": "1"})
            case "/drive/v3/changes":
                self.answer(200, {"changes": [], "newStartPageToken": "1"})
            case _:
                self.answer(403, {"error": {"message": f"{PLANTED} {TOKEN} of {dict(self.headers)}"}})

    def answer(self, status: int, body: object) -> None:
        """Sends JSON."""
        data = json.dumps(body).encode()
        self.send_response(status, PLANTED)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("x-debug", TOKEN)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def upstream() -> Iterator[str]:
    Upstream.seen = []
    with serving_aside(ThreadingHTTPServer(("127.0.0.1", 0), Upstream)) as server:
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.fixture
def folder(tmp_path: Path, upstream: str) -> Path:
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    (tmp_path / "project" / "link.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    keep_history(tmp_path / "project")
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.executescript(SCHEMA)
    results = providers.results(file=tmp_path / "results.db")
    results.put("of-all", "shown-result")
    results.put("of-another", PLANTED, principal="another")
    results.put("expired", TOKEN, ttl="1ms")
    item = {"url": f"{upstream}/items/{{id}}", "headers": HEADERS, "pick": "/data", "ids": ["7"]}
    endpoints = {"item": item, "broken": {**item, "url": f"{upstream}/broken/{{id}}"}}
    api = {"api": {"apis": {"shop": {"endpoints": endpoints}}, "private_networks": True}}
    guard = {"audit": "audit.jsonl", "deny": ["**/*.key", "**/*.key.md"], "http": {"metrics": "/metrics"}}
    declared = {"name": "secrets", "providers": [*DECLARED, api], "guard": guard}
    text = json.dumps(declared).replace("UPSTREAM", upstream)
    (tmp_path / "resources.json").write_text(text, "utf-8")
    return tmp_path


def keep_history(project: Path) -> None:
    """A repository with credentials in its configuration, and secrets in files and references that are not served."""
    git(project, "init", "-q", "-b", "main")
    for name, value in GIT_CONFIG.items():
        git(project, "config", name, value)
    commit(project, "First")
    (project / "keys" / "server.key").write_text(f"{PLANTED} again {TOKEN}\n", "utf-8")
    (project / "src" / "main.py").write_text("print('hello')\n# again\n", "utf-8")
    commit(project, "Second")
    git(project, "notes", "add", "-m", f"{PLANTED} {TOKEN}")
    (project / "src" / "main.py").write_text(f"print('{PLANTED}')\n", "utf-8")
    git(project, "stash", "-q")
    (project / "src" / "main.py").write_text("print('hello')\n", "utf-8")


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


SHOWN = [
    "print('hello')",
    "8080",
    "[redacted:key-name]",
    "[redacted:github-token]",
    "cpu_usage_percent",
    "# again",
    "# A page",
    "The plan of the drive.",
    "Ada",
    "shown-item",
    "shown-result",
    "Fill forms",
]
LISTED = [
    "file:///project/src/main.py",
    "config:///demo/url",
    "env:///PLANTED_TOKEN",
    "metrics:///cpu",
    "git:///project/log",
    "docs:///site/page.md",
    "rag:///kb/doc/plan",
    "rag:///pages/doc/page.md",
    "db:///shop",
    "api:///shop/item/7",
    "results:///of-all",
    "skill://pdf/SKILL.md",
]
FILLED = {"root": "project", "repo": "project", "ref": "HEAD", "site": "site", "collection": "kb"}
"""The other variables of a template while one is completed."""


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
    for kind in LISTED:
        assert any(uri.startswith(kind) for uri in uris), kind
    metrics = [uri for uri in uris if uri.startswith("metrics:///") and uri != "metrics:///"]
    uris += [f"{uri}?format={form}" for uri in metrics for form in ("csv", "openmetrics")]
    heard += [post(url, "resources/read", {"uri": uri}) for uri in [*uris, *PRESENT, *ABSENT]]
    heard.append(post(url, "skills/list", {}))
    heard.append(post(url, "skills/get", {"uri": "skill://pdf/SKILL.md"}))
    heard.append(post(url, "resources/directory/read", {"uri": "skill://pdf"}))
    for template in templates:
        for variable in re.findall(r"\w+(?=[,}])", template):
            for typed in ("", "p", "."):
                argument = {"name": variable, "value": typed}
                others = {name: value for name, value in FILLED.items() if name != variable}
                params: dict[str, Any] = {
                    "ref": {"type": "ref/resource", "uri": template},
                    "argument": argument,
                    "context": {"arguments": others},
                }
                heard.append(post(url, "completion/complete", params))
    return heard


URL = f"postgres://me:{PLANTED}@127.0.0.1:1/x"
MISTAKES: list[tuple[object, str]] = [
    ({"db": URL}, "db is"),
    ({"db": None, "databases": {"shop": {"url": URL}}}, '"databases", "db"'),
    ({"kind": "db", "url": URL, "password": PLANTED}, '"password"'),
    (URL, "it is"),
    ({"db": {"databases": {"shop": URL}}}, '"shop"'),
    ({"db": {"databases": [URL]}}, "db.databases"),
    ({"db": {"databases": {"shop": {"url": {"env": URL}, "tables": ["a"]}}}}, "not set"),
    (
        {"db": {"databases": {"shop": {"url": {"env": PLANTED + "-x"}, "tables": ["a"]}}}},
        "write the name, not the value",
    ),
    (
        {
            "api": {
                "apis": {"a": {"endpoints": {"b": {"url": "http://h/{id}", "headers": {"X": {"env": f"B {PLANTED}"}}}}}}
            }
        },
        "write the name, not the value",
    ),
    ({"db": {"databases": {"shop": {"url": URL, "tabels": ["a"]}}}}, '"tables"'),
    ({"git": URL.replace("postgres", "https")}, "does not exist"),
    ({"env": [f"PASSWORD={PLANTED}"]}, "has no `=`"),
    ({"api": {"apis": {"a": {"endpoints": {"b": {"url": URL.replace("postgres", "http")}}}}}}, "password"),
    ({"api": {"apis": {"a": {"endpoints": {"b": {"url": "http://h/{id}", "headers": f"Bearer {TOKEN}"}}}}}}, "headers"),
]
"""Entries that are wrong, each with a secret near the mistake."""


@pytest.mark.parametrize(("entry", "named"), MISTAKES)
def test_no_planted_secret_is_in_an_error_at_start(program: Path, tmp_path: Path, entry: object, named: str) -> None:
    """S-02, S-04, S-20: the message says where the mistake is, and leaves out the value if it may be a secret."""
    file = tmp_path / "resources.json"
    file.write_text(json.dumps({"providers": [entry]}), "utf-8")
    ended = subprocess.run([program, "serve", "--config", file], input=b"", capture_output=True, timeout=60)
    said = ended.stderr.decode()
    assert ended.returncode == 2
    assert "providers[0]" in said
    assert named in said
    assert PLANTED not in said
    assert TOKEN not in said
    words = subprocess.run([program, "serve", URL], input=b"", capture_output=True, timeout=60)
    assert words.returncode == 2
    assert b"db:NAME=URL,TABLE" in words.stderr
    assert PLANTED.encode() not in words.stderr


def test_no_planted_secret_leaves(served: tuple[str, "subprocess.Popen[bytes]"], folder: Path) -> None:
    """S-01 to S-07, S-20: of files, a repository, databases, APIs or the environment; also while files are broken."""
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
    for text in SHOWN:
        assert text in shown, text
    # The upstreams were asked with the secrets that are theirs.
    assert {PLANTED, f"Bearer {TOKEN}"} <= set(Upstream.seen)
    for text in (*heard, audit, said):
        assert PLANTED not in text
        assert TOKEN not in text
        # Nor where it all stands on this machine.
        assert text is said or str(folder) not in text
