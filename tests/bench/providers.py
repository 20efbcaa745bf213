#!/usr/bin/env python3
"""W27 and W28: providers of `mcp-resources serve` with real amounts: cold start, memory at rest, and work while idle.

    .venv/bin/python tests/bench/providers.py [--command COMMAND] [--driver DRIVER] [--quick] [--rounds N]
        [--workloads W27-git,W28] [--output FILE]

Prints the figures, and appends them to FILE as the driver writes its rounds, for `tests/bench/report`. The material is
generated under `target/bench` and is the same each time; DRIVER makes the history of W23 and the pages of W11. This
process and the servers share one core, as with the driver.

A start is cold for the server only: the files are in the cache of the system, because they were made or read before.
"""

import argparse
import http.client
import json
import os
import re
import select
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

from bus import put
from bus import request as listen_request
from listeners import modern
from ports import HOST

Figures = dict[str, float]
Row = dict[str, Any]

BENCH = Path("target/bench")
HISTORY = BENCH / "history"
HANDBOOK = BENCH / "docs" / "handbook"
FOLDER = BENCH / "providers"
"""What this program makes: a working tree of the history, a folder of files, a database, and the configurations."""

CHANGED = "t/t0000-basic.sh"
"""A file of the history that is read at HEAD."""
CHANGED_BYTES = 40
WORD = "backup"
"""The word that is searched. Most pages do not have it."""
EACH = 100
"""Files in each directory."""
PATIENCE = 120.0
"""The longest wait for an answer, in seconds."""
SETTLE = 15.0
"""Seconds until a server does nothing more: `docs` follows changes for ten seconds after the last request."""


@dataclass(frozen=True)
class Size:
    """How much is served, and how long servers rest. The driver has the number of commits."""

    pages: str
    directories: int
    rest: float
    idle: float


FULL = Size(pages="**", directories=1_000, rest=5, idle=60)
QUICK = Size(pages="d0*/**", directories=50, rest=1, idle=10)


class Server:
    """A process of the command, which is spoken to over its pipes. `begun` is the time just before its start."""

    def __init__(self, command: str, words: list[str]) -> None:
        self._errors = os.memfd_create("errors")
        pipe = subprocess.PIPE
        self.begun = time.perf_counter()
        self.process = subprocess.Popen([command, "serve", *words], stdin=pipe, stdout=pipe, stderr=self._errors)
        self._rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
        os.close(self._errors)

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request, or the acknowledgement of a listen."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(modern(method, params)).encode() + b"\n")
        self.process.stdin.flush()
        while True:
            message = json.loads(self._line())
            if "error" in message:
                raise RuntimeError(f"{method}: {message['error']['message']}")
            if "result" in message:
                return dict(message["result"])
            if message["method"].endswith("subscriptions/acknowledged"):
                return {}

    def read(self, uri: str) -> str:
        """The text of a resource."""
        (contents,) = self.ask("resources/read", {"uri": uri})["contents"]
        return str(contents["text"])

    def watch(self, uri: str) -> None:
        """Subscribes to a resource, until the process ends."""
        self.ask("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}})

    def since_start(self) -> float:
        """Milliseconds since the process was started."""
        return (time.perf_counter() - self.begun) * 1_000

    def cpu_ms(self) -> float:
        """The processor time of all threads, by the clock of the process (`clock_getcpuclockid`)."""
        return time.clock_gettime((~self.process.pid << 3) | 2) * 1_000

    def switches(self) -> int:
        """How often its threads stopped to run: because they had to wait, or were preempted."""
        found = 0
        for status in Path(f"/proc/{self.process.pid}/task").glob("*/status"):
            found += sum(int(count) for count in re.findall(r"ctxt_switches:\s+(\d+)", status.read_text("utf-8")))
        return found

    def memory(self) -> Figures:
        """What the process holds now, and at most held."""
        rollup = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text("utf-8")
        status = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        return {
            "rss_kib": _kib(rollup, "Rss"),
            "pss_kib": _kib(rollup, "Pss"),
            "peak_mib": _kib(status, "VmHWM") / 1_024,
        }

    def errors(self) -> str:
        """What it has written to standard error."""
        return os.pread(self._errors, 1 << 20, 0).decode("utf-8", "replace")

    def _line(self) -> bytes:
        assert self.process.stdout is not None
        chunks = [self._rest]
        end = time.monotonic() + PATIENCE
        while b"\n" not in chunks[-1]:
            if not select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"no answer within {PATIENCE:g} s: {self.errors()}")
            chunk = os.read(self.process.stdout.fileno(), 1 << 20)
            if not chunk:
                raise RuntimeError(f"the server ended: {self.errors()}")
            chunks.append(chunk)
        line, _, self._rest = b"".join(chunks).partition(b"\n")
        return line


