"""A stdio server in both eras that makes one mistake: `planted.py MISTAKE`.

It is written by hand, as servers of our own refuse most mistakes.
`MISTAKES` says what `lint` calls each, with the URI or template. Without a mistake there is nothing to find.
"""

import json
import sys
from dataclasses import dataclass, field
from typing import Any

MODERN = "2026-07-28"
TEXT = "grüße"
ABSENT = "mcp-resources-lint://absent/6f1c0a52"
MISTAKES: dict[str, list[tuple[str, str]]] = {
    "none": [],
    "dead": [("dead-template", "plant://item/{other}")],
    "shadowed": [("shadowed-template", "plant://item/{id,other}")],
    "unparsable": [("invalid-template", "plant://{")],
    "unreadable": [("unreadable", "plant://gone")],
    "unreadable-inside": [("unreadable", "plant://gone")],
    "empty": [("no-contents", "plant://text")],
    "type": [("mime-type-differs", "plant://text")],
    "size": [("size-differs", "plant://text")],
    "code": [("not-found-code", ABSENT)],
    "contents": [("absent-readable", ABSENT)],
    "completion": [("completion-fails", "plant://item/{id}")],
    "twice": [("duplicate-uri", "PLANT://text")],
    "cursor": [("repeated-cursor", "resources/list")],
}


@dataclass
class Refused(Exception):
    """An error of JSON-RPC."""

    code: int
    message: str
    data: dict[str, object] = field(default_factory=dict)


def resources(mistake: str) -> list[dict[str, object]]:
    text = {"uri": "plant://text", "name": "text", "mimeType": "text/plain", "size": len(TEXT.encode())}
    if mistake == "size":
        text["size"] = len(TEXT)
    if mistake == "type":
        text["mimeType"] = "text/markdown"
    listed: list[dict[str, object]] = [text, {"uri": "plant://blob", "name": "blob", "size": 3}]
    if mistake.startswith("unreadable"):
        listed.append({"uri": "plant://gone", "name": "gone"})
    if mistake == "twice":
        listed.append({"uri": "PLANT://text", "name": "the same again"})
    return listed


def templates(mistake: str) -> list[dict[str, object]]:
    more = {"dead": "plant://item/{other}", "shadowed": "plant://item/{id,other}", "unparsable": "plant://{"}
    texts = ["plant://item/{id}", *([more[mistake]] if mistake in more else [])]
    return [{"uriTemplate": text, "name": "item"} for text in texts]


def read(uri: str, mistake: str, is_modern: bool) -> list[dict[str, object]]:
    if uri.lower() == "plant://text":
        return [] if mistake == "empty" else [{"uri": uri, "mimeType": "text/plain; charset=utf-8", "text": TEXT}]
    if uri == "plant://blob":
        return [{"uri": uri, "blob": "AAEC"}]
    if uri.startswith("plant://item/") or (mistake == "contents" and uri == ABSENT):
        return [{"uri": uri, "text": uri}]
    if mistake == "unreadable-inside" and uri == "plant://gone":
        raise Refused(-32603, "the disk is on fire")
    code = -32602 if is_modern != (mistake == "code") else -32002
    raise Refused(code, "Resource not found", {"uri": uri})


def answer(method: str, params: dict[str, Any], mistake: str) -> dict[str, Any]:
    is_modern = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {})
    about = {"capabilities": {"resources": {}, "completions": {}}}
    match method:
        case "server/discover" if is_modern:
            return {**about, "supportedVersions": [MODERN], "ttlMs": 0, "cacheScope": "private"}
        case "initialize":
            return {**about, "protocolVersion": "2025-11-25", "serverInfo": {"name": "planted", "version": "1"}}
        case "resources/list":
            page: dict[str, Any] = {"resources": [] if "cursor" in params else resources(mistake)}
            return {**page, "nextCursor": "again"} if mistake == "cursor" else page
        case "resources/templates/list":
            return {"resourceTemplates": templates(mistake)}
        case "resources/read":
            return {"contents": read(params["uri"], mistake, is_modern)}
        case "completion/complete" if mistake != "completion":
            return {"completion": {"values": ["1"]}}
    raise Refused(-32601, "Method not found")


def main(mistake: str) -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            result = answer(message["method"], message.get("params") or {}, mistake)
            reply["result"] = {"resultType": "complete", **result}
        except Refused as error:
            reply["error"] = {"code": error.code, "message": error.message, "data": error.data}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
