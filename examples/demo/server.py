"""The demo's server: this repository, read over MCP.

repo://docs/{name}         a document of the root folder; listed, completes the names
repo://source/{+path}      a source file of the engine; listed, completes the paths
repo://documents.json.gz   all documents, compressed when asked: binary
metrics://server/uptime    how long this server runs: changes by itself, and tells who subscribed
"""

import gzip
import json
import sys
import threading
import time
from pathlib import Path

from mcp_resources import Resource, ResourceNotFoundError, ResourceServer, UriTemplate

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "core" / "engine" / "src"
MARKDOWN, RUST = "text/markdown", "text/x-rust"
UPTIME = "metrics://server/uptime"
TICK = 0.5

server = ResourceServer("mcp-resources-demo", version="0.1.0", limits={"page": 40})
started = time.monotonic()


def files(folder: Path, pattern: str) -> dict[str, Path]:
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.glob(pattern))}


def read(available: dict[str, Path], name: str) -> str:
    if name not in available:  # only what is listed can be read
        raise ResourceNotFoundError
    return available[name].read_text("utf-8")


def listed(template: UriTemplate, mime_type: str, available: dict[str, Path]) -> list[Resource]:
    (variable,) = template.variables
    return [
        Resource(template.expand(**{variable: name}), name=name, mime_type=mime_type, size=path.stat().st_size)
        for name, path in available.items()
    ]


@server.resource("repo://docs/{name}", mime_type=MARKDOWN)
def document(name: str) -> str:
    """A document of this repository."""
    return read(files(ROOT, "*.md"), name)


@document.complete("name")
def document_names(value: str) -> list[str]:
    return [name for name in files(ROOT, "*.md") if name.startswith(value)]


@document.list
def document_list() -> list[Resource]:
    return listed(UriTemplate("repo://docs/{name}"), MARKDOWN, files(ROOT, "*.md"))


@server.resource("repo://source/{+path}", mime_type=RUST)
def source(path: str) -> str:
    """A source file of the engine."""
    return read(files(SOURCES, "**/*.rs"), path)


@source.complete("path")
def source_paths(value: str) -> list[str]:
    return [path for path in files(SOURCES, "**/*.rs") if path.startswith(value)]


@source.list
def source_list() -> list[Resource]:
    return listed(UriTemplate("repo://source/{+path}"), RUST, files(SOURCES, "**/*.rs"))


@server.resource("repo://documents.json.gz", mime_type="application/gzip")
def archive() -> bytes:
    """All documents, compressed."""
    texts = {name: path.read_text("utf-8") for name, path in files(ROOT, "*.md").items()}
    return gzip.compress(json.dumps(texts).encode())


@server.resource(UPTIME, mime_type="application/json", inline=True)
def uptime() -> dict[str, float]:
    """Seconds since this server started."""
    return {"seconds": round(time.monotonic() - started, 3)}


def tick() -> None:
    while True:
        time.sleep(TICK)
        server.notify_updated(UPTIME)


if __name__ == "__main__":
    threading.Thread(target=tick, daemon=True).start()
    if sys.argv[1:] == ["--http"]:
        server.run("http", port=0)
    else:
        server.run()
