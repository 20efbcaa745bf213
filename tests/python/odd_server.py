"""A stdio server that makes mistakes: its texts move terminals, its lists repeat, its codes are wrong."""

import base64
import json
import sys
from typing import Any

ESCAPE = "\x1b[31mred\x1b]0;title\x07\u009b2J\u202eexe"
RESOURCES = [
    {"uri": "odd://text", "name": f"name {ESCAPE}", "mimeType": "text/html", "size": 1},
    {"uri": "odd://binary", "name": "binary"},
    {"uri": "odd://none", "name": "listed, but not there"},
    {"uri": "odd://text"},
    {"uri": "no scheme", "name": "not a URI"},
    "no object",
]
TEMPLATES = [{"uriTemplate": text, "name": "t"} for text in ("odd://{x}", "odd://{y}", "odd://{")]
TEXT = f"a\tb {ESCAPE}\n"
BINARY = bytes(range(256))


class Refused(Exception):
    """An error of JSON-RPC: its code and message."""


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            capabilities: dict[str, Any] = {"resources": {}, "completions": {}}
            info = {"name": "odd", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
        case "resources/list":
            return {"resources": RESOURCES if "cursor" not in params else [], "nextCursor": "again"}
        case "resources/templates/list":
            return {"resourceTemplates": TEMPLATES}
        case "resources/read" if params["uri"] == "odd://text":
            return {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": TEXT}]}
        case "resources/read" if params["uri"] == "odd://binary":
            return {"contents": [{"uri": params["uri"], "blob": base64.b64encode(BINARY).decode()}]}
        case "resources/read":
            raise Refused(-32603, f"no such thing {ESCAPE}")
    raise Refused(-32601, "Method not found")


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            reply["result"] = answer(message["method"], message.get("params") or {})
        except Refused as error:
            reply["error"] = {"code": error.args[0], "message": error.args[1]}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