def _kib(text: str, name: str) -> float:
    found = re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"the kernel does not say {name}")
    return float(found[1])


class HttpServer(Server):
    """The same over HTTP on a free port; a listen is a connection of its own."""

    def __init__(self, command: str, words: list[str]) -> None:
        super().__init__(command, [*words, "--http", f"{HOST}:0"])
        self._stack = ExitStack()
        end = time.monotonic() + PATIENCE
        while not (found := re.search(r"serving at http://[^/]*:(\d+)/", self.errors())):
            if self.process.poll() is not None or time.monotonic() > end:
                said = self.errors()
                self.__exit__()
                raise RuntimeError(f"the server does not serve: {said}")
            time.sleep(0.01)
        self.port = int(found[1])

    def __exit__(self, *given: object) -> None:
        self._stack.close()
        super().__exit__(*given)

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        # The connection ends with the answer: none is open when a server is idle without a listener.
        request = modern(method, params)
        name = params.get("uri")
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
            "Mcp-Method": method,
        } | ({"Mcp-Name": name} if name else {})
        connection = http.client.HTTPConnection(HOST, self.port, timeout=PATIENCE)
        with closing(connection):
            connection.request("POST", "/mcp", json.dumps(request), headers)
            text = connection.getresponse().read().decode()
        data = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
        message = json.loads(data[-1] if data else text)
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']['message']}")
        return dict(message["result"])

    def watch(self, uri: str) -> None:
        connection = self._stack.enter_context(socket.create_connection((HOST, self.port), PATIENCE))
        connection.sendall(listen_request(self.port, uri))
        heard = b""
        while b"subscriptions/acknowledged" not in heard:
            chunk = connection.recv(1 << 16)
            if not chunk:
                raise RuntimeError(f"the listen ended: {heard!r}")
            heard += chunk


class Materials:
    """What is served, made unless it is there as it is made now."""

    def __init__(self, driver: Path, size: Size, *, is_quick: bool) -> None:
        made = [str(driver), "--make", "W11,W23-log", *(["--quick"] if is_quick else [])]
        subprocess.run(made, check=True)
        FOLDER.mkdir(parents=True, exist_ok=True)
        self.size = size
        self.tree = self._working_tree()
        self.files = self._files()
        self.database = self._database()
        self.words = {
            "files": self._config("files", {"roots": {"nested": "nested"}, "list_max": 200_000}),
            "git": [f"git:project={self.tree}"],
            "docs": self._config("docs", {"sites": {"handbook": "../docs/handbook"}, "include": [size.pages]}),
            "db": [f"db:shop=sqlite:{self.database},items"],
        }

    @property
    def listed(self) -> int:
        """How many files of the folder are listed."""
        return self.size.directories * EACH + self.packages

    @property
    def packages(self) -> int:
        return self.size.directories // 10

    @property
    def ignore_files(self) -> int:
        """Files of rules: one at the root, and two in each package."""
        return 1 + 2 * self.packages

    def _config(self, kind: str, options: dict[str, Any]) -> list[str]:
        file = FOLDER / f"{kind}.json"
        config = {"providers": [{kind: options}], "guard": {"limits": {"page": 1_000}}}
        file.write_text(json.dumps(config), "utf-8")
        return ["--config", str(file)]

    def _made(self, name: str, version: str, make: Callable[[Path], None]) -> Path:
        folder, ready = FOLDER / name, FOLDER / f"{name}.ready"
        if not ready.exists() or ready.read_text("utf-8") != version:
            ready.unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            ready.write_text(version, "utf-8")
        return folder

    def _working_tree(self) -> Path:
        def make(folder: Path) -> None:
            git(Path(), "clone", "-q", str(HISTORY), str(folder))

        return self._made("history", HISTORY.with_suffix(".ready").read_text("utf-8"), make)

    def _files(self) -> Path:
        """Packages with ten directories each: rules at the root, in each package and in a directory of it.

        A fifth of all files is ignored, and one file of each package is taken in again.
        """

        def make(folder: Path) -> None:
            folder.mkdir()
            git(folder, "init", "-q")
            (folder / ".gitignore").write_text("node_modules/\ntarget/\n__pycache__/\n*.log\n*.tmp\n/dist\n", "utf-8")
            for number in range(self.packages):
                self._package(folder / f"p{number:03}")

        return self._made("nested", f"1: {self.size.directories} directories of {EACH} files\n", make)

    def _package(self, package: Path) -> None:
        names = [f"d{at}/f{file:02}.txt" for at in range(10) for file in range(EACH)]
        names += [f"d{at}/{name}" for at in range(10) for name in ("run.log", "a.gen", "b.tmp", "cache-1", "cache-2")]
        names += [f"node_modules/m{at}/f{file}.js" for at in range(10) for file in range(10)]
        names += [f"out/f{file:02}.o" for file in range(EACH)] + ["d0/keep.gen"]
        for folder in sorted({Path(name).parent for name in names}):
            (package / folder).mkdir(parents=True, exist_ok=True)
        for name in names:
            (package / name).touch()
        (package / ".gitignore").write_text("/out/\n*.gen\n!keep.gen\n/d[1-9]/cache-*\n", "utf-8")
        (package / "d0" / ".gitignore").write_text("cache-*\n", "utf-8")

    def _database(self) -> Path:
        def make(file: Path) -> None:
            file.unlink(missing_ok=True)
            with closing(sqlite3.connect(file)) as shop:
                shop.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL, amount INTEGER)")
                shop.executemany(
                    "INSERT INTO items VALUES (?, ?, ?)", ((n, f"item {n}", n % 97) for n in range(20_000))
                )
                shop.commit()

        return self._made("shop.db", "1: 20,000 rows\n", make).resolve()


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, env=WITHOUT_CONFIGURATION, check=True)


