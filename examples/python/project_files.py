"""A folder of files, as the servers of agents' configurations are: `project_files.py --root FOLDER`.

file:///project/{+path}  a file below the folder; a change is told within a tenth of a second
"""

import argparse
import threading
import time
from pathlib import Path

from mcp_resources import Resource, ResourceNotFound, ResourceServer

parser = argparse.ArgumentParser()
parser.add_argument("--root", type=Path, required=True)
root: Path = parser.parse_args().root.resolve()

server = ResourceServer("filesystem", version="1.0.0")


def file_of(path: str) -> Path:
    file = (root / path).resolve()
    if not (file.is_relative_to(root) and file.is_file()):
        raise ResourceNotFound
    return file


@server.resource("file:///project/{+path}", title="A file of the project")
def project_file(path: str) -> str:
    return file_of(path).read_text()


@project_file.list
def project_files() -> list[Resource]:
    return [Resource(uri, name=uri.rpartition("/")[2]) for uri in times()]


def times() -> dict[str, int]:
    files = (file for file in root.rglob("*") if file.is_file())
    return {f"file:///project/{file.relative_to(root).as_posix()}": file.stat().st_mtime_ns for file in files}


def tell() -> None:
    before = times()
    while True:
        time.sleep(0.1)
        now = times()
        for uri in before.keys() | now.keys():
            if before.get(uri) != now.get(uri):
                server.notify_updated(uri)
        before = now


if __name__ == "__main__":
    threading.Thread(target=tell, daemon=True).start()
    server.run()
