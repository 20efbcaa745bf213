"""`serve … -- CMD`: our sources beside a server of any SDK, over stdio.

Each peer of `tests/peers` is served beside a folder and asked in each era that it speaks; a scripted server shows that
what is not ours passes byte for byte, and what happens when it ends, floods or never answers.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_resources import Client, McpError
from peering import PEERS, ensure

PATIENCE = 60.0
NAMES = ["python-sdk", "python-sdk-low", "fastmcp", "ts-sdk", "ts-sdk-1", "rmcp", "ours-python"]
ERAS = [(name, era) for name in NAMES for era in PEERS[name].eras]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "monday.md").write_text("Water the plants\n")
    return folder


def beside(program: Path, folder: Path, *command: str) -> list[str]:
    return [str(program), "serve", str(folder), "--", *command]


@pytest.mark.parametrize(("name", "era"), ERAS)
async def test_two_servers_are_one(program: Path, notes: Path, name: str, era: str) -> None:
    """S-02: the client of one pipe lists, reads, completes and watches what both have."""
    ensure(name)
    peer = PEERS[name]
    async with Client(beside(program, notes, *peer.stdio()), revision=era) as client:
        listed = {resource.uri async for resource in client.list()}
        assert {"file:///notes/monday.md", "peer://static", "peer://r/249"} <= listed
        templates = {template.uri_template async for template in client.list_templates()}
        assert {"file:///{root}/{+path}", "peer://item/{id}"} <= templates
        assert await client.read("file:///notes/monday.md") == "Water the plants\n"
        assert await client.read("peer://static") == "static text"
        assert await client.read("peer://blob") == bytes(range(256))
        assert await client.read("peer://item/alpha") == "item alpha"
        with pytest.raises(McpError):
            await client.read("peer://none")
        completed = await client.complete("file:///{root}/{+path}", "root", "")
        assert list(completed.values) == ["notes"]
        async with aclosing(client.watch("file:///notes/monday.md")) as changes:
            assert "plants" in str((await anext(changes)).contents)
            (notes / "monday.md").write_text("Read a book\n")
            async with asyncio.timeout(PATIENCE):
                assert "book" in str((await anext(changes)).contents)


@pytest.mark.parametrize("name", ["python-sdk-low", "ts-sdk", "ts-sdk-1", "rmcp", "ours-python"])
async def test_changes_of_the_other_server_are_heard(program: Path, notes: Path, name: str) -> None:
    """S-02: a subscription to a resource of the other server hears its changes."""
    ensure(name)
    async with (
        Client(beside(program, notes, *PEERS[name].stdio()), revision="2025-11-25") as client,
        aclosing(client.watch("peer://counter")) as changes,
    ):
        before = str((await anext(changes)).contents)
        await client.read("peer://touch")
        async with asyncio.timeout(PATIENCE):
            assert str((await anext(changes)).contents) != before


TOOLS = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("shop", log_level="WARNING")


@server.tool()
def add(a: int, b: int) -> int:
    return a + b


server.run()
"""


async def test_tools_of_both(program: Path, notes: Path, tmp_path: Path) -> None:
    """S-02: the official client calls the tools of both, and completes prompts of the other server alone."""
    script = tmp_path / "shop.py"
    script.write_text(TOOLS)
    words = beside(program, notes, sys.executable, str(script))
    async with AsyncExitStack() as stack:
        streams = await stack.enter_async_context(stdio_client(StdioServerParameters(command=words[0], args=words[1:])))
        session = await stack.enter_async_context(ClientSession(*streams))
        await session.initialize()
        listed = await session.list_tools()
        assert [tool.name for tool in listed.tools] == ["add", "list_resources", "read_resource"]
        added = await session.call_tool("add", {"a": 1, "b": 2})
        assert json.loads(added.content[0].text) == 3  # type: ignore[union-attr]
        read = await session.call_tool("read_resource", {"uri": "file:///notes/monday.md"})
        assert "plants" in read.content[0].text  # type: ignore[union-attr]


ODD = r"""
import sys

seen = open(sys.argv[1], "w")
for line in sys.stdin:
    seen.write(line)
    seen.flush()
    if '"initialize"' in line:
        print('{ "jsonrpc":"2.0" , "id":1, "result": {"protocolVersion":"2025-06-18",', end="")
        print('"capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}}', flush=True)
    elif '"tools/call"' in line:
        print('{"jsonrpc":"2.0",  "method":"notifications/progress",', end="")
        print('"params":{"progressToken":1,"progress":0.5}}', flush=True)
        print('{"result" : {"content":[ {"type":"text","text":"\\u00e9"} ]}, "id" :"a b","jsonrpc":"2.0"}', flush=True)
    elif '"exit"' in line:
        sys.exit(7)
"""

INITIALIZE = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    '"clientInfo":{"name":"t","version":"1"}}}'
)


class Pipe:
    """A process that is written to and read from line by line."""

    def __init__(self, words: list[str]) -> None:
        self.process = subprocess.Popen(words, stdin=-1, stdout=-1, stderr=-1, bufsize=0)

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")

    def line(self) -> bytes:
        """The next line, but for those of our own source, which looks at its folder when a session begins."""
        assert self.process.stdout is not None
        while b"resources/list_changed" in (line := self.process.stdout.readline()):
            pass
        return line

    def end(self) -> tuple[int, bytes]:
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        with self.process.stderr, self.process.stdout:
            return self.process.wait(PATIENCE), self.process.stderr.read()


