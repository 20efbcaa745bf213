"""A server over stdio that keeps to no rule but JSON-RPC's form. Its argument says what it does."""

import json
import sys

sys.set_int_max_str_digits(0)
ODD = [
    None,
    7,
    "x",
    {},
    {"uri": 5},
    {"uri": "no uri", "name": "a"},
    {"name": "a"},
    [],
    {"uri": "a://ok", "name": 3, "count": 10**5000},
]


def main(way: str) -> None:
    """Answers what it is asked until the end of its input."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        for written in answers(way, message["method"], message.get("params", {})):
            if isinstance(written, str):
                print(written, flush=True)
            else:
                print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **written}), flush=True)


def answers(way: str, method: str, params: dict[str, object]) -> list[str | dict[str, object]]:
    """The output: lines unchanged, and members of responses."""
    noise = [
        "",
        "no json",
        "[]",
        '{"jsonrpc":"2.0","id":999,"result":{}}',
        "\udcff".encode("utf-8", "replace").decode(),
    ]
    if method == "initialize":
        about = {"protocolVersion": "2025-11-25", "capabilities": {"resources": {}}, "serverInfo": {"name": "odd"}}
        return [{"result": about}]
    if method == "resources/list" and way == "endless":
        after = str(int(params.get("cursor", "0")) + 1)
        return [{"result": {"resources": [{"uri": f"a://{after}", "name": after}], "nextCursor": after}}]
    if method == "resources/list":
        return [*noise, {"result": {"resources": ODD}}]
    if method == "resources/read" and way == "odd":
        return [*noise, {"result": {"contents": [{"uri": params["uri"], "text": "fine"}]}}]
    if method == "resources/read":
        return [{"error": {"code": -32603, "message": "no\u001b[31m", "data": {"a": 1}}}]
    return [{"error": {"code": -32601, "message": "Method not found"}}]


main(sys.argv[1])