WITHOUT_CONFIGURATION = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


@dataclass(frozen=True)
class Ran:
    """A program that ran once: its output, and what that took."""

    text: str
    first_ms: float
    whole_ms: float
    cpu_ms: float


def ran(*words: str | Path, at: Path | None = None) -> Ran:
    begun = time.perf_counter()
    process = subprocess.Popen(words, cwd=at, stdout=subprocess.PIPE, env=WITHOUT_CONFIGURATION)
    assert process.stdout is not None
    text = os.read(process.stdout.fileno(), 1 << 16)
    first = time.perf_counter() - begun
    text += process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    whole = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode:
        raise RuntimeError(f"{words[0]} ended with status {process.returncode}")
    cpu = used.ru_utime + used.ru_stime
    return Ran(text.decode(), first * 1_000, whole * 1_000, cpu * 1_000)


def check(*, is_right: bool, what: str) -> None:
    """Raises RuntimeError for an answer that is not the expected one, so that the row shows it."""
    if not is_right:
        raise RuntimeError(f"wrong answer: {what}")


class Measured:
    """The workloads of one command."""

    def __init__(self, command: str, materials: Materials) -> None:
        self.command, self.materials, self.size = command, materials, materials.size

    def start(self, kind: str) -> Server:
        return Server(self.command, self.materials.words[kind])

    def rested(self, server: Server) -> Figures:
        time.sleep(self.size.rest)
        return server.memory()

    def git(self) -> Figures:
        """Each first answer is that of a process of its own; the memory is of the last, which has then answered all."""
        figures: Figures = {"cpu_ms": 0.0}
        uris = {"log": LOG, "blob": BLOB, "status": STATUS}
        for name, uri in uris.items():
            with self.start("git") as server:
                text = server.read(uri)
                figures[f"{name}_ms"] = server.since_start()
                figures["cpu_ms"] += server.cpu_ms()
                check_git(name, text)
                if name == "status":
                    for other in (LOG, BLOB):
                        server.read(other)
                    figures |= self.rested(server)
        return figures

    def git_itself(self) -> Figures:
        """A process of git for each answer."""
        tree = ["git", "-C", str(self.materials.tree)]
        log = ran(*tree, "log", "-100", "--format=%H %P %an %ae %aI %s")
        check(is_right=log.text.count("\n") == 100, what="git log")
        blob = ran(*tree, "show", f"HEAD:{CHANGED}")
        check(is_right=len(blob.text) == CHANGED_BYTES, what="git show")
        status = ran(*tree, "status", "--porcelain")
        check(is_right=not status.text, what="git status")
        return {
            "log_ms": log.whole_ms,
            "blob_ms": blob.whole_ms,
            "status_ms": status.whole_ms,
            "cpu_ms": log.cpu_ms + blob.cpu_ms + status.cpu_ms,
        }

    def docs(self) -> Figures:
        """A search waits some seconds for the index; it is repeated until the index is whole."""
        with self.start("docs") as server:
            text = server.read(SEARCH)
            first = server.since_start()
            while '"incomplete":true' in text:
                time.sleep(0.02)
                text = server.read(SEARCH)
            figures = {"search_ms": first, "index_ms": server.since_start(), "cpu_ms": server.cpu_ms()}
            check(is_right='"uri"' in text, what=text[:200])
            return figures | self.rested(server)

    def pages_by_rg(self) -> Figures:
        words = ("rg", "--files-with-matches", "--word-regexp", "--glob", self.size.pages, WORD)
        found = ran(*words, at=HANDBOOK)
        check(is_right=bool(found.text), what="rg finds nothing")
        return {"search_ms": found.whole_ms, "cpu_ms": found.cpu_ms}

    def files(self) -> Figures:
        with self.start("files") as server:
            cursor: dict[str, str] = {}
            first, listed = 0.0, 0
            while True:
                page = server.ask("resources/list", cursor)
                first = first or server.since_start()
                uris = [item["uri"] for item in page["resources"]]
                listed += sum(uri.startswith("file:///nested/p") and not uri.endswith("/") for uri in uris)
                if "nextCursor" not in page:
                    break
                cursor = {"cursor": page["nextCursor"]}
            figures = {"first_ms": first, "whole_ms": server.since_start(), "cpu_ms": server.cpu_ms()}
            check(is_right=listed == self.materials.listed, what=f"{listed} files, not {self.materials.listed}")
            return figures | self.rested(server)

    def files_by_rg(self) -> Figures:
        return self._files_by("rg", self.materials.listed, "rg", "--files", self.materials.files)

    def files_by_git(self) -> Figures:
        # It lists files of rules too, which are hidden for the others.
        expected = self.materials.listed + self.materials.ignore_files
        words = ("git", "-C", self.materials.files, "ls-files", "--others", "--exclude-standard")
        return self._files_by("git ls-files", expected, *words)

    def _files_by(self, name: str, expected: int, *words: str | Path) -> Figures:
        found = ran(*words)
        lines = found.text.count("\n")
        check(is_right=lines == expected, what=f"{name}: {lines} files, not {expected}")
        return {
            "first_ms": found.first_ms,
            "whole_ms": found.whole_ms,
            "cpu_ms": found.cpu_ms,
        }


