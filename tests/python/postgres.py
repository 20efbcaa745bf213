"""A Postgres server of a test's own: started on a port of this machine, stopped by its process, its folder removed."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ports import reserved_port

ABSENT = "Postgres is not installed"
"""The reason of the tests that are left out without it; `.ci/run` installs it."""
PASSWORD = "hunter2-canary"
PATIENCE = 60.0


def binaries() -> Path | None:
    """Where the server's programs are: Debian keeps them out of the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    initdb = shutil.which("initdb")
    return Path(initdb).resolve().parent if initdb else None


class Postgres:
    """A running server, with the database `postgres` and the user `shop`, who has a password."""

    def __init__(self, bin: Path, folder: Path, user: str | None, port: int, certificates: Path | None) -> None:
        self.port = port
        self._bin, self._data, self._user = bin, folder / "data", user
        self._options = [f"listen_addresses={'localhost' if certificates else '127.0.0.1'}"]
        self._socket = folder
        password = folder / "password"
        password.write_text(PASSWORD, "utf-8")
        if user is not None:
            shutil.chown(folder, user)
            shutil.chown(password, user)
        arguments = ["--username=shop", f"--pwfile={password}", "--auth=scram-sha-256", "--encoding=UTF8", "--no-sync"]
        self._run("initdb", f"--pgdata={self._data}", *arguments, "--locale=C")
        if certificates is not None:
            self._encrypt(certificates)
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def _encrypt(self, certificates: Path) -> None:
        """Lets in: `shop` over TLS alone, and `card` with a certificate alone. What tests run comes by the socket."""
        self._data.chmod(0o700)
        for name in ("server.crt", "server.key", "ca.crt"):
            copy = self._data / name
            shutil.copy(certificates / name, copy)
            copy.chmod(0o600)
            if self._user is not None:
                shutil.chown(copy, self._user)
        rules = ["local all all scram-sha-256", "hostssl all card all cert", "hostssl all shop all scram-sha-256"]
        (self._data / "pg_hba.conf").write_text("\n".join([*rules, "host all plain all trust", ""]), "utf-8")
        self._options += ["ssl=on", "ssl_ca_file=ca.crt"]

    @property
    def url(self) -> str:
        return f"postgres://shop:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        command = [f"{self._bin}/postgres", "-D", f"{self._data}", "-p", str(self.port), "-k", f"{self._socket}", "-F"]
        log = (self._socket / "log").open("ab")
        options = [word for option in self._options for word in ("-c", option)]
        self.process = subprocess.Popen([*command, *options], stdout=log, stderr=log, user=self._user, cwd="/")
        log.close()
        deadline = time.monotonic() + PATIENCE
        while self._psql("SELECT 1").returncode != 0:
            assert time.monotonic() < deadline, (self._socket / "log").read_text("utf-8")
            time.sleep(0.05)

    def stop(self) -> None:
        """Ends the server at once, as its clients see it."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(PATIENCE)
            self.process = None

    def run(self, sql: str) -> None:
        """Runs statements in a process of their own."""
        done = self._psql(sql)
        assert done.returncode == 0, done.stderr

    def value(self, sql: str) -> str:
        """The one value that a query in a process of its own gives."""
        done = self._psql(sql, "-At")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def _psql(self, sql: str, *options: str) -> "subprocess.CompletedProcess[str]":
        psql = self._bin / "psql"
        command = [
            str(psql) if psql.exists() else "psql",
            "-X",
            "-q",
            *options,
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            f"postgres://shop:{PASSWORD}@/postgres?host={self._socket}&port={self.port}",
            "-c",
            sql,
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def _run(self, program: str, *arguments: str) -> None:
        command = [self._bin / program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, user=self._user, cwd="/", check=False)
        assert done.returncode == 0, done.stderr


def make_certificates(folder: Path) -> Path:
    """An authority, a server's certificate for localhost, one for the user card, and an authority that signed none."""
    key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    for name in ("ca", "other"):
        _openssl(folder, f"req -x509 {key} -days 2 -subj /CN={name} -keyout {name}.key -out {name}.crt")
    for name, subject, extension in [
        ("server", "localhost", "subjectAltName=DNS:localhost"),
        ("client", "card", "keyUsage=digitalSignature"),
    ]:
        (folder / "extensions").write_text(extension, "utf-8")
        _openssl(folder, f"req {key} -subj /CN={subject} -keyout {name}.key -out {name}.csr")
        signed = f"-CA ca.crt -CAkey ca.key -CAcreateserial -extfile extensions -out {name}.crt"
        _openssl(folder, f"x509 -req -days 2 -in {name}.csr {signed}")
    return folder


def _openssl(folder: Path, words: str) -> None:
    subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True)


@contextmanager
def postgres(certificates: Path | None = None) -> Iterator[Postgres]:
    """Postgres refuses to run as root: then it runs as another user of this machine.

    With `certificates`, as `make_certificates` writes them, it has TLS.
    """
    bin = binaries()
    assert bin is not None, ABSENT
    user = None if os.getuid() else "postgres" if _is_user("postgres") else "nobody"
    folder = Path(tempfile.mkdtemp(prefix="mcp-postgres-"))
    folder.chmod(0o755)
    try:
        # Postgres cannot say which port it was given.
        with reserved_port() as port:
            server = Postgres(bin, folder, user, port, certificates)
            try:
                yield server
            finally:
                server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_user(name: str) -> bool:
    return any(line.startswith(f"{name}:") for line in Path("/etc/passwd").read_text("utf-8").splitlines())
