"""A process of a server with a bus, for `test_bus.py`. Arguments: port, instance, URL of the bus, policy, folder.

It obeys lines of its input, and answers each with a line: `updated URI`, `lists`, `revoke NAME`, `metrics`.
"""

import json
import sys
import threading
from pathlib import Path

from mcp_resources import Auth, Context, Elicit, InputRequired, InvalidTokenError, ResourceServer, Verified

PORT, INSTANCE, BUS, GUARD, FOLDER = int(sys.argv[1]), *sys.argv[2:6]
KEYS = [b"0f1e2d3c4b5a69788796a5b4c3d2e1f0"]
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}

server = ResourceServer(
    "notes",
    keys=KEYS,
    bus=None if BUS == "none" else BUS,
    guard=GUARD,
    metrics=True,
    limits={"page": 2, "sessions_per_client": 5_000},
)


@server.resource("note://{id}")
def note(id: str) -> str:
    return f"{id} of {INSTANCE}"


@note.list
def notes() -> list[str]:
    return [f"{number}" for number in range(5)]


@server.resource("ask://name")
def asked(ctx: Context) -> str:
    if not ctx.inputs:
        raise InputRequired({"name": Elicit("Your name?", FORM)}, state={"from": INSTANCE})
    return f"{ctx.state['from']} asked, {INSTANCE} answers"


def is_revoked(name: str) -> bool:
    return (Path(FOLDER) / f"revoked-{name}").exists()


async def verify(token: str) -> Verified:
    if is_revoked(token):
        raise InvalidTokenError
    return Verified(token)


def obey() -> None:
    for line in sys.stdin:
        verb, _, word = line.strip().partition(" ")
        answer = "done"
        if verb == "updated":
            server.notify_updated(word)
        elif verb == "lists":
            server.notify_list_changed()
        elif verb == "revoke":
            (Path(FOLDER) / f"revoked-{word}").touch()
            server.revoke(word)
        elif verb == "metrics":
            answer = json.dumps(server.metrics_text())
        print(answer, flush=True)


def main() -> None:
    threading.Thread(target=obey, daemon=True).start()
    auth = Auth("http://localhost/mcp", ["http://localhost/auth"], verify) if "tokens" in sys.argv[6:] else None
    server.run("http", port=PORT, health="/health", instance=INSTANCE, auth=auth)


if __name__ == "__main__":
    main()
