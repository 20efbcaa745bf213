"""The containers of docs/deployment.md: their instructions are run in a folder, without a container."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from ports import reserved_port
from test_guides import BLOCK, ROOT, newer_node

sys.path.append(str(ROOT / "release"))

import node
import project

PATIENCE = 60.0


def dockerfile(base: str) -> list[str]:
    """The instructions of the file that begins with this image."""
    text = (ROOT / "docs" / "deployment.md").read_text("utf-8")
    found = [block["body"] for block in BLOCK.finditer(text) if block["body"].startswith(f"FROM {base}")]
    assert len(found) == 1, f"{len(found)} files begin with FROM {base}"
    return found[0].splitlines()


def shown(name: str) -> str:
    """The text of a file of the page."""
    text = (ROOT / "docs" / "deployment.md").read_text("utf-8")
    return next(block["body"] for block in BLOCK.finditer(text) if block["info"].endswith(f" {name}"))


def test_the_container_of_node_serves(tmp_path: Path) -> None:
    """S-31: what the instructions install is all that the server needs; the check of its health succeeds."""
    context, image, tmp = (tmp_path / name for name in ("context", "image", "tmp"))
    for folder in (context / "dist", image, tmp):
        folder.mkdir(parents=True)
    environment = os.environ | {"PATH": f"{newer_node()}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    (library,) = (ROOT / "bindings-node").glob("*.node")
    node.pack(library, project.target(None), tmp_path / "work", context / "dist")
    with reserved_port() as port:
        (context / "server.mjs").write_text(re.sub(r"\b8000\b", str(port), shown("server.mjs")), "utf-8")
        command, health = "", ""
        for line in dockerfile("node:"):
            word, _, rest = line.partition(" ")
            rest = rest.replace("/tmp/", f"{tmp}/").replace("npm install", "npm install --offline")
            if word == "COPY":
                subprocess.run(["bash", "-c", f"cp -r {context}/{rest.replace(' .', f' {image}')}"], check=True)
            elif word == "RUN":
                subprocess.run(["bash", "-ec", rest], cwd=image, env=environment, check=True, timeout=PATIENCE)
            elif word == "CMD":
                command = " ".join(re.findall(r'"([^"]+)"', rest))
            elif word == "HEALTHCHECK":
                health = rest.removeprefix("CMD ").replace("8000", str(port))
            else:
                assert word in {"FROM", "WORKDIR"}, line
        assert not any(path.is_symlink() for path in (image / "node_modules").iterdir())
        server = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=image, env=environment)
        try:
            deadline = time.monotonic() + PATIENCE
            while not is_open(port):
                assert server.poll() is None, "the server has ended"
                assert time.monotonic() < deadline, "nothing serves the port"
                time.sleep(0.02)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=PATIENCE) as answer:
                assert answer.status == 200
            subprocess.run(["bash", "-c", health], cwd=image, env=environment, check=True, timeout=PATIENCE)
        finally:
            server.terminate()
            server.wait(PATIENCE)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
