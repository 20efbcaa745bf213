"""An agent and what it may read: the servers and the allow-lists stand in `examples/data/agents.yaml`.

It lists, reads what is allowed and what is not, reads everything as another agent, and follows a file that changes.
"""

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path

from mcp_resources import AccessDeniedError, Client

EXAMPLES = Path(__file__).resolve().parents[1]
CONFIG = EXAMPLES / "data" / "agents.yaml"
MAIN, SECRET = "file:///project/src/main.ts", "file:///project/config.json"


async def main(project: Path) -> None:
    async with Client.from_config(CONFIG, agent="frontend") as client:
        print("listed:", *[resource.uri async for resource in client.list()])
        print("allowed:", await client.read(MAIN))
        try:
            await client.read(SECRET)
        except AccessDeniedError as error:
            print("refused:", error)
        async for change in client.watch(MAIN):
            print("watched:", change.contents)
            if "43" in str(change.contents):
                break
            new = project / "main.new"  # renamed, so that nobody reads half of it
            new.write_text("export const answer = 43;\n")
            new.replace(project / "src" / "main.ts")
    async with Client.from_config(CONFIG, agent="admin") as client:
        print("wildcard:", await client.read(SECRET))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        project = Path(shutil.copytree(EXAMPLES / "data" / "project", Path(folder) / "project"))
        os.environ["RUNTIME"] = sys.executable
        os.environ["PROJECT_FILES"] = str(EXAMPLES / "python" / "project_files.py")
        os.environ["PROJECT"] = str(project)
        asyncio.run(main(project))
