"""The wire fixtures as data: the files of cases, their short forms written out, and the comparison.

Knows nothing of the library: `tests/fixtures/README.md` describes the format.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from vectors import MODERN, ROOT

FIXTURES = ROOT / "tests" / "fixtures"
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN]
META = "io.modelcontextprotocol/"

CODES = {
    "not_found": (-32002, -32602),
    "invalid_parameter": (-32602, -32602),
    "access_denied": (-32003, -31003),
    "invalid_uri": (-32602, -32602),
    "read_error": (-32603, -32603),
    "size_exceeded": (-32603, -31013),
    "timeout": (-32603, -31008),
    "rate_limited": (-32603, -31029),
    "input_required": (-32603, -32603),
    "input_declined": (-32603, -32602),
}
"""Errors by their kind: the code before 2026-07-28, and the code there (DEC-20)."""


class Case(NamedTuple):
    """One run of one case: under one revision, or under none when its steps say all."""

    file: str
    revision: str | None
    members: dict[str, Any]

    def __str__(self) -> str:
        name = f"{self.file}: {self.members['name']}"
        return name if self.revision is None else f"{name} [{self.revision}]"

    @property
    def legacy(self) -> bool:
        return self.revision not in (None, MODERN)

    def catalog(self) -> dict[str, Any]:
        """The catalogue, with the options of the case."""
        catalog: dict[str, Any] = read(f"catalog/{self.members.get('catalog', 'basic')}.json")
        catalog["options"] = catalog.get("options", {}) | self.members.get("options", {})
        return catalog

    def steps(self) -> list[dict[str, Any]]:
        return list(_unrolled(self.members["steps"]))


def read(path: str) -> Any:
    """A fixture, with the members of every object sorted."""
    return json.loads(write(json.loads((FIXTURES / path).read_text("utf-8"))))


def cases(folder: str = "wire") -> Iterator[Case]:
    """Every run of every case, in the order of files, cases and revisions."""
    for path in sorted((FIXTURES / folder).glob("*.json")):
        defaults = read(f"{folder}/{path.name}")
        for given in defaults.pop("cases"):
            members = defaults | given
            for revision in _revisions(members.get("revisions")):
                yield Case(path.name, revision, members)


def write(value: object) -> str:
    """JSON without spaces and with sorted members: the same text in every language."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def outgoing(short: dict[str, Any], revision: str | None, capabilities: Any) -> dict[str, Any]:
    """A request or notification of the short form, as the client sends it."""
    message = short | {"jsonrpc": "2.0"}
    if "id" in short and revision == MODERN:
        params = dict(message.get("params") or {})
        own = {META + "protocolVersion": MODERN, META + "clientCapabilities": capabilities}
        params["_meta"] = own | params.get("_meta", {})
        message["params"] = params
    return message


def resolve(value: Any, bound: dict[str, str]) -> Any:
    """`value` with its references and repetitions written out."""
    match value:
        case {"$ref": name}:
            return _changed(bound[name], value)
        case {"$repeat": [prefix, unit, times]}:
            return prefix + unit * times
        case dict():
            return {name: resolve(item, bound) for name, item in value.items()}
        case list():
            return [resolve(item, bound) for item in value]
    return value


def _changed(text: str, changes: dict[str, Any]) -> str:
    if "flip" in changes:
        at = min(changes["flip"], len(text) - 1)
        text = text[:at] + ("B" if text[at] == "A" else "A") + text[at + 1 :]
    return text[: len(text) - changes.get("cut", 0)]