@pytest.fixture
def odd(program: Path, notes: Path, tmp_path: Path) -> Callable[[], Pipe]:
    script = tmp_path / "odd.py"
    script.write_text(ODD)
    return lambda: Pipe(beside(program, notes, sys.executable, str(script), str(tmp_path / "seen")))


def test_what_is_not_ours_passes_byte_for_byte(odd: Callable[[], Pipe], tmp_path: Path) -> None:
    """S-02: calls, notifications and ids of the other server, in both directions."""
    pipe = odd()
    pipe.say(INITIALIZE)
    greeting = json.loads(pipe.line())["result"]
    assert greeting["serverInfo"]["name"] == "odd"
    assert set(greeting["capabilities"]) >= {"resources", "tools"}
    pipe.say('{"jsonrpc":"2.0","method":"notifications/initialized"}')
    call = '{"method":"tools/call", "id":"a b" ,"jsonrpc":"2.0","params":{"name":"x","arguments":{"n":1.50}}}'
    pipe.say(call)
    assert pipe.line() == (
        b'{"jsonrpc":"2.0",  "method":"notifications/progress","params":{"progressToken":1,"progress":0.5}}\n'
    )
    assert (
        pipe.line() == b'{"result" : {"content":[ {"type":"text","text":"\\u00e9"} ]}, "id" :"a b","jsonrpc":"2.0"}\n'
    )
    pipe.say("not JSON at all")
    pipe.say('{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"file:///notes/monday.md"}}')
    assert json.loads(pipe.line())["result"]["contents"][0]["text"] == "Water the plants\n"
    status, said = pipe.end()
    assert (status, said) == (0, b"")
    seen = (tmp_path / "seen").read_text().splitlines()
    assert seen[0] == INITIALIZE
    assert seen[2] == call
    assert "not JSON at all" in seen
    assert not [line for line in seen if "resources/read" in line]


def test_the_end_of_the_other_server_is_ours(odd: Callable[[], Pipe]) -> None:
    """S-02: with its status, and a sentence."""
    pipe = odd()
    pipe.say(INITIALIZE)
    pipe.line()
    pipe.say('{"jsonrpc":"2.0","id":2,"method":"exit"}')
    assert pipe.process.wait(PATIENCE) == 7
    status, said = pipe.end()
    assert status == 7
    assert b"it ended with exit status: 7" in said


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


STUBBORN = """
import os, signal, sys, time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "w").write(str(os.getpid()))
sys.stdout.write("x" * 100_000)
sys.stdout.flush()
while True:
    time.sleep(1)
"""


@pytest.mark.parametrize("ending", ["stdin", "SIGTERM"])
def test_no_process_is_left(program: Path, notes: Path, tmp_path: Path, ending: str) -> None:
    """S-02: a server that neither greets nor ends is ended, whatever ends this one."""
    script, seen = tmp_path / "stubborn.py", tmp_path / "pid"
    script.write_text(STUBBORN)
    config: dict[str, Any] = {
        "name": "n",
        "providers": [{"files": {"roots": "notes"}}],
        "guard": {"limits": {"grace": 200}},
    }
    path = tmp_path / "resources.json"
    path.write_text(json.dumps(config))
    pipe = Pipe([str(program), "serve", "--config", str(path), "--", sys.executable, str(script), str(seen)])
    pipe.say(INITIALIZE)
    while not (seen.exists() and seen.read_text()):
        assert pipe.process.poll() is None
    child = int(seen.read_text())
    if ending == "SIGTERM":
        pipe.process.send_signal(signal.SIGTERM)
    assert pipe.end()[0] == 0
    assert not alive(child)


FLOOD = """
import sys

sys.stdin.readline()
line = '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"' + "x" * 10_000 + '"}}\\n'
while True:
    sys.stdout.write(line)
"""


def test_a_server_that_floods(program: Path, notes: Path, tmp_path: Path) -> None:
    """S-02: it waits while the client does not read, and little is kept."""
    script = tmp_path / "flood.py"
    script.write_text(FLOOD)
    pipe = Pipe(beside(program, notes, sys.executable, str(script)))
    pipe.say(INITIALIZE)
    pipe.line()
    time.sleep(2)
    pages = int(Path(f"/proc/{pipe.process.pid}/statm").read_text().split()[1])
    assert pages * os.sysconf("SC_PAGE_SIZE") < 200_000_000
    pipe.process.send_signal(signal.SIGTERM)
    pipe.end()
    assert pipe.process.returncode is not None


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--", "no-such-program"], "no-such-program: it cannot be started"),
        (["--http", "0", "--", "cat"], "cannot be used with"),
    ],
)
def test_wrong_words(program: Path, notes: Path, words: list[str], text: str) -> None:
    ended = subprocess.run(
        [program, "serve", str(notes), *words], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert ended.returncode == 2
    assert text in ended.stderr
    assert ended.stdout == ""
