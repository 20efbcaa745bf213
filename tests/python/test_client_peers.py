"""Our client and the servers of `tests/peers`: each over both transports, in each era, and in the one negotiated."""

import asyncio
import json
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp_resources import AccessDeniedError, Client, ReadFailedError, ResourceNotFoundError
from peering import BELOW, COUNTER, LISTED, MODERN, PEERS, TRANSPORTS, UNTOLD, WAYS, Transport, Way, ensure

NEGOTIATED = [Way(peer, transport, peer.eras[-1]) for peer in PEERS.values() for transport in TRANSPORTS]
CASES = [pytest.param(way, way.era, id=str(way)) for way in WAYS]
CASES += [pytest.param(way, None, id=f"{way.peer.name} {way.transport} negotiated") for way in NEGOTIATED]
every_case = pytest.mark.parametrize(("way", "revision"), CASES)
# The list is looked at above the transport: one peer that starts quickly is enough for the other.
LISTED_CASES = [case for case in CASES if str(case.id).startswith("rmcp") or " http " in str(case.id)]
LATE = 6
"""Seconds after which a server starts that has been asked in both eras by then."""


@asynccontextmanager
async def connected(way: Way, reached: dict[str, str], note: Path, **options: Any) -> AsyncIterator[Client]:
    """A client. Over stdio the file `note` has the process' number, and nothing is left of it in the end."""
    if way.transport == "http":
        async with Client(reached[way.peer.name], **options) as client:
            yield client
        return
    ensure(way.peer.name)
    async with Client(noting(way.peer.stdio(), note), **options) as client:
        yield client
    assert not Path(f"/proc/{int(note.read_text())}").exists()


def noting(command: list[str], note: Path, after: int = 0) -> list[str]:
    """A command that writes its process' number into a file, waits, and starts."""
    return ["sh", "-c", f"echo $$ > {shlex.quote(str(note))}; sleep {after}; exec {shlex.join(command)}"]


@every_case
async def test_a_peer_is_used(way: Way, revision: str | None, reached: dict[str, str], tmp_path: Path) -> None:
    """S-12, S-13, S-14, R-061, R-101, R-127: whatever SDK serves, in whatever era, the client shows the same."""
    async with connected(way, reached, tmp_path / "pid", revision=revision) as client:
        assert (await client.about()).revision == way.era
        await lists(client)
        await reads(client)
        await completes(client)
        await gives_up(client)
        await watches(client, way)
        # What is in flight at the end does not keep the server from ending, though rmcp waits for its handlers.
        slow = asyncio.create_task(client.read("peer://slow"))
        assert await client.read("peer://static") == "static text"
    with pytest.raises(ReadFailedError) as ended:
        await slow
    assert ended.value.kind == "cancelled"


async def lists(client: Client) -> None:
    found = {resource.uri: resource async for resource in client.list()}
    assert found.keys() == LISTED
    assert (found["peer://json"].name, found["peer://json"].mime_type) == ("json", "application/json")
    assert (found["peer://r/249"].name, found["peer://r/249"].mime_type) == ("r-249", "text/plain")
    (template,) = [template async for template in client.list_templates()]
    assert (template.uri_template, template.name, template.mime_type) == (BELOW, "item", "text/plain")
    assert client.failures == {}


async def reads(client: Client) -> None:
    assert await client.read("peer://static") == "static text"
    text = await client.read("peer://json")
    assert isinstance(text, str)
    assert json.loads(text) == {"a": 1, "b": [True, None]}
    (blob,) = await client.read_contents("peer://blob")
    assert (blob.uri, blob.mime_type, blob.body) == ("peer://blob", "application/octet-stream", bytes(range(256)))
    assert await client.read("peer://item/7") == "item 7"
    assert await client.read("peer://r/249") == "resource 249"
    with pytest.raises(ResourceNotFoundError) as caught:
        await client.read("peer://none")
    assert (str(caught.value), caught.value.uri) == ("Resource not found: peer://none", "peer://none")