class Terms:
    """What the short forms of what is sent are written out with."""

    def __init__(self, case: Case, catalog: dict[str, Any]) -> None:
        self.revision = case.revision
        self.server_info = {name: value for name, value in catalog["server"].items() if name != "instructions"}

    def message(self, short: Any) -> Any:
        """One expected message, or several."""
        if isinstance(short, list):
            return [self.message(item) for item in short]
        if "$set" in short:
            return {"$set": self.message(short["$set"])}
        message = dict(short)
        is_short = "jsonrpc" not in message
        if is_short:
            message["jsonrpc"] = "2.0"
            if "result" in message:
                message["result"] = self._result(message["result"])
        if "error" in message:
            message["error"] = self._error(message["error"])
            if is_short and self.revision is not None and self.revision <= "2025-06-18":
                message.setdefault("id", None)
        return message

    def _result(self, result: Any) -> Any:
        if not isinstance(result, dict) or "$open" in result or self.revision is None:
            return result
        if self.revision != MODERN:
            return {name: value for name, value in result.items() if name not in ("ttlMs", "cacheScope")}
        result = {"resultType": "complete", "_meta": {META + "serverInfo": self.server_info}} | result
        cacheable = {"contents", "resources", "resourceTemplates", "supportedVersions", "tools", "prompts"}
        if result["resultType"] == "complete" and cacheable & result.keys():
            result = {"ttlMs": 0, "cacheScope": "private"} | result
        return result

    def _error(self, error: dict[str, Any]) -> dict[str, Any]:
        kind = error.get("kind")
        if kind is not None:
            message = "Resource not found" if kind == "not_found" else {"$line": True}
            error = {"code": CODES[kind][self.revision == MODERN], "message": message, "data": error}
        return {"message": {"$line": True}, "data": {"$any": True}} | error


def compare(expected: Any, actual: Any, bound: dict[str, str], path: str = "") -> str | None:
    """Where the two differ, and how; `None` if they do not. Remembers what `$bind` names."""
    if isinstance(expected, dict) and any(name.startswith("$") for name in expected):
        return _match(expected, actual, bound, path)
    if isinstance(expected, dict) and isinstance(actual, dict):
        for name in actual.keys() - expected.keys():
            return f"{path}/{name}: {actual[name]!r} is not expected"
        return _open(expected, actual, bound, path)
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        found = (compare(*pair, bound, f"{path}/{at}") for at, pair in enumerate(zip(expected, actual, strict=True)))
        return next(filter(None, found), None)
    same = expected == actual and isinstance(expected, bool) == isinstance(actual, bool)
    return None if same else f"{path}: {actual!r} instead of {expected!r}"


def _open(expected: dict[str, Any], actual: dict[str, Any], bound: dict[str, str], path: str) -> str | None:
    for name, item in expected.items():
        if name in actual:
            if differs := compare(item, actual[name], bound, f"{path}/{name}"):
                return differs
        elif not (isinstance(item, dict) and "$any" in item):
            return f"{path}/{name} is missing, expected {item!r}"
    return None


def _match(matcher: dict[str, Any], actual: Any, bound: dict[str, str], path: str) -> str | None:
    match matcher:
        case {"$any": _}:
            return None
        case {"$line": _} if isinstance(actual, str) and actual and not set("\r\n") & set(actual):
            return None
        case {"$bind": name} if isinstance(actual, str) and actual:
            bound[name] = actual
            return None
        case {"$in": choices} if any(compare(choice, actual, bound) is None for choice in choices):
            return None
        case {"$open": members} if isinstance(actual, dict):
            return _open(members, actual, bound, path)
        case {"$set": items} if isinstance(actual, list):
            return _set(items, actual, bound, path)
    return f"{path}: {actual!r} does not match {matcher!r}"


def _set(items: list[Any], actual: list[Any], bound: dict[str, str], path: str) -> str | None:
    left = list(actual)
    for item in items:
        found = next((at for at, value in enumerate(left) if compare(item, value, bound) is None), None)
        if found is None:
            return f"{path}: {item!r} is not among {actual!r}"
        del left[found]
    return f"{path}: {left[0]!r} is not expected" if left else None


def _revisions(given: Any) -> list[str | None]:
    if given is None:
        return [None]
    named = {"all": REVISIONS, "legacy": REVISIONS[:-1], "modern": REVISIONS[-1:]}
    chosen = named[given] if isinstance(given, str) else given
    return [revision for revision in REVISIONS if revision in chosen]


def _unrolled(steps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for step in steps:
        if "repeat" in step:
            for _ in range(step["repeat"]):
                yield from _unrolled(step["steps"])
        else:
            yield step
