"""A Postgres server that is reached over TLS, and one that a managed service stops, cuts and fails over."""

import json
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from postgres import ABSENT, PASSWORD, Postgres, make_certificates, postgres
from process import Server, eventually, refused_at_start, running
from test_db import HAS_POSTGRES, SCHEMA, config, triggers

OPENSSL = shutil.which("openssl")
pytestmark = [
    pytest.mark.skipif(not HAS_POSTGRES, reason=ABSENT),
    pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed"),
]
ADA = {"id": 1, "name": "Ada", "city": "London"}
URI = "db:///shop/customers/1"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server(certificates: Path) -> Iterator[Postgres]:
    with postgres(certificates) as running:
        running.run(SCHEMA)
        for role in ("card", "plain"):
            running.run(f"CREATE ROLE {role} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
        yield running


def url(server: Postgres, host: str = "localhost", user: str = f"shop:{PASSWORD}", query: str = "") -> str:
    return f"postgres://{user}@{host}:{server.port}/postgres{query}"


def declared(folder: Path, url: str, **options: object) -> Path:
    """A file for `serve --config` with one table."""
    database = {"url": url, "tables": ["customers"], "columns_deny": ["password"], "poll": "50ms", **options}
    file = folder / "resources.json"
    file.write_text(json.dumps({"name": "shop", "providers": [{"db": {"databases": {"shop": database}}}]}), "utf-8")
    return file


def row(served: Server, number: int) -> Any:
    answer = served.ask(number, "resources/read", {"uri": URI})
    return json.loads(answer["result"]["contents"][0]["text"]) if "result" in answer else answer["error"]


def encrypted(server: Postgres, user: str) -> str:
    """Whether the connections of a user are encrypted, and by which client certificate they are known."""
    return server.value(
        "SELECT string_agg(DISTINCT ssl || ' ' || coalesce(client_dn, '-'), ',') FROM pg_stat_ssl s"
        f" JOIN pg_stat_activity a USING (pid) WHERE usename = '{user}' AND application_name = 'mcp-resources'"
    )


@pytest.mark.parametrize("written", ["options", "url"])
@pytest.mark.parametrize("mode", ["verify-full", "verify-ca", "require"])
def test_verified_connections(
    program: Path, tmp_path: Path, server: Postgres, certificates: Path, mode: str, written: str
) -> None:
    """S-20: a certificate of the named authority is accepted; paths begin at the folder of the file."""
    shutil.copy(certificates / "ca.crt", tmp_path / "ca.crt")
    if written == "url":
        file = declared(tmp_path, url(server, query=f"?sslmode={mode}&sslrootcert=ca.crt&channel_binding=require"))
    else:
        file = declared(tmp_path, url(server), sslmode=mode, sslrootcert="ca.crt")
    with running([str(program), "serve", "--config", str(file)]) as served:
        assert row(served, 1) == ADA
        assert encrypted(server, "shop") == "true -"


@pytest.mark.parametrize(
    ("host", "options", "said"),
    [
        (
            "127.0.0.1",
            {"sslmode": "verify-full", "sslrootcert": "ca.crt"},
            "the server's certificate is not for \"127.0.0.1\"; write the host's name as the certificate has it",
        ),
        (
            "localhost",
            {"sslmode": "verify-full", "sslrootcert": "other.crt"},
            "is not from an authority in {}/other.crt",
        ),
        ("localhost", {"sslmode": "verify-full"}, "is not from an authority that this system trusts; name the file"),
        ("localhost", {"sslmode": "verify-ca", "sslrootcert": "other.crt"}, "is not from an authority in {}/other.crt"),
        ("localhost", {"sslmode": "require", "sslrootcert": "other.crt"}, "is not from an authority in {}/other.crt"),
        ("localhost", {"sslmode": "verify-ca"}, "has sslmode=verify-ca without a file of authorities"),
        ("localhost", {"sslmode": "disable"}, "write the right user and password in `url`"),
        ("localhost", {"sslmode": "tls"}, 'sslmode is "tls", expected disable, allow, prefer, require, verify-ca or'),
        (
            "localhost",
            {"sslmode": "require", "sslrootcert": "none.crt"},
            "sslrootcert {}/none.crt: expected certificates",
        ),
        ("localhost", {"sslmode": "require", "sslrootcert": "ca.key"}, "sslrootcert {}/ca.key: expected certificates"),
        ("localhost", {"sslmode": "require", "sslcert": "client.crt"}, "name the file of the key with sslkey"),
        (
            "localhost",
            {"sslmode": "require", "sslcert": "client.crt", "sslkey": "server.key"},
            "sslkey {}/server.key: expected the private key of the certificate in sslcert",
        ),
        (
            "localhost",
            {"sslmode": "require", "sslcert": "client.crt", "sslkey": "open.key"},
            "sslkey {}/open.key: others can read the private key (mode 0644); write chmod 600",
        ),
    ],
)
def test_what_is_not_trusted_is_refused(
    program: Path, tmp_path: Path, server: Postgres, certificates: Path, host: str, options: dict[str, str], said: str
) -> None:
    """S-20: at the start, with the fix and without the password."""
    for file in certificates.iterdir():
        shutil.copy(file, tmp_path)
    shutil.copy(certificates / "client.key", tmp_path / "open.key")
    (tmp_path / "open.key").chmod(0o644)
    file = declared(tmp_path, url(server, host), **options)
    error = refused_at_start(program, "--config", str(file), at=tmp_path)
    assert said.format(tmp_path) in error
    assert PASSWORD not in error


@pytest.mark.parametrize(
    ("user", "mode", "is_encrypted"),
    [
        (f"shop:{PASSWORD}", "require", "true -"),
        (f"shop:{PASSWORD}", "prefer", "true -"),
        (f"shop:{PASSWORD}", "allow", "true -"),
        (f"shop:{PASSWORD}", None, "true -"),
        ("plain", "allow", "false -"),
        ("plain", "disable", "false -"),
        ("plain", "prefer", "true -"),
    ],
)
def test_encryption_without_authorities(
    program: Path, tmp_path: Path, server: Postgres, user: str, mode: str | None, is_encrypted: str
) -> None:
    """S-20: `require` takes any certificate, `prefer` is the default, and `allow` encrypts when it has to."""
    file = declared(tmp_path, url(server, "127.0.0.1", user), **({"sslmode": mode} if mode else {}))
    with running([str(program), "serve", "--config", str(file)]) as served:
        assert row(served, 1) == ADA
        assert encrypted(server, user.split(":")[0]) == is_encrypted


def test_a_client_certificate(program: Path, tmp_path: Path, server: Postgres, certificates: Path) -> None:
    """S-20: the server knows its client by a certificate; without one it says what it wants."""
    for name in ("client.crt", "client.key", "ca.crt"):
        shutil.copy(certificates / name, tmp_path)
    (tmp_path / "client.key").chmod(0o600)
    verified = {"sslmode": "verify-full", "sslrootcert": "ca.crt"}
    file = declared(tmp_path, url(server, user="card"), **verified, sslcert="client.crt", sslkey="client.key")
    with running([str(program), "serve", "--config", str(file)]) as served:
        assert row(served, 1) == ADA
        assert encrypted(server, "card") == "true /CN=card"
    error = refused_at_start(
        program, "--config", str(declared(tmp_path, url(server, user="card"), **verified)), at=tmp_path
    )
    assert "connection requires a valid client certificate" in error
    assert "sslcert" in error


def test_a_server_without_tls(program: Path, tmp_path: Path) -> None:
    """S-20: `require` is refused there, `prefer` goes on without."""
    with postgres() as server:
        server.run(SCHEMA)
        file = declared(tmp_path, server.url, sslmode="require")
        error = refused_at_start(program, "--config", str(file), at=tmp_path)
        assert "the server has no TLS; set `ssl = on` there, or write another sslmode than require" in error
        with running([str(program), "serve", "--config", str(declared(tmp_path, server.url))]) as served:
            assert row(served, 1) == ADA


def test_a_restart_between_two_reads(program: Path, tmp_path: Path, server: Postgres, certificates: Path) -> None:
    """S-20: a read after the server was killed and has come back succeeds at once, over TLS."""
    shutil.copy(certificates / "ca.crt", tmp_path / "ca.crt")
    file = declared(tmp_path, url(server), sslmode="verify-full", sslrootcert="ca.crt")
    with running([str(program), "serve", "--config", str(file)]) as served:
        assert row(served, 1) == ADA
        assert server.process is not None
        server.process.kill()
        server.process.wait()
        server.start()
        assert row(served, 2) == ADA
        assert encrypted(server, "shop") == "true -"
        served.end_input()
        assert served.wait() == 0
        assert served.errors == b""


def test_connections_are_ended_while_a_client_watches(
    program: Path, tmp_path: Path, server: Postgres, certificates: Path
) -> None:
    """S-20: an administrator ends all of our connections, again and again: no read fails, and no change is missed."""
    shutil.copy(certificates / "ca.crt", tmp_path / "ca.crt")
    file = config(tmp_path, url(server, query="?sslmode=verify-full&sslrootcert=ca.crt"))
    triggers(program, file, server.run)
    ours = "FROM pg_stat_activity WHERE application_name = 'mcp-resources'"
    with running([str(program), "serve", "--config", str(file)]) as served:
        assert row(served, 1) == ADA
        served.modern(2, "subscriptions/listen", {"notifications": {"resourceSubscriptions": [URI]}})
        assert (served.next() or {})["method"] == "notifications/subscriptions/acknowledged"
        assert eventually(lambda: server.value(f"SELECT count(*) {ours}") == "2")
        for round in range(5):
            server.run(f"SELECT pg_terminate_backend(pid) {ours}")
            # What may have been missed is reported.
            assert (served.next() or {})["params"]["uri"] == URI
            assert row(served, 10 + round) == ADA
        server.run("UPDATE customers SET name = 'Eve' WHERE id = 1")
        assert (served.next() or {})["params"]["uri"] == URI
        server.run("UPDATE customers SET name = 'Ada' WHERE id = 1")
        assert (served.next() or {})["params"]["uri"] == URI


def test_a_fault_is_logged_once(program: Path, tmp_path: Path) -> None:
    """S-20: reads of a server that is down are refused at once and logged once, and so is its return."""
    with postgres() as server:
        server.run(SCHEMA)
        with running([str(program), "serve", "--config", str(declared(tmp_path, server.url))]) as served:
            assert row(served, 1) == ADA
            server.stop()
            for number in range(2, 40):
                assert row(served, number)["code"] == -32603
            server.start()
            assert eventually(lambda: row(served, time.monotonic_ns()) == ADA)
            served.end_input()
            assert served.wait() == 0
            assert served.errors.count(b"cannot be connected to") == 1
            assert served.errors.count(b"shop: it answers again") == 1


def test_connections_have_a_limit(program: Path, tmp_path: Path, server: Postgres) -> None:
    """S-20: many reads at a time share as many connections as are allowed."""
    view = {"slow": "SELECT pg_sleep(0.05)::text AS x, :n::int AS n"}
    file = declared(tmp_path, url(server), connections=2, views=view)
    ours = "FROM pg_stat_activity WHERE application_name = 'mcp-resources'"
    with running([str(program), "serve", "--config", str(file)]) as served:
        for number in range(1, 41):
            served.modern(number, "resources/read", {"uri": f"db:///shop/query/slow?n={number}"})
        assert eventually(lambda: server.value(f"SELECT count(*) {ours}") != "0")
        for _ in range(40):
            assert "result" in (served.next() or {})
            assert server.value(f"SELECT count(*) <= 2 AND count(*) > 0 {ours}") == "t"


def test_a_path_that_goes_silent(program: Path, tmp_path: Path, server: Postgres) -> None:
    """S-20: a firewall that forgets an idle connection without a word: the next read connects again."""
    with relayed(server.port) as relay:
        file = declared(tmp_path, f"postgres://shop:{PASSWORD}@127.0.0.1:{relay.port}/postgres")
        with running([str(program), "serve", "--config", str(file)]) as served:
            assert row(served, 1) == ADA
            relay.forget()
            time.sleep(11)
            began = time.monotonic()
            assert row(served, 2) == ADA
            assert time.monotonic() - began < 20


class Relay:
    """Passes bytes between clients and a server, and can stop doing so for the connections that exist."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._era = 0
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def forget(self) -> None:
        self._era += 1

    def close(self) -> None:
        for one in [self._listener, *self._open]:
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            self._open += [client, server]
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(*pair, self._era), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, era: int) -> None:
        try:
            while data := source.recv(65536):
                if era == self._era:
                    target.sendall(data)
        except OSError:
            return


@contextmanager
def relayed(target: int) -> Iterator[Relay]:
    relay = Relay(target)
    try:
        yield relay
    finally:
        relay.close()
