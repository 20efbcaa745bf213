"""A git repository, read-only, without a function of one's own: `repository.py DIR`.

git:///project/status            what is staged, changed and untracked
git:///project/log{?n,path}      the newest commits; `/branches`, `/tags` and `/commit/{id}` beside it
git:///project/diff/{from}/{to}  a patch; `/tree/{ref}/{+path}` and `/blob/{ref}/{+path}` are the files of any revision
"""

import sys

from mcp_resources import ResourceServer, providers

if __name__ == "__main__":
    server = ResourceServer("repository", version="1.0.0")
    server.mount(providers.git({"project": sys.argv[1]}, exclude=["secret"]))
    server.run()
