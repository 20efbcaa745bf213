"""A folder of files, as the servers of agents' configurations are: `project_files.py --root FOLDER`.

file:///project/{+path}  a file below the folder; subscribers are notified when it changes
"""

import argparse

from mcp_resources import ResourceServer, providers

parser = argparse.ArgumentParser()
parser.add_argument("--root", required=True)

server = ResourceServer("filesystem", version="1.0.0")
server.mount(providers.files({"project": parser.parse_args().root}))

if __name__ == "__main__":
    server.run()
