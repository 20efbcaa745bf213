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

    def __init__(self, bin: Path, folder: Path, user: str | None, port: int) -> None:
        self.port = port
        self._bin, self._data, self._user = bin, folder / "data", user
        self._socket = folder
        password = folder / "password"
        password.write_text(PASSWORD, "utf-8")
        if user is not None:
            shutil.chown(folder, user)
            shutil.chown(password, user)
        arguments = ["--username=shop", f"--pwfile={password}", "--auth=scram-sha-256", "--encoding=UTF8", "--no-sync"]
        self._run("initdb", f"--pgdata={self._data}", *arguments, "--locale=C")
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"postgres://shop:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        command = [f"{self._bin}/postgres", "-D", f"{self._data}", "-p", str(self.port), "-k", f"{self._socket}", "-F"]
        log = (self._socket / "log").open("ab")
        self.process = subprocess.Popen(
            [*command, "-c", "listen_addresses=127.0.0.1"], stdout=log, stderr=log, user=self._user, cwd="/"
        )
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
            self.url,
            "-c",
            sql,
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def _run(self, program: str, *arguments: str) -> None:
        command = [self._bin / program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, user=self._user, cwd="/", check=False)
        assert done.returncode == 0, done.stderr


@contextmanager
def postgres() -> Iterator[Postgres]:
    """Postgres refuses to run as root: then it runs as another user of this machine."""
    bin = binaries()
    assert bin is not None, ABSENT
    user = None if os.getuid() else "postgres" if _is_user("postgres") else "nobody"
    folder = Path(tempfile.mkdtemp(prefix="mcp-postgres-"))
    folder.chmod(0o755)
    try:
        # Postgres cannot say which port it was given.
        with reserved_port() as port:
            server = Postgres(bin, folder, user, port)
            try:
                yield server
            finally:
                server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_user(name: str) -> bool:
    return any(line.startswith(f"{name}:") for line in Path("/etc/passwd").read_text("utf-8").splitlines())
