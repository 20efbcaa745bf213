"""The README and the guides do what they say: their files are written, their commands run, their output compared.

Each page is one session in an empty folder, from top to bottom:

- A block whose info string is a language and a name, as ```` ```python notes.py ````, is the text of that file.
- A block ```` ```console ```` is a terminal: each line that begins with `$ ` is a command, and the lines below it are
  what it prints. `...` alone on a line stands for any lines, and within a line for any characters. A command that ends
  with ` &` runs until the end of the page. A command must succeed, unless `# exit status N` behind it says otherwise.
- A block ```` ```rust ```` is compiled by the documentation tests of the crate `mcp-resources`.
- A block ```` ```text ```` is not run.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from ports import reserved_port

ROOT = Path(__file__).resolve().parents[2]
GUIDES = sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))
PAGES = ["README.md", "bindings-python/README.md", *GUIDES]
PORT = "8000"
"""The port that pages serve at; each run has another."""
PATIENCE = 60.0
BLOCK = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
SLOW = re.compile(r"(?:mcp-resources: [^\n]*|[\w.<>]+) blocked the event loop for \d+ ms; [^\n]*\n?")
"""What a server logs of a handler on a busy machine, perhaps behind contents that do not end with a newline."""
STATUS = re.compile(r"  +# exit status (\d+)$")
PROSE = {"text", "rust", "rust,no_run"}


@dataclass(frozen=True)
class Block:
    info: str
    body: str
    line: int


@dataclass(frozen=True)
class Command:
    text: str
    status: int
    output: list[str]


def blocks(page: str) -> Iterator[Block]:
    text = (ROOT / page).read_text("utf-8")
    for found in BLOCK.finditer(text):
        yield Block(found["info"], found["body"], text.count("\n", 0, found.start()) + 1)


def commands(body: str) -> Iterator[Command]:
    """The commands of a terminal."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        text, *output = part.rstrip("\n").split("\n")
        while text.endswith("\\"):
            text = f"{text}\n{output.pop(0)}"
        status = STATUS.search(text)
        yield Command(STATUS.sub("", text), int(status[1]) if status else 0, output)


def fits(expected: list[str], output: list[str]) -> bool:
    """Whether lines are as expected, with `...` for whatever."""
    parts = [".*" if line == "..." else ".*?".join(map(re.escape, line.split("..."))) for line in expected]
    pattern = "\n".join(parts).replace("\n.*", "(?:\n.*)?").replace(".*\n", "(?:.*\n)?")
    flags = re.DOTALL if "..." in expected else re.NOFLAG
    return re.fullmatch(pattern, "\n".join(output), flags) is not None


class Session:
    """The folder and the terminal of one page."""

    def __init__(self, folder: Path, port: int, stack: ExitStack, runs_typescript: bool) -> None:
        self._folder, self._port, self._stack = folder, port, stack
        (folder / "node_modules").mkdir()
        for package in (ROOT / "node_modules").iterdir():
            (folder / "node_modules" / package.name).symlink_to(package)
        (folder / "node_modules" / "mcp-resources").symlink_to(ROOT)
        paths = [Path(sys.executable).parent, ROOT / "node_modules" / ".bin"]
        if runs_typescript:
            paths.insert(0, newer_node())
        self._environment = os.environ | {
            "HOME": str(folder),
            "NO_COLOR": "1",
            "COLUMNS": "120",
            "PATH": os.pathsep.join([*map(str, paths), os.environ["PATH"]]),
        }

    def write(self, name: str, body: str) -> None:
        file = self._folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self._served(body), "utf-8")

    def run(self, command: Command) -> list[str]:
        """What a command prints, on both streams."""
        text = self._served(command.text)
        assert not re.search(r"\bcd\b", text), f"$ {text}\na reader's next commands would run there too"
        if text in {"kill %1", "kill $!"}:
            self._end()
            return []
        if text.endswith(" &"):
            self._start(text.removesuffix(" &"))
            return []
        done = subprocess.run(
            ["bash", "-c", text],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == command.status, f"$ {text}\n{done.stdout}"
        shown = SLOW.sub("", done.stdout).replace(str(self._port), PORT).replace(str(self._folder), "FOLDER")
        return [line.rstrip() for line in shown.rstrip("\n").split("\n")] if shown else []

    def _served(self, text: str) -> str:
        return re.sub(rf"\b{PORT}\b", str(self._port), text)

    def _start(self, text: str) -> None:
        """Starts what goes on, and waits until it serves the port if it is to."""
        process = subprocess.Popen(
            ["bash", "-c", f"exec {text}"],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

        def end() -> None:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(PATIENCE)

        self._end = self._stack.callback(end)
        deadline = time.monotonic() + PATIENCE
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            assert process.poll() is None, f"$ {text} &: ended with {process.returncode}"
            assert time.monotonic() < deadline, f"$ {text} &: serves nothing at the port"
            time.sleep(0.02)


def newer_node() -> Path:
    """The folder of a Node that runs TypeScript."""
    given = os.environ.get("NODE", "node")
    version = subprocess.run([given, "-p", "process.versions.node"], capture_output=True, text=True, check=True)
    major, minor, _ = map(int, version.stdout.strip().split("."))
    if (major, minor) >= (22, 18):
        return Path(given).parent
    newer = subprocess.run([ROOT / "tests" / "node" / "newer-node"], capture_output=True, text=True, check=False)
    assert newer.returncode == 0, f"this Node runs no TypeScript, and there is no newer one: {newer.stderr}"
    return Path(newer.stdout.strip()).parent


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says(page: str, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    with reserved_port() as port, ExitStack() as stack:
        runs_typescript = any(block.info.startswith("ts ") for block in blocks(page))
        session = Session(folder, port, stack, runs_typescript)
        for block in blocks(page):
            match block.info.split(" "):
                case ["console"]:
                    for command in commands(block.body):
                        output = session.run(command)
                        shown = "\n".join(output)
                        where = f"{page}:{block.line}: $ {command.text}"
                        assert fits(command.output, output), f"{where}\n{shown}"
                case [kind] if kind in PROSE:
                    pass
                case [_, name]:
                    session.write(name, block.body)
                case _:
                    pytest.fail(f"{page}:{block.line}: {block.info!r} is neither a file nor a session: nothing runs it")


def test_rust_blocks_are_compiled() -> None:
    """The crate's documentation tests have each page with Rust."""
    compiled = (ROOT / "core" / "src" / "lib.rs").read_text("utf-8")
    for page in PAGES:
        has_rust = any(block.info.startswith("rust") for block in blocks(page))
        assert has_rust == (f'include_str!("../../{page}")' in compiled), page


def test_what_is_printed_is_compared() -> None:
    """The comparison can fail."""
    assert fits(["a", "...", "d"], ["a", "b", "c", "d"])
    assert fits(["a", "...", "d"], ["a", "d"])
    assert fits(["one ... three"], ["one two three"])
    assert fits([], [])
    assert not fits([], ["a"])
    assert not fits(["a"], [])
    assert not fits(["a", "..."], ["b", "c"])
    assert not fits(["one ... three"], ["one two", "three"])
    (first, second) = commands("$ one \\\n  two\nthree\n$ four   # exit status 1\n")
    assert (first.text, first.output, first.status) == ("one \\\n  two", ["three"], 0)
    assert (second.text, second.output, second.status) == ("four", [], 1)
