"""`serve` for several people: addresses, tokens, signed tokens, a proxy that says who somebody is, TLS, `--check`.

The words, keys and statuses are fixed (S-01, S-20); what a policy hides is tested with the guard.
"""

import asyncio
import http.client
import json
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from mcp_resources import Client, McpError
from ports import reserved_port
from test_auth import KEYS, token
from test_serve import INITIALIZE, PATIENCE, Start, config, project, serve, uris

__all__ = ["project", "serve"]

OPENSSL = shutil.which("openssl")
HELLO = json.dumps(INITIALIZE)
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(program: Path, tmp_path: Path) -> Run:
    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [program, *words], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    return run


@pytest.fixture
def team(tmp_path: Path, project: Path) -> Path:
    """A file for three people, one of whom may not see everything."""
    return config(
        tmp_path,
        providers=[{"files": {"roots": "project"}}],
        auth={"tokens": "tokens.yaml"},
        guard={"principals": {"bob": {"deny": ["**/src/**"]}}},
    )


def new_token(run: Run, name: str, *words: str) -> str:
    made = run("token", "new", name, "--file", "tokens.yaml", *words)
    assert made.returncode == 0, made.stderr
    assert re.fullmatch(r"mcpr_[\w-]{43}\n", made.stdout), made.stdout
    return made.stdout.strip()


def client(url: str, bearer: str) -> Client:
    return Client(url, headers={"Authorization": f"Bearer {bearer}"})


