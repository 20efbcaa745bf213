"""A process of a server with a bus, for `test_bus.py`. Arguments: port, instance, URL of the bus, policy, folder.

After them `tokens`, or `name=NAME`. It obeys lines of its input, and answers each with a line: `updated URI`, `lists`,
`revoke NAME`, `metrics`, `flood COUNT`, `load RATE SECONDS URIS`, `cost CALLS`.
"""

import json
import sys
import threading
import time
from pathlib import Path

from mcp_resources import Auth, Context, Elicit, InputRequired, InvalidTokenError, ResourceServer, Verified

PORT, INSTANCE, BUS, GUARD, FOLDER = int(sys.argv[1]), *sys.argv[2:6]
WORDS = sys.argv[6:]
NAME = next((word.removeprefix("name=") for word in WORDS if word.startswith("name=")), "notes")
KEYS = [b"0f1e2d3c4b5a69788796a5b4c3d2e1f0"]
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}

server = ResourceServer(
    NAME,
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


def load(rate: int, seconds: int, uris: int) -> int:
    """Announces changes of `uris` resources in turn at a rate, in steps of 10 ms. The number in a second."""
    begun, made = time.monotonic(), 0
    while (passed := time.monotonic() - begun) < seconds:
        for _ in range(min(int(passed * rate) - made, rate // 10)):
            server.notify_updated(f"note://{made % uris}")
            made += 1
        time.sleep(0.01)
    return int(made / (time.monotonic() - begun))


def cost(calls: int) -> float:
    """Microseconds of a call of `notify_updated` for another URI each time, at best of thousands."""
    uris = [f"note://{number}" for number in range(1_000)]
    best = float("inf")
    for _ in range(calls // 1_000):
        begun = time.perf_counter()
        for uri in uris:
            server.notify_updated(uri)
        best = min(best, time.perf_counter() - begun)
    return best / len(uris) * 1e6


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
        elif verb == "flood":
            for number in range(int(word)):
                server.notify_updated(f"note://{number}")
        elif verb == "load":
            answer = f"{load(*(int(part) for part in word.split()))}"
        elif verb == "cost":
            answer = f"{cost(int(word))}"
        elif verb == "metrics":
            answer = json.dumps(server.metrics_text())
        print(answer, flush=True)


def main() -> None:
    threading.Thread(target=obey, daemon=True).start()
    auth = Auth("http://localhost/mcp", ["http://localhost/auth"], verify) if "tokens" in WORDS else None
    server.run("http", port=PORT, health="/health", instance=INSTANCE, auth=auth)


if __name__ == "__main__":
    main()