LOG = "git:///project/log?n=100"
BLOB = f"git:///project/blob/HEAD/{CHANGED}"
STATUS = "git:///project/status"
SEARCH = f"docs:///handbook/search?q={WORD}"


def check_git(name: str, text: str) -> None:
    is_right = {
        "log": lambda: len(json.loads(text)["commits"]) == 100,
        "blob": lambda: len(text) == CHANGED_BYTES,
        "status": lambda: json.loads(text)["clean"] is True,
    }
    check(is_right=is_right[name](), what=f"{name}: {text[:200]}")


USED = {
    "files": ("file:///nested/p000/d0/f00.txt", "file:///nested/p000/d0/f00.txt"),
    "git": (LOG, LOG),
    "docs": (SEARCH, "docs:///handbook/d00/p00.md"),
    "db": ("db:///shop/items/1", "db:///shop/items/1"),
}
"""The URI that is read of each provider before it rests, and the one that is subscribed to."""


class Idle:
    """Servers without requests: of each provider one without subscriptions, and one with one."""

    def __init__(self, command: str, materials: Materials, stack: ExitStack) -> None:
        self.seconds = materials.size.idle
        self.servers: dict[tuple[str, str], Server] = {}
        for kind, (read, watched) in USED.items():
            for way, make in (("stdio", Server), ("HTTP", HttpServer)):
                for state in ("alone", "watched"):
                    server = stack.enter_context(make(command, materials.words[kind]))
                    while '"incomplete":true' in server.read(read):
                        time.sleep(0.02)
                    if state == "watched":
                        server.watch(watched)
                    self.servers[f"{kind}, {way}", state] = server
        time.sleep(SETTLE)

    def measure(self) -> dict[str, Figures]:
        """The figures of each row, for a minute."""
        before = {key: (server.switches(), server.cpu_ms()) for key, server in self.servers.items()}
        time.sleep(self.seconds)
        share = 60 / self.seconds
        found: dict[str, Figures] = {}
        for (name, state), server in self.servers.items():
            switches, cpu = before[name, state]
            found.setdefault(name, {}).update(
                {
                    f"{state}_wakes": (server.switches() - switches) * share,
                    f"{state}_cpu_ms": (server.cpu_ms() - cpu) * share,
                }
            )
        return found