def status(url: str, headers: dict[str, str]) -> tuple[int, str | None]:
    host, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=PATIENCE)
    accept = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request("POST", f"/{path}", HELLO, accept | headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.headers.get("WWW-Authenticate")


async def test_each_token_is_a_person(run: Run, serve: Start, team: Path) -> None:
    """S-20: a token opens what its person may see; without one, or with a wrong one, there is nothing."""
    alice, bob = new_token(run, "alice"), new_token(run, "bob")
    with serve("--config", str(team), "--http", "0") as served:
        url = served.url()
        async with client(url, alice) as hers, client(url, bob) as his:
            assert "file:///project/src/main.py" in await uris(hers)
            assert "file:///project/src/main.py" not in await uris(his)
            assert await his.read("file:///project/README.md") == "# Project\n"
        assert status(url, {}) == (401, "Bearer")
        assert status(url, {"Authorization": "Bearer mcpr_x"}) == (401, 'Bearer error="invalid_token"')
        assert served.end() == 0


async def test_a_revoked_token_ends_what_it_opened(run: Run, serve: Start, team: Path, project: Path) -> None:
    """S-20: the file of tokens is read again when it changes, and a person who lost theirs hears nothing more."""
    alice = new_token(run, "alice")
    uri = "file:///project/README.md"
    with serve("--config", str(team), "--http", "0") as served:
        url = served.url()
        async with client(url, alice) as hers:
            assert await hers.read(uri) == "# Project\n"
            assert run("token", "revoke", "alice", "--file", "tokens.yaml").returncode == 0
            end = time.monotonic() + PATIENCE
            while status(url, {"Authorization": f"Bearer {alice}"})[0] != 401:
                assert time.monotonic() < end
                time.sleep(0.1)
        bob = new_token(run, "bob")
        end = time.monotonic() + PATIENCE
        while status(url, {"Authorization": f"Bearer {bob}"})[0] == 401:
            assert time.monotonic() < end
            time.sleep(0.1)
        (project.parent / "tokens.yaml").write_text("- {name: bob}\n")
        assert "the tokens stay what they were" in served.wait_for("tokens.yaml")
        assert status(url, {"Authorization": f"Bearer {bob}"})[0] != 401


def test_tokens_are_listed_without_themselves(run: Run, tmp_path: Path) -> None:
    """S-20: the token is shown once; the file and the list have names, scopes and times."""
    shown = new_token(run, "alice", "--scope", "notes:read", "--expires", "90d")
    assert shown not in (tmp_path / "tokens.yaml").read_text()
    assert (tmp_path / "tokens.yaml").stat().st_mode & 0o077 == 0
    listed = run("token", "list", "--file", "tokens.yaml")
    assert re.search(r"^alice +notes:read +20\d\d-", listed.stdout, re.MULTILINE), listed.stdout
    for words, text in [
        (["token", "new", "", "--file", "tokens.yaml"], 'name is "", expected'),
        (["token", "new", "a", "--scope", "b c", "--file", "tokens.yaml"], 'scopes has "b c"'),
        (["token", "new", "a", "--expires", "soon", "--file", "tokens.yaml"], "--expires: it must be a time such as"),
        (["token", "revoke", "carol", "--file", "tokens.yaml"], 'there is no token of "carol"'),
        (["token", "list", "--file", "none.yaml"], "none.yaml: it does not exist"),
    ]:
        refused = run(*words)
        assert refused.returncode in (1, 2)
        assert text in refused.stderr, refused.stderr
        assert refused.stdout == ""


def test_other_machines_are_asked_who_they_are(serve: Start, run: Run, team: Path, project: Path) -> None:
    """S-20: an address that others reach needs `auth` or `--public`."""
    with serve("project", "--http", "0.0.0.0:0") as served:
        assert served.process.wait(PATIENCE) == 2
        assert "nobody is asked who they are" in served.wait_for("error: ")
    with serve("project", "--http", "0.0.0.0:0", "--public") as served:
        url = served.url().replace("0.0.0.0", "127.0.0.1")
        assert status(url, {"Host": "docs.example.com"})[0] != 403
    new_token(run, "alice")
    with serve("--config", str(team), "--http", "0.0.0.0:0") as served:
        assert "tokens cross the network unencrypted" in served.wait_for("warning: ")
        served.url()


async def test_signed_tokens(serve: Start, tmp_path: Path, project: Path) -> None:
    """S-20, R-199: tokens of an authorization server, with its keys in a file; clients learn where to get one."""
    shutil.copy(KEYS / "jwks.json", tmp_path / "jwks.json")
    jwt = {"issuer": "https://id.example.com", "audience": "http://localhost/mcp", "keys": "jwks.json"}
    path = config(tmp_path, providers=[{"files": {"roots": "project"}}], auth={"jwt": jwt})
    with serve("--config", str(path), "--http", "0") as served:
        url = served.url()
        async with client(url, token()) as somebody:
            assert await somebody.read("file:///project/README.md") == "# Project\n"
        refused = status(url, {})
        assert refused[0] == 401
        assert "/.well-known/oauth-protected-resource/mcp" in str(refused[1])


def test_a_proxy_says_who_somebody_is(serve: Start, tmp_path: Path, project: Path) -> None:
    """S-20: the header counts from the proxy's address alone, and the audit log has the name."""

    def written(sources: list[str]) -> Path:
        return config(
            tmp_path,
            providers=[{"files": {"roots": "project"}}],
            auth={"identity": {"header": "X-User", "groups": "X-Groups", "from": sources}},
            guard={"audit": "audit.jsonl", "http": {"health": "/health"}},
        )

    with serve("--config", str(written(["127.0.0.1/32"])), "--http", "0") as served:
        url = served.url()
        assert status(url, {"X-User": "alice", "X-Groups": "docs, ops"})[0] == 200
        assert status(url, {})[0] == 401
        assert served.end() == 0
    assert '"alice"' in (tmp_path / "audit.jsonl").read_text()
    with serve("--config", str(written(["10.0.0.0/8"])), "--http", "0") as served:
        url = served.url()
        assert status(url, {"X-User": "alice"})[0] == 403
        health = http.client.HTTPConnection(url.removeprefix("http://").partition("/")[0], timeout=PATIENCE)
        health.request("GET", "/health")
        assert health.getresponse().status == 200
        health.close()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self.path))


@contextmanager
def unix_post(path: Path, headers: dict[str, str]) -> Iterator[http.client.HTTPResponse]:
    connection = UnixConnection(path)
    accept = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request("POST", "/mcp", HELLO, accept | headers)
    yield connection.getresponse()
    connection.close()


