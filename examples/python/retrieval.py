"""A handbook that is asked questions: passages in Japanese and English, each with its document, score and position.

rag:///handbook/search/{+query}  the passages that answer a question
rag:///handbook/doc/{+id}        a document; subscribers are notified when it changes
gdrive:///{fileId}               a file of Google Drive, if the argument is a file that says which (docs/rag.md)
"""

import sys
from pathlib import Path

from mcp_resources import ResourceServer, providers

HANDBOOK = Path(__file__).resolve().parents[1] / "data" / "handbook"

collections: dict[str, dict[str, object]] = {"handbook": {"folder": HANDBOOK}}
for config in sys.argv[1:2]:
    collections["drive"] = {"drive": config}

server = ResourceServer("retrieval", version="1.0.0")
server.mount(providers.rag(collections, exclude=["drafts"], hits=3))

if __name__ == "__main__":
    server.run()
