"""The command `mcp-resources` and the servers of `tests/peers`; and what `lint` says of servers with one mistake."""

import asyncio
import json
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import planted
import pytest
from mcp_resources import Client
from peering import BELOW, COUNTER, LEGACY, LISTED, MODERN, PEERS, Peer, Way, ensure

SIX = ("python-sdk", "fastmcp", "ts-sdk", "ts-sdk-1", "rmcp", "ours-python")
Verb: TypeAlias = Callable[[Path, tuple[str, str], Peer], Awaitable[None]]
QUICK = "5"
"""How many resources `lint` reads: those before `peer://slow`."""
every_peer = pytest.mark.parametrize("peer", [PEERS[name] for name in SIX], ids=lambda peer: peer.name)


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    """Builds the peers: the patience of a test is not meant for a compiler."""
    ensure()


async def run(program: Path, *words: str) -> tuple[int, list[str], str]:
    """The status of the command, its lines, and what it says on standard error beside the server itself."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(program, *words, stdin=pipe, stdout=pipe, stderr=pipe)
    out, said = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode().splitlines(), said.decode()


async def lists(program: Path, server: tuple[str, str], peer: Peer) -> None:
    listed, table = await asyncio.gather(run(program, "ls", "--json", *server), run(program, "ls", *server))
    entries = [json.loads(line) for line in listed[1]]
    assert {entry["uri"] for entry in entries[:-1]} == LISTED
    assert (listed[0], entries[-1]["uriTemplate"]) == (0, BELOW)
    rows = [line.split() for line in table[1]]
    assert rows[0] == ["URI", "NAME", "TYPE", "SIZE"]
    assert ["peer://static", "static", "text/plain"] in [row[:3] for row in rows]


async def reads(program: Path, server: tuple[str, str], peer: Peer) -> None:
    text, blob, none = await asyncio.gather(
        run(program, "read", "peer://item/7", *server),
        run(program, "read", "peer://blob", "--json", *server),
        run(program, "read", "peer://none", *server),
    )
    assert text[:2] == (0, ["item 7"])
    (contents,) = json.loads(blob[1][0])
    assert (contents["uri"], contents["mimeType"]) == ("peer://blob", "application/octet-stream")
    assert none[:2] == (1, [])
    assert none[2].endswith("error: Resource not found: peer://none\n")


async def completes(program: Path, server: tuple[str, str], peer: Peer) -> None:
    assert (await run(program, "complete", BELOW, "id", "b", *server))[:2] == (0, ["beta"])


async def lints(program: Path, server: tuple[str, str], peer: Peer) -> None:
    options = ("--json", "--limit", QUICK, "--revision")
    found = await asyncio.gather(*(run(program, "lint", *options, era, *server) for era in peer.eras))
    for era, (status, lines, _) in zip(peer.eras, found, strict=True):
        findings = [json.loads(line)["rule"] for line in lines]
        expected = expected_findings(peer, era)
        assert (status, findings) == (bool(expected), expected), era


VERBS = [lists, reads, completes, lints]
every_verb = pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)


@every_verb
@every_peer
async def test_the_command_shows_what_a_peer_has(peer: Peer, verb: Verb, program: Path) -> None:
    """Section 5: `ls`, `read`, `complete` and `lint` over stdio show the same, whatever SDK serves."""
    ensure(peer.name)
    await verb(program, ("--server", shlex.join(peer.stdio())), peer)


@every_verb
@pytest.mark.parametrize("name", ["python-sdk-low", "ts-sdk-1", "ours-node"])
async def test_the_command_shows_what_an_endpoint_has(
    name: str, verb: Verb, program: Path, reached: dict[str, str]
) -> None:
    """Section 5: the same over Streamable HTTP, in the only era of one, and with pages of the others."""
    await verb(program, ("--server", reached[name]), PEERS[name])


def expected_findings(peer: Peer, era: str) -> list[str]:
    """The SDKs of Python and TypeScript have the modern code in both eras; rmcp does not say which URI it is."""
    if era == LEGACY:
        return [] if peer.missing_code(LEGACY) == -32002 else ["not-found-code"]
    return ["not-found-data"] if peer.name == "rmcp" else []


@pytest.mark.parametrize("name", [*SIX, "python-sdk-low"])
async def test_the_command_watches_a_peer(name: str, program: Path, reached: dict[str, str]) -> None:
    """S-13, section 5: `watch --json` writes a line for each change, in each era; where none is told of, it says so."""
    for era in PEERS[name].eras:
        await watches(program, Way(PEERS[name], "http", era), reached[name])


async def watches(program: Path, way: Way, url: str) -> None:
    words = ["watch", "--json", "--revision", way.era, COUNTER, "--server", url]
    if way.untold and not way.untold.startswith("legacy HTTP has no session"):
        status, lines, said = await run(program, *words)
        assert (status, lines) == (1, [])
        assert said == f"error: Failed to read resource: the server has no subscriptions ({COUNTER})\n"
        return
    process = await asyncio.create_subprocess_exec(
        program, *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    first = count(await process.stdout.readline())
    async with Client(url) as client:
        for step in (1, 2) if way.untold is None else ():
            await client.read("peer://touch")
            assert count(await process.stdout.readline()) == first + step
    process.send_signal(signal.SIGINT)
    assert await process.wait() == 130


def count(line: bytes) -> int:
    change = json.loads(line)
    assert change["uri"] == COUNTER
    return int(change["contents"][0]["text"])


@pytest.mark.parametrize("mistake", planted.MISTAKES)
async def test_lint_finds_each_mistake_and_nothing_else(mistake: str, program: Path) -> None:
    """Section 5: each mistake in each era, by its rule and what it is about; 0 without findings, 1 with some."""
    expected = planted.MISTAKES[mistake]
    for era in (LEGACY, MODERN):
        server = ("--", sys.executable, planted.__file__, mistake)
        status, lines, said = await run(program, "lint", "--json", "--revision", era, *server)
        findings = [json.loads(line) for line in lines]
        assert [(finding["rule"], finding["subject"]) for finding in findings] == expected
        assert all(finding["what"] and finding["fix"] for finding in findings)
        assert status == bool(expected)
        assert said.startswith("note: ")


async def test_lint_judges_no_server_that_it_cannot_ask(program: Path) -> None:
    """Section 5: 2 if a server cannot be started, does not speak the protocol, ends at once, or is not there."""
    for server in (
        ["--", "/nowhere/no-such-program"],
        ["--", sys.executable, "-c", "print('hello')"],
        ["--server", "http://127.0.0.1:1/mcp"],
        ["--revision", MODERN, "--", *PEERS["ts-sdk-1"].stdio()],
    ):
        status, lines, said = await run(program, "lint", *server)
        assert (status, lines) == (2, []), server
        assert "error: " in said
