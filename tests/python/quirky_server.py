"""A stdio server of 2025-06-18 that is odd as real servers are, and clear all the same: `quirky_server.py QUIRK`.

`URIS` are what it lists; whatever it reads has the text "read URI", so a test sees what was asked for.
"""

import base64
import json
import sys
from typing import Any

URIS = [
    "q://plain",
    "q://a b",
    "q://日本語 x",
    "q://e\u0301",
    "q://100%",
    "q://a%2fb",
    "Q://UPPER/%41",
    "q://a\\b",
    "q://a#b#c",
    "q://{x}",
    'q://<"quoted">',
    "C:\\dir\\f.txt",
    "file://C:/x",
    "/etc/passwd",
    "relative.txt",
    "not a uri",
    "",
    "q://twice",
    "q://twice",
    "q://" + "long" * 4000,
]
ODD = [{"name": "no uri"}, {"uri": 7, "name": "number"}, "text", None]
BLOB = bytes(range(256)) * 3
ENCODED = base64.b64encode(BLOB).decode()
BLOBS = {
    "lines": base64.encodebytes(BLOB).decode(),
    "crlf": "\r\n".join(ENCODED[at : at + 76] for at in range(0, len(ENCODED), 76)),
    "spaces": " ".join(ENCODED[at : at + 4] for at in range(0, len(ENCODED), 4)),
    "url": base64.urlsafe_b64encode(BLOB).decode(),
    "bare": base64.urlsafe_b64encode(BLOB + b"x").decode().rstrip("="),
}
UNKNOWN = {"code": -32601, "message": "Method not found"}


def answer(method: str, params: dict[str, Any], quirk: str) -> dict[str, Any]:
    match method:
        case "initialize":
            capabilities: dict[str, Any] = {} if quirk == "tools" else {"resources": {}}
            info = {"name": "quirky", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
        case "resources/list" if quirk == "null":
            return {"resources": None, "nextCursor": None}
        case "resources/list" if quirk == "same":
            return {"resources": [{"uri": "q://1", "name": "1"}, {"uri": "q://2", "name": "2"}], "nextCursor": "same"}
        case "resources/list" if quirk not in ("tools", "templates"):
            return {"resources": [*({"uri": uri, "name": "x"} for uri in URIS), *(ODD if quirk == "odd" else [])]}
        case "resources/templates/list" if quirk in ("templates", "plain"):
            return {"resourceTemplates": [{"uriTemplate": "q://{x}", "name": "x"}]}
        case "resources/read" if quirk in BLOBS:
            return {"contents": [{"uri": params["uri"], "text": None, "blob": BLOBS[quirk]}]}
        case "resources/read" if quirk == "nothing":
            return {"contents": [{"uri": params["uri"], "blob": "?"}]}
        case "resources/read" if quirk != "tools":
            return {"contents": [{"uri": params["uri"], "text": f"read {params['uri']}"}]}
    raise LookupError(method)


def written(reply: dict[str, Any], quirk: str) -> str:
    match quirk:
        case "surrogate":
            return json.dumps(reply).replace("read q://plain", "read\\ud800 q://plain")
        case "nan":
            return json.dumps({**reply, "extra": [float("nan"), float("-inf")]})
        case "both":
            return json.dumps({"error": None, **reply})
        case "string-id":
            return json.dumps({**reply, "id": str(reply["id"])})
        case "float-id":
            return json.dumps({**reply, "id": float(reply["id"])})
        case "no-version":
            del reply["jsonrpc"]
            return json.dumps(reply)
        case "indented":
            return json.dumps(reply, indent=2)
        case "mark":
            return "\ufeff" + json.dumps(reply)
        case _:
            return json.dumps(reply)


def main(quirk: str) -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            reply["result"] = answer(message["method"], message.get("params") or {}, quirk)
        except LookupError:
            reply["error"] = UNKNOWN
        print(written(reply, quirk), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