def test_a_unix_socket(serve: Start, tmp_path: Path, project: Path) -> None:
    """S-20: an abandoned socket is replaced, one in use is not, and the end removes it."""
    path = tmp_path / "mcp.sock"
    source = config(
        tmp_path,
        providers=[{"files": {"roots": "project"}}],
        auth={"identity": {"header": "X-User", "from": ["unix"]}},
    )
    with serve("--config", str(source), "--http", f"unix:{path}") as served:
        served.wait_for("serving at unix:")
        with unix_post(path, {"X-User": "alice"}) as answer:
            assert answer.status == 200
        with unix_post(path, {}) as answer:
            assert answer.status == 401
        with serve("--config", str(source), "--http", f"unix:{path}") as second:
            assert second.process.wait(PATIENCE) == 1
            second.wait_for("it cannot be used")
        served.end(signal.SIGKILL)
    assert path.exists()
    with serve("--config", str(source), "--http", f"unix:{path}") as served:
        served.wait_for("serving at unix:")
        assert served.end() == 0
    assert not path.exists()
    path.write_text("not a socket")
    with serve("--config", str(source), "--http", f"unix:{path}") as served:
        assert served.process.wait(PATIENCE) == 1
    assert path.read_text() == "not a socket"


def renewed(run_folder: Path) -> None:
    """Another certificate in the place of the first one."""
    subprocess.run(
        shlex.split(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=renewed"
            " -keyout new.key -out new.pem"
        ),
        cwd=run_folder,
        check=True,
        capture_output=True,
    )
    (run_folder / "new.key").replace(run_folder / "server.key")
    (run_folder / "new.pem").replace(run_folder / "server.pem")


@pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed")
def test_tls_with_a_renewed_certificate(serve: Start, tmp_path: Path, project: Path) -> None:
    """S-20: a changed certificate is used for new connections; a broken one is said, and the old one stays."""
    shutil.copy(KEYS / "certificate.pem", tmp_path / "server.pem")
    shutil.copy(KEYS / "tls.pem", tmp_path / "server.key")
    tls = {"cert": "server.pem", "key": "server.key"}
    path = config(tmp_path, providers=[{"files": {"roots": "project"}}], tls=tls)
    with serve("--config", str(path), "--http", "0") as served:
        url = served.url()
        assert url.startswith("https://")
        host, _, port = url.removeprefix("https://").partition("/")[0].partition(":")

        def certificate() -> str:
            return ssl.get_server_certificate((host, int(port)), timeout=PATIENCE)

        first = certificate()
        renewed(tmp_path)
        served.wait_for("the certificate was renewed")
        second = certificate()
        assert second != first
        (tmp_path / "server.pem").write_text("broken")
        assert "the certificate stays what it was" in served.wait_for("server.pem")
        assert certificate() == second


def test_a_file_is_checked(run: Run, team: Path, tmp_path: Path, project: Path) -> None:
    """S-20: `--check` says what is wrong without serving, and shows what a person sees."""
    new_token(run, "alice")
    checked = run("serve", "--config", str(team), "--check")
    assert (checked.returncode, checked.stdout) == (0, ""), checked.stderr
    seen = {name: run("serve", "--config", str(team), "--check", "--as", name) for name in ["alice", "bob"]}
    assert [found.returncode for found in seen.values()] == [0, 0], seen
    assert "file:///project/src/main.py\n" in seen["alice"].stdout
    assert "file:///{root}/{+path}\n" in seen["alice"].stdout
    assert "file:///project/src/main.py" not in seen["bob"].stdout
    assert "file:///project/README.md\n" in seen["bob"].stdout


