"""A server of a few lines for the tests of the gateway: in one era, with what its argument says, and as badly.

The argument is a JSON object: `name`, `era` ("legacy", the default, or "modern"), `resources` (URI to text), `count`
(resources `many://NAME/00000` and so on), `page`, `templates`, `tools` (name to `_meta`), `prompts`, `instructions`,
`ttl` and `scope` of reads, `log` (a file that gets each request), `hang` (methods that are never answered), `circle`
(its cursors turn in a circle of so many), `twice` (every entry stands twice), `noise` (an answer to nothing before each
answer), `lies` (contents under another URI too), `flood` (bytes of one read), `ends_on` (a file whose presence lets a
read end it), `asks` (its tools ask for input first, in the modern era), `asks_reads` (its reads do), `logs` (its tools
log a warning, where a request wants log messages), `modern_on` (a file whose presence at the start makes it modern),
`questions` (pairs of a method and params: its tool `ask` sends them as requests, in the legacy era, and answers with
the results), `more` (members of every entry of the lists).

Its tool `set` changes a resource and says so; `add` and `remove` change the list; `slow` reports progress until it is
cancelled.
"""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

spec: dict[str, Any] = json.loads(sys.argv[1])
name = spec.get("name", "stub")
modern = spec.get("era") == "modern" or Path(spec.get("modern_on", "")).is_file()
resources: dict[str, str] = dict(spec.get("resources", {}))
resources |= {f"many://{name}/{number:05}": f"{number}" for number in range(spec.get("count", 0))}
tools: dict[str, Any] = dict.fromkeys(
    ["set", "add", "remove", "slow", "fail", "echo", *(["ask"] if "questions" in spec else [])]
) | spec.get("tools", {})
if spec.get("only_tools") is not None:
    tools = spec["only_tools"]
subscribed: set[str] = set()
listens: dict[Any, dict[str, Any]] = {}
cancelled: set[Any] = set()
replies: dict[Any, dict[str, Any]] = {}
replied = threading.Condition()
level: list[str] = []
lock = threading.Lock()


def send(message: dict[str, Any]) -> None:
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def answer(id: Any, result: dict[str, Any]) -> None:
    if spec.get("noise"):
        send({"id": 999_999, "result": {"odd": True}})
        send({"method": "notifications/odd", "params": {}})
    if modern:
        result = {"resultType": "complete"} | result
    send({"id": id, "result": result})


def refuse(id: Any, code: int, message: str, data: Any = None) -> None:
    send({"id": id, "error": {"code": code, "message": message} | ({} if data is None else {"data": data})})


def notify(method: str, params: dict[str, Any], kind: str) -> None:
    if not modern:
        return send({"method": method, "params": params})
    for id, wanted in list(listens.items()):
        if wanted.get(kind):
            meta = {"io.modelcontextprotocol/subscriptionId": id}
            send({"method": method, "params": params | {"_meta": meta}})


def updated(uri: str) -> None:
    if modern:
        for id, wanted in list(listens.items()):
            if uri in wanted.get("resourceSubscriptions", []):
                meta = {"io.modelcontextprotocol/subscriptionId": id}
                send({"method": "notifications/resources/updated", "params": {"uri": uri, "_meta": meta}})
    elif uri in subscribed:
        send({"method": "notifications/resources/updated", "params": {"uri": uri}})


def page(items: list[dict[str, Any]], member: str, params: dict[str, Any]) -> dict[str, Any]:
    size = spec.get("page", 1000)
    cursor = params.get("cursor")
    hint = {"ttlMs": 0, "cacheScope": "private"} if modern else {}
    items = [item | spec.get("more", {}) for item in items]
    if spec.get("circle"):
        number = int(cursor or 0)
        return {member: items[:1], "nextCursor": str((number % spec["circle"]) + 1), **hint}
    if spec.get("twice"):
        items = [item for item in items for _ in range(2)]
    # The cursor is a key, so that nothing is lost while entries come.
    key = "name" if member in ("tools", "prompts") else "uriTemplate" if member == "resourceTemplates" else "uri"
    rest = [item for item in items if cursor is None or item[key] > cursor]
    shown = rest[:size]
    result: dict[str, Any] = {member: shown, **hint}
    if len(rest) > size:
        result["nextCursor"] = shown[-1][key]
    return result


