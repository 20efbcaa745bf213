"""Serves a copied project with the command, and shows what the official clients of Python and TypeScript see of it.

Each of them, in both eras: over stdio with a server of its own, then over HTTP from one server.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COMMAND = str(ROOT / "target" / "debug" / "mcp-resources")
CLIENTS = (
    [sys.executable, str(HERE / "official.py")],
    [os.environ.get("NODE", "node"), str(HERE / "official.mjs")],
)
ERAS = ("legacy", "modern")


def main() -> None:
    """A copy, so that a file of it can be changed."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, "project")
        shutil.copytree(ROOT / "examples" / "data" / "project", folder)
        shutil.copytree(ROOT / "core" / "engine" / "src", folder / "engine")
        Path(folder, ".env").write_text("SECRET=1\n", "utf-8")
        print(f"$ mcp-resources serve project    ({sum(1 for _ in folder.rglob('*'))} files and folders)")
        for client in CLIENTS:
            for era in ERAS:
                show([*client, era, str(folder), COMMAND, "serve", str(folder)])
        over_http(folder)


def over_http(folder: Path) -> None:
    """One server for all."""
    with subprocess.Popen([COMMAND, "serve", str(folder), "--http", "0"], stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            said = server.stderr.readline().strip()
            print(f"\n$ mcp-resources serve project --http 0\n{said}")
            for client in CLIENTS:
                for era in ERAS:
                    show([*client, era, str(folder), said.split()[-1]])
        finally:
            server.send_signal(signal.SIGTERM)
        code = server.wait(10)
    if code:
        sys.exit(f"demo failed: the server ended with status {code}")
    print("\nSIGTERM: the server ended with status 0\n")


def show(command: list[str]) -> None:
    """Runs a client."""
    if subprocess.run(command, check=False).returncode:
        sys.exit("demo failed: see above")


if __name__ == "__main__":
    main()
