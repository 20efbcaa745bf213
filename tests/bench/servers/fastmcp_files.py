"""A folder on FastMCP (`fastmcp`), as its documentation would have it written: `fastmcp_files.py FOLDER`.

It lists what is registered, so with `LIST=1` every file is; otherwise one template serves all of them.
"""

import os
import sys
from pathlib import Path

from fastmcp import FastMCP
from fastmcp.resources import FileResource

folder = Path(sys.argv[1]).resolve()
server = FastMCP("files")


@server.resource(f"file:///{folder.name}/{{path*}}", mime_type="text/plain")
def file(path: str) -> str:
    found = (folder / path).resolve()
    if not found.is_relative_to(folder):
        raise ValueError("no such file")
    return found.read_text()


if os.environ.get("LIST") == "1":
    for directory, directories, names in os.walk(folder):
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        for name in sorted(name for name in names if not name.startswith(".")):
            path = Path(directory, name)
            uri = f"file:///{folder.name}/{path.relative_to(folder).as_posix()}"
            server.add_resource(FileResource(uri=uri, name=name, path=path, mime_type="text/plain"))

server.run(show_banner=False)
