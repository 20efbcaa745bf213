"""A folder of Agent Skills, for hosts that load skills over MCP and for clients that only know resources.

skill://{+path}                                     a file of a skill
skills/list, skills/get, resources/directory/read   the methods of the skills extension
"""

from pathlib import Path

from mcp_resources import ResourceServer, providers

FOLDER = Path(__file__).resolve().parent.parent / "data" / "skills"

server = ResourceServer("team-skills", version="1.0.0")
server.mount(providers.skills(FOLDER))

if __name__ == "__main__":
    server.run()
