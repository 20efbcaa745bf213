"""A handbook in Japanese and English: pages of Markdown, their sections, and a search over all of them.

docs:///handbook/{+page}          a page, or a section of it with `#slug`; subscribers are notified when it changes
docs:///handbook/search/{+query}  the pages that have all of some words, as JSON
"""

from pathlib import Path

from mcp_resources import ResourceServer, providers

HANDBOOK = Path(__file__).resolve().parents[1] / "data" / "handbook"

server = ResourceServer("handbook", version="1.0.0")
server.mount(providers.docs({"handbook": HANDBOOK}, exclude=["drafts"]))

if __name__ == "__main__":
    server.run()