async def completes(client: Client) -> None:
    for prefix, words in (("", ["alpha", "beta", "gamma"]), ("b", ["beta"]), ("x", [])):
        assert (await client.complete(BELOW, "id", prefix)).values == words


async def gives_up(client: Client) -> None:
    """A slow read delays no other, and ends when its time is over or nobody waits for it."""
    with pytest.raises(ReadFailedError, match="no answer within 50 ms") as late:
        await client.read("peer://slow", timeout=50)
    assert late.value.kind == "timeout"
    slow = asyncio.create_task(client.read("peer://slow"))
    assert await client.read("peer://r/0") == "resource 0"
    assert not slow.done()
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert await client.read("peer://r/1") == "resource 1"


async def watches(client: Client, way: Way) -> None:
    """The contents at first, and after each change; or what is wrong, if the server says that it tells of none."""
    changes = client.watch(COUNTER)
    if way.untold and not way.untold.startswith("legacy HTTP has no session"):
        with pytest.raises(ReadFailedError, match="the server has no subscriptions") as none:
            await anext(changes)
        assert none.value.kind == "unsupported"
        return
    first = await anext(changes)
    assert isinstance(first.contents, str)
    for step in (1, 2):
        await client.read("peer://touch")
        if way.untold:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(changes), UNTOLD)
            break
        change = await anext(changes)
        assert (change.uri, change.contents) == (COUNTER, str(int(first.contents) + step))
    await changes.aclose()


@pytest.mark.parametrize(("way", "revision"), LISTED_CASES)
async def test_an_allow_list_lies_over_a_peer(
    way: Way, revision: str | None, reached: dict[str, str], tmp_path: Path
) -> None:
    """S-10, S-11, S-12: what is not allowed is not seen, whatever the server shows."""
    globs = ["peer://r/1*", "peer://item/a*"]
    async with connected(way, reached, tmp_path / "pid", revision=revision, resources=globs) as client:
        assert {resource.uri async for resource in client.list()} == {
            uri for uri in LISTED if uri[7:].startswith("r/1")
        }
        assert [template.uri_template async for template in client.list_templates()] == [BELOW]
        assert await client.read("peer://item/a1") == "item a1"
        assert (await client.complete(BELOW, "id", "b")).values == ["beta"]
        for uri in ("peer://static", "peer://item/b", "peer://none", COUNTER):
            with pytest.raises(AccessDeniedError) as denied:
                await client.read(uri)
            assert str(denied.value) == f"Access denied: {uri}"
            with pytest.raises(AccessDeniedError):
                await anext(client.watch(uri))


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_legacy_peer_does_not_have_the_modern_revision(
    transport: Transport, reached: dict[str, str], tmp_path: Path
) -> None:
    """R-026: with a revision that the server does not have there is no connection, and the error says so."""
    way = Way(PEERS["ts-sdk-1"], transport, MODERN)
    async with connected(way, reached, tmp_path / "pid", revision=MODERN) as client:
        with pytest.raises(ReadFailedError, match="the server cannot be reached: ") as failed:
            await client.read("peer://static")
        assert failed.value.kind == "unreachable"


async def test_a_peer_that_starts_slowly_is_asked_in_both_eras_and_used_in_one(tmp_path: Path) -> None:
    """R-026, S-13: the older handshake is sent into the silence, and decides where it is accepted.

    The TypeScript SDK accepts it after `server/discover` and then speaks the older era; python-sdk refuses it.
    """
    names = ("python-sdk-low", "ts-sdk", "ts-sdk-1", "rmcp", "ours-node")
    ensure(*names)

    async def use(name: str) -> str:
        async with Client(noting(PEERS[name].stdio(), tmp_path / name, after=LATE)) as client:
            changes = client.watch(COUNTER)
            assert (await anext(changes)).contents == "0"
            await client.read("peer://touch")
            assert (await anext(changes)).contents == "1"
            await changes.aclose()
            return (await client.about()).revision

    revisions = dict(zip(names, await asyncio.gather(*map(use, names)), strict=True))
    assert revisions["python-sdk-low"] == MODERN
    assert revisions["ts-sdk-1"] != MODERN
