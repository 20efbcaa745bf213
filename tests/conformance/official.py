"""What the runners of official tools share: a Node that is new enough, the tools, and a fixture server over HTTP."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(ROOT / "tests" / "python"))
from ports import reserved_port  # noqa: E402

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "conformance"
NODE_AT_LEAST = 22
START_SECONDS = 300


@contextmanager
def start(language: str) -> Iterator[str]:
    """The fixture server of a language: its URL, once it takes connections."""
    with reserved_port() as port:
        command = [HERE / "run-server", language, "--http", str(port)]
        server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL)
        try:
            wait(server, port)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.terminate()
            server.wait(10)


def wait(server: "subprocess.Popen[bytes]", port: int) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if server.poll() is not None:
            sys.exit(f"the server ended: {server.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    server.kill()
    sys.exit("the server takes no connections")


def installed(name: str, program: str) -> Path:
    """A tool that is pinned in the folder `name`, installed once."""
    at = TARGET / name
    wanted = {file: (HERE / name / file).read_text("utf-8") for file in ("package.json", "package-lock.json")}
    if not (at / "ready").exists() or (at / "ready").read_text("utf-8") != wanted["package-lock.json"]:
        print(f"installing the {name} …", file=sys.stderr)
        at.mkdir(parents=True, exist_ok=True)
        for file, text in wanted.items():
            (at / file).write_text(text, "utf-8")
        npm("ci", "--ignore-scripts", cwd=at)
        (at / "ready").write_text(wanted["package-lock.json"], "utf-8")
    return at / "node_modules" / program


def node() -> Path:
    """A Node that is new enough: the one at hand, else one from the registry."""
    own = shutil.which("node")
    if own:
        version = subprocess.run([own, "--version"], capture_output=True, text=True, check=True).stdout
        if int(version.lstrip("v").split(".")[0]) >= NODE_AT_LEAST:
            return Path(own)
    newer = subprocess.run([ROOT / "tests" / "node" / "newer-node"], stdout=subprocess.PIPE, text=True, check=False)
    if newer.returncode != 0:
        sys.exit(f"the official tools need Node {NODE_AT_LEAST} or newer, and none could be installed")
    return Path(newer.stdout.strip())


def npm(*arguments: str, cwd: Path) -> None:
    command = ["npm", *arguments, "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.DEVNULL)