FILES = {"files": {"roots": "project"}}
MISTAKES: list[tuple[dict[str, object], str]] = [
    ({"auth": {}}, "auth does not say how clients prove who they are"),
    ({"auth": {"token": "t"}}, 'auth: unexpected key "token"; did you mean "tokens"?'),
    ({"auth": {"tokens": "none.yaml"}}, "auth.tokens: {folder}/none.yaml: it does not exist"),
    ({"auth": {"tokens": "a", "identity": {}}}, "auth has tokens and identity, which contradict each other"),
    ({"auth": {"jwt": {"issuer": "https://id.example.com", "audience": "a"}}}, "auth.jwt: write jwks_url: URL"),
    ({"auth": {"identity": {"header": "X-User"}}}, "auth.identity.from is missing; write from:"),
    (
        {"auth": {"identity": {"header": "X-User", "from": ["10/8"]}}},
        'auth.identity.from has "10/8", expected addresses such as',
    ),
    ({"tls": {"cert": "server.pem"}}, "tls.key is missing"),
    (
        {"tls": {"cert": "server.pem", "key": "server.key"}},
        "tls.cert: {folder}/server.pem: it does not exist; create it",
    ),
    ({"guard": {"http": {"tls": {}}}}, "write tls beside guard"),
    ({"providers": [FILES | {"for": []}]}, "providers[0].for is empty, so nobody would know the source"),
    ({"providers": [FILES, FILES | {"for": 7}]}, "providers[1].for is 7, expected a list of scopes or groups"),
    (
        {"providers": [{"clock": None}, {"clock": None, "for": "a"}]},
        "providers[1].for: the URIs of entries of clock cannot",
    ),
    (
        {"providers": [FILES | {"for": "a"}], "guard": {"groups": {"file:**": "b"}}},
        "providers[0].for: guard.groups has",
    ),
    (
        {"auth": {"tokens": "${MCP_NONE_OF_THESE}"}},
        "auth.tokens: the variable MCP_NONE_OF_THESE is not set; set it, or",
    ),
    ({"tls": {"cert": {"file": "none"}}}, "tls.cert.file: {folder}/none: it does not exist"),
    ({"guard": {"audit": {"file": "a", "keep": 1}}}, "guard.audit.keep needs max_bytes"),
    (
        {"guard": {"audit": {"file": "a", "max_bytes": "1M"}}},
        'guard.audit.max_bytes is "1M", expected a number of bytes',
    ),
    (
        {"guard": {"http": {"trusted_proxies": ["10/8"]}}},
        'guard.http: trusted_proxies is "10/8", expected addresses such as',
    ),
    ({"guard": {"allow": "x:///{user}/**"}}, "there is no placeholder {{user}}; write {{principal}} or {{group}}"),
    ({"guard": {"deny": "x:///{group}*/a"}}, "may have no other placeholder and no wildcard"),
]


@pytest.mark.parametrize(("members", "text"), MISTAKES)
def test_wrong_files(run: Run, tmp_path: Path, project: Path, members: dict[str, object], text: str) -> None:
    """S-20: every wrong value names key, file and remedy, at the start and under `--check`."""
    path = config(tmp_path, **({"providers": [{"files": {"roots": "project"}}]} | members))
    for words in [["--check"], ["--http", "0"]]:
        refused = run("serve", "--config", str(path), *words)
        assert refused.returncode == 2, refused.stderr
        assert refused.stderr.startswith(f"error: {path}: "), refused.stderr
        assert text.format(folder=tmp_path) in refused.stderr
        assert refused.stdout == ""