Measure = Callable[[], Figures]


FAILURES = (OSError, RuntimeError, ValueError, LookupError)
"""What a server or a program does wrong. The row has the reason, and the others go on."""


def interleaved(measures: dict[str, Measure], rounds: int) -> list[Row]:
    """The rows: each is measured once, then each again. One that fails has the reason."""
    rows: dict[str, Row] = {name: {"server": name, "rounds": []} for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            if "missing" in rows[name]:
                continue
            try:
                rows[name]["rounds"].append(measure())
            except FAILURES as error:
                rows[name]["missing"] = str(error)
            print(f"{name}: {rows[name]}", file=sys.stderr)
    return [*rows.values()]


def installed(program: str, measure: Measure) -> Measure:
    """The same, with the reason if there is no such program."""

    def checked() -> Figures:
        if shutil.which(program) is None:
            raise RuntimeError(f"{program} is not installed")
        return measure()

    return checked


def cold(measured: Measured) -> dict[str, dict[str, Measure]]:
    """The rows of each table of W27."""
    return {
        "W27-git": {"ours-command": measured.git, "git": measured.git_itself},
        "W27-docs": {"ours-command": measured.docs, "rg": installed("rg", measured.pages_by_rg)},
        "W27-files": {
            "ours-command": measured.files,
            "git": measured.files_by_git,
            "rg": installed("rg", measured.files_by_rg),
        },
    }


NO_PROVIDERS: Row = {"server": "official SDKs", "rounds": [], "missing": "they have no such providers"}


def idle(command: str, materials: Materials, rounds: int) -> list[Row]:
    """The rows of W28. All servers rest at the same time."""
    rows: dict[str, Row] = {}
    with ExitStack() as stack:
        try:
            servers = Idle(command, materials, stack)
            for _ in range(rounds):
                for name, figures in servers.measure().items():
                    print(f"{name}: {figures}", file=sys.stderr)
                    rows.setdefault(name, {"server": name, "rounds": []})["rounds"].append(figures)
        except FAILURES as error:
            return [{"server": "all", "rounds": [], "missing": str(error)}]
    return [*rows.values()]


def tables(command: str, materials: Materials, rounds: int, wanted: list[str]) -> Iterator[tuple[str, list[Row]]]:
    for workload, measures in cold(Measured(command, materials)).items():
        if is_wanted(workload, wanted):
            yield workload, [*interleaved(measures, rounds), NO_PROVIDERS]
    if is_wanted("W28", wanted):
        yield "W28", [*idle(command, materials, rounds), NO_PROVIDERS]


def is_wanted(workload: str, wanted: list[str]) -> bool:
    """Whether it is named, or its number is, or nothing is."""
    return not wanted or workload in wanted or workload.partition("-")[0] in wanted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--command", help="mcp-resources; default: target/release/mcp-resources, with --quick that of debug"
    )
    parser.add_argument(
        "--driver", type=Path, help="bench-driver, which makes the pages and the history; default: beside it"
    )
    parser.add_argument("--quick", action="store_true", help="a short run that shows that it works")
    parser.add_argument("--rounds", type=int, default=1, help="rounds of each row")
    parser.add_argument("--workloads", default="", help="the tables, such as W27-git,W28; default: all")
    parser.add_argument("--output", type=Path, help="a file of rounds, which gets a line for each table")
    options = parser.parse_args()
    built = Path("target") / ("debug" if options.quick else "release")
    command = options.command or str(built / "mcp-resources")
    size = QUICK if options.quick else FULL
    materials = Materials(options.driver or built / "bench-driver", size, is_quick=options.quick)
    # As the driver: a wake-up of another core would cost more than a request.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    wanted = [name for name in options.workloads.split(",") if name]
    for workload, rows in tables(command, materials, options.rounds, wanted):
        put(workload, rows, options.output, is_quick=options.quick)


if __name__ == "__main__":
    main()
