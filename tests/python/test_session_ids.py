"""The ids of sessions in every way to serve over HTTP: as many as a busy server gives out."""

import asyncio
import re
from typing import Any

import pytest
from sites import Asgi, Elsewhere, Native, Response, Site
from wire import Case, write

WAYS = ["asgi", "python", "rust", "node run", "node nodeHandler", "node fetch"]
COUNT = 1_700
"""For each way: over 10,000 in all."""
AT_ONCE = 100
SSE_COUNT = 200
LIMITS = {"sessions_per_client": COUNT}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "client", "version": "1"}}
INITIALIZE = write({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode()
HOST = (b"host", b"localhost:8000")
HEADERS = [HOST, (b"content-type", b"application/json"), (b"accept", b"application/json, text/event-stream")]
UNGUESSABLE = re.compile(r"[A-Za-z0-9_-]{22,}")
"""128 bits or more, of characters that need no escape in a header or a query."""
seen: set[str] = set()


def opened(way: str) -> Site:
    return Asgi() if way == "asgi" else Native() if way == "python" else Elsewhere(*way.split())


async def ids_of(site: Site, rules: dict[str, Any], count: int, ask: Any, found: Any) -> list[str]:
    """Asks so often, some at once."""
    await site.start(
        Case("session ids", None, {"name": "many sessions", "options": {"limits": LIMITS}, "rules": rules, "steps": []})
    )
    ids: list[str] = []
    try:
        while len(ids) < count:
            responses: list[Response] = [ask(site) for _ in range(AT_ONCE)]
            await site.settle(lambda given=responses: all(map(found, given)), is_quiet=False)
            ids += [str(found(response)) for response in responses]
            for response in responses:
                response.leave()
    finally:
        await site.end()
        if isinstance(site, Elsewhere):
            await asyncio.to_thread(site.close)
    return ids


def check(ids: list[str], count: int) -> None:
    assert len(set(ids)) == len(ids) == count
    assert not seen & set(ids), "another server gave out the same"
    seen.update(ids)
    assert all(UNGUESSABLE.fullmatch(id) for id in ids), ids[0]
    assert len({len(id) for id in ids}) == 1
    # No position is always the same, as it would be in a counter or a time.
    assert all(len(set(column)) > 1 for column in zip(*ids, strict=True)), ids[:3]


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("way", WAYS)
async def test_session_ids_are_unique_and_cannot_be_guessed(way: str) -> None:
    """R-169."""

    def ask(site: Site) -> Response:
        return site.request("POST", "/mcp", list(HEADERS), INITIALIZE)

    def found(response: Response) -> str | None:
        return response.headers.get("mcp-session-id")

    check(await ids_of(opened(way), {}, COUNT, ask, found), COUNT)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("way", WAYS)
async def test_the_ids_of_the_transport_of_2024_11_05(way: str) -> None:
    """R-192."""

    def ask(site: Site) -> Response:
        return site.request("GET", "/sse", [HOST, (b"accept", b"text/event-stream")], b"")

    def found(response: Response) -> str | None:
        match = re.search(rb"session_id=(\S+)", response.body)
        return match and match[1].decode()

    check(await ids_of(opened(way), {"sse24": True}, SSE_COUNT, ask, found), SSE_COUNT)