def test_secrets_are_not_shown(run: Run, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S-20: a message has the reference to a value, never the value, whether it is right or wrong."""
    monkeypatch.setenv("MCP_TEST_PASSWORD", "hunter2-of-the-environment")
    (tmp_path / "secret").write_text("hunter2-of-the-file\n")
    for members in [
        {"title": {"a": "${MCP_TEST_PASSWORD}"}},
        {"providers": [{"files": {"roots": "/none/${MCP_TEST_PASSWORD}"}}]},
        {"providers": [{"files": {"roots": ["project", {"file": "secret"}]}}]},
        {"auth": {"jwt": {"issuer": {"file": "secret"}, "audience": "a", "jwks_url": "http://${MCP_TEST_PASSWORD}/"}}},
        {"tls": {"cert": {"file": "secret"}, "key": "${MCP_TEST_PASSWORD}"}},
        {"guard": {"rate": "${MCP_TEST_PASSWORD}"}},
        {"providers": [{"db": {"databases": {"x": {"url": "postgres://u:${MCP_TEST_PASSWORD}@127.0.0.1:1/x"}}}}]},
    ]:
        path = config(tmp_path, **({"providers": [FILES]} | members))
        refused = run("serve", "--config", str(path), "--check")
        assert refused.returncode in (1, 2), members
        assert "hunter2" not in refused.stderr + refused.stdout, refused.stderr
    path = config(tmp_path, title="${MCP_TEST_PASSWORD:-x}", instructions={"file": "secret"}, providers=[FILES])
    assert run("serve", "--config", str(path), "--check", "--as", "alice").returncode == 0


def test_groups_of_a_token(run: Run, tmp_path: Path) -> None:
    """S-20: `token new --group` writes them, and `token list` shows them."""
    new_token(run, "alice", "--group", "engineering", "--group", "on call")
    assert 'groups: ["engineering","on call"]' in (tmp_path / "tokens.yaml").read_text()
    assert "engineering, on call" in run("token", "list", "--file", "tokens.yaml").stdout
    assert run("token", "new", "bob", "--group", "", "--file", "tokens.yaml").returncode == 2


async def test_a_watch_ends_with_its_token(run: Run, serve: Start, team: Path, project: Path) -> None:
    """S-20: who lost the token is told nothing more, in an open subscription too."""
    alice, bob = new_token(run, "alice"), new_token(run, "bob")
    uri = "file:///project/README.md"
    with serve("--config", str(team), "--http", "0") as served:
        url = served.url()
        async with (
            client(url, alice) as hers,
            client(url, bob) as his,
            aclosing(hers.watch(uri)) as changes,
            aclosing(his.watch(uri)) as others,
        ):
            assert (await anext(changes)).contents
            assert (await anext(others)).contents
            assert run("token", "revoke", "alice", "--file", "tokens.yaml").returncode == 0
            end = time.monotonic() + PATIENCE
            while status(url, {"Authorization": f"Bearer {alice}"})[0] != 401:
                assert time.monotonic() < end
                time.sleep(0.1)
            (project / "README.md").write_text("# For bob\n")
            assert "For bob" in str((await anext(others)).contents)
            # Her client may try to come back, and gets nothing.
            with pytest.raises((McpError, TimeoutError)):
                await asyncio.wait_for(anext(changes), 2)


@pytest.mark.parametrize(
    ("begins", "ends", "said"),
    [(-20, -10, "has expired"), (10, 20, "is not valid yet"), (-10, 10, None)],
)
def test_the_dates_of_a_certificate(
    serve: Start, tmp_path: Path, project: Path, begins: int, ends: int, said: str | None
) -> None:
    """S-20: a certificate that clients refuse is warned of, and serving goes on."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    built = x509.CertificateBuilder(
        name, name, key.public_key(), 7, now + timedelta(days=begins), now + timedelta(days=ends)
    ).sign(key, hashes.SHA256())
    encoding = serialization.Encoding.PEM
    (tmp_path / "server.pem").write_bytes(built.public_bytes(encoding))
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (tmp_path / "server.key").write_bytes(key.private_bytes(encoding, *private))
    tls = {"cert": "server.pem", "key": "server.key"}
    file = config(tmp_path, providers=[{"files": {"roots": "project"}}], auth={"tokens": "tokens.yaml"}, tls=tls)
    (tmp_path / "tokens.yaml").write_text("[]")
    (tmp_path / "tokens.yaml").chmod(0o600)
    with serve("--config", str(file), "--http", "0") as served:
        if said is not None:
            assert said in served.wait_for("tls.cert: ")
        assert served.url().startswith("https://")


def test_keys_that_cannot_be_fetched(serve: Start, tmp_path: Path, project: Path) -> None:
    """S-20: said once, while each request with a token is refused as one that cannot be verified now."""
    with reserved_port() as port:
        jwks = f"https://127.0.0.1:{port}/keys"
        jwt = {"issuer": "https://id.example.com", "audience": "https://mcp.example.com/mcp", "jwks_url": jwks}
        file = config(tmp_path, providers=[{"files": {"roots": "project"}}], auth={"jwt": jwt})
        with serve("--config", str(file), "--http", "0") as served:
            url = served.url()
            for _ in range(3):
                assert status(url, {"Authorization": f"Bearer {token()}"})[0] == 503
            assert jwks in served.wait_for("cannot be fetched")
            served.end()
            served.reader.join(PATIENCE)
            assert not [line for line in served.said if "cannot be fetched" in line]