def initialize(id: Any, params: dict[str, Any]) -> None:
    capabilities = {
        "resources": {"subscribe": True, "listChanged": True},
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "completions": {},
    } | ({"logging": {}} if spec.get("logs") else {})
    about = {"name": name, "version": "1"}
    more = {"instructions": spec["instructions"]} if "instructions" in spec else {}
    if modern:
        found = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, "serverInfo": about}
        return answer(id, found | {"ttlMs": 0, "cacheScope": "private"} | more)
    answer(id, {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": about} | more)


def read(id: Any, params: dict[str, Any]) -> None:
    uri = params["uri"]
    if "ends_on" in spec and Path(spec["ends_on"]).exists():
        sys.exit(3)
    if "flood" in spec:
        return answer(id, {"contents": [{"uri": uri, "text": "x" * spec["flood"]}]})
    if uri.startswith(f"item://{name}/"):
        return answer(id, {"contents": [{"uri": uri, "text": f"item {uri} of {name}"}]})
    if uri not in resources:
        return refuse(id, -32602 if modern else -32002, f"Resource not found: {uri}", {"uri": uri})
    if spec.get("asks_reads"):
        if "inputResponses" not in params:
            return ask_first(id)
        known = params.get("requestState") == f"state of {name}"
        said = json.dumps({"known": known, "answers": params["inputResponses"]})
        return answer(id, {"contents": [{"uri": uri, "text": said}], "ttlMs": 60_000, "cacheScope": "public"})
    contents = [{"uri": uri, "mimeType": "text/plain", "text": resources[uri]}]
    if spec.get("lies"):
        contents.append({"uri": "secret://other", "text": "secret"})
    hint = {"ttlMs": spec.get("ttl", 0), "cacheScope": spec.get("scope", "private")} if modern else {}
    answer(id, {"contents": contents, **hint})


def ask_first(id: Any) -> None:
    schema = {"type": "object", "properties": {}}
    params = {"mode": "form", "message": "Sure?", "requestedSchema": schema}
    requests = {"q": {"method": "elicitation/create", "params": params}}
    answer(id, {"resultType": "input_required", "inputRequests": requests, "requestState": f"state of {name}"})


def change(tool: str, given: dict[str, Any]) -> None:
    if tool == "set":
        resources[given["uri"]] = given["text"]
        updated(given["uri"])
        return
    if tool == "add":
        resources[given["uri"]] = given.get("text", "new")
    else:
        resources.pop(given["uri"], None)
    notify("notifications/resources/list_changed", {}, "resourcesListChanged")


def last(id: Any, token: Any, steps: int) -> bool:
    """Takes its time; whether it was not cancelled."""
    for step in range(steps):
        if id in cancelled:
            log({"method": "was cancelled"})
            return False
        if token is not None:
            params = {"progressToken": token, "progress": step, "total": 1000}
            send({"method": "notifications/progress", "params": params})
        time.sleep(0.06)
    return True


def ask_client(id: Any, about: object) -> dict[str, Any]:
    """Sends the questions as requests, and waits for the answers to all."""
    asked = {f"{id} {number}": pair for number, pair in enumerate(spec["questions"])}
    for own, (method, params) in asked.items():
        send({"id": own, "method": method, "params": params | ({"message": about} if about else {})})
    with replied:
        replied.wait_for(lambda: all(own in replies for own in asked) or id in cancelled, 60)
    return {own: replies.get(own) for own in asked}


def call(id: Any, params: dict[str, Any]) -> None:
    tool, given, meta = params["name"], params.get("arguments", {}), params.get("_meta", {})
    if tool not in tools:
        return refuse(id, -32602, f"Unknown tool: {tool}")
    if tool == "fail":
        return refuse(id, -31999, "It failed as asked", {"why": "asked"})
    if spec.get("asks") and "inputResponses" not in params:
        return ask_first(id)
    if tool in ("set", "add", "remove"):
        change(tool, given)
    if tool == "slow" and not last(id, meta.get("progressToken"), int(given.get("steps", 1000))):
        return None
    if spec.get("logs") and "io.modelcontextprotocol/logLevel" in meta:
        send(
            {"method": "notifications/message", "params": {"level": "warning", "logger": name, "data": {"tool": tool}}}
        )
    if spec.get("logs") and not modern and (level or spec["logs"] == "unasked"):
        send({"method": "notifications/message", "params": {"level": "warning", "logger": name, "data": level[-1:]}})
    if tool == "ask":
        found = list(ask_client(id, given.get("about")).values())
        return answer(id, {"content": [{"type": "text", "text": json.dumps(found)}]})
    text = json.dumps({"server": name, "tool": tool, "arguments": given, "meta": sorted(meta)})
    return answer(id, {"content": [{"type": "text", "text": text}], "_meta": tools[tool] or {}, "odd": [1, 2.50]})


def complete(id: Any, params: dict[str, Any]) -> None:
    reference = params["ref"].get("uri", params["ref"].get("name"))
    if reference not in [*spec.get("templates", []), *spec.get("prompts", [])]:
        return refuse(id, -32602, f"unknown {reference}")
    values = [word for word in ("alpha", "beta", f"of-{name}") if word.startswith(params["argument"]["value"])]
    answer(id, {"completion": {"values": values, "total": 77, "hasMore": True}})


def log(message: dict[str, Any]) -> None:
    if "log" in spec:
        with lock, open(spec["log"], "a") as file:
            file.write(json.dumps({"method": message.get("method"), "params": message.get("params")}) + "\n")


def list_resources(id: Any, params: dict[str, Any]) -> None:
    about = [{"uri": uri, "name": uri.rpartition("/")[2], "odd": {"of": name}} for uri in sorted(resources)]
    answer(id, page(about, "resources", params))


def list_templates(id: Any, params: dict[str, Any]) -> None:
    about = [{"uriTemplate": text, "name": "t", "odd": 1} for text in sorted(spec.get("templates", []))]
    answer(id, page(about, "resourceTemplates", params))


def list_tools(id: Any, params: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {}}
    about = [
        {"name": tool, "inputSchema": schema} | ({"_meta": tools[tool]} if tools[tool] else {})
        for tool in sorted(tools)
    ]
    answer(id, page(about, "tools", params))


def list_prompts(id: Any, params: dict[str, Any]) -> None:
    answer(id, page([{"name": prompt} for prompt in sorted(spec.get("prompts", []))], "prompts", params))


def get_prompt(id: Any, params: dict[str, Any]) -> None:
    text = {"type": "text", "text": f"{params['name']} of {name}"}
    answer(id, {"messages": [{"role": "user", "content": text}]})


def call_aside(id: Any, params: dict[str, Any]) -> None:
    threading.Thread(target=call, args=(id, params), daemon=True).start()


def subscribe(id: Any, params: dict[str, Any]) -> None:
    subscribed.add(params["uri"])
    answer(id, {})


def unsubscribe(id: Any, params: dict[str, Any]) -> None:
    subscribed.discard(params["uri"])
    answer(id, {})


def listen(id: Any, params: dict[str, Any]) -> None:
    listens[id] = params["notifications"]
    meta = {"io.modelcontextprotocol/subscriptionId": id}
    honoured = {"notifications": params["notifications"], "_meta": meta}
    send({"method": "notifications/subscriptions/acknowledged", "params": honoured})


def cancel(_: Any, params: dict[str, Any]) -> None:
    with replied:
        cancelled.add(params.get("requestId"))
        replied.notify_all()
    listens.pop(params.get("requestId"), None)


def set_level(id: Any, params: dict[str, Any]) -> None:
    level.append(params["level"])
    answer(id, {})


METHODS = {
    "notifications/cancelled": cancel,
    "resources/list": list_resources,
    "resources/templates/list": list_templates,
    "tools/list": list_tools,
    "prompts/list": list_prompts,
    "prompts/get": get_prompt,
    "resources/read": read,
    "tools/call": call_aside,
    "completion/complete": complete,
}
if modern:
    METHODS |= {"server/discover": initialize, "subscriptions/listen": listen}
else:
    METHODS |= {"initialize": initialize, "resources/subscribe": subscribe, "resources/unsubscribe": unsubscribe}
    METHODS |= {"logging/setLevel": set_level}


def handle(message: dict[str, Any]) -> None:
    method, id = str(message.get("method")), message.get("id")
    log(message)
    if "method" not in message:
        with replied:
            replies[id] = {key: message[key] for key in ("result", "error") if key in message}
            replied.notify_all()
        return
    if method in spec.get("hang", []) or "*" in spec.get("hang", []):
        return
    if method in METHODS:
        METHODS[method](id, message.get("params", {}))
    elif id is not None:
        refuse(id, -32601, f"Method not found: {method}")


for line in sys.stdin:
    handle(json.loads(line))
