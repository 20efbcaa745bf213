"""Servers that are used by tools alone: the README's from the entry that `install` prints, and those of `serve`."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from test_guides import Session, blocks, newer_node

MODERN, LEGACY = "2026-07-28", "legacy"
BIN = Path(sys.executable).parent
CLIENT = """
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const { entry, env, cwd, tool, pin } = JSON.parse(process.argv[1]);
const client = new Client(
  { name: 'test', version: '1' },
  { versionNegotiation: { mode: pin === null ? 'legacy' : { pin } } },
);
await client.connect(new StdioClientTransport({ ...entry, env: { ...env, ...entry.env }, cwd, stderr: 'inherit' }));
const tools = (await client.listTools()).tools.map(({ name }) => name);
const called = await client.callTool({ name: tool, arguments: { day: 'friday', text: 'Call Bea' } });
const read = await client.readResource({ uri: 'notes://day/friday' });
const listed = (await client.listResources()).resources.map(({ uri }) => uri);
await client.close();
console.log(JSON.stringify({ tools, said: called.content[0].text, note: read.contents[0].text, listed }));
"""
SERVERS = {
    "python": ("notes.py", "write_note", "The note of friday is written.", lambda: [str(BIN / "python"), "notes.py"]),
    "typescript": (
        "notes.ts",
        "set_note",
        "The note of friday is set.",
        lambda: [str(newer_node() / "node"), "notes.ts"],
    ),
}


def printed_entry(folder: Path, command: list[str]) -> dict[str, Any]:
    """The entry for Claude Code that `install` prints."""
    install = [str(BIN / "mcp-resources"), "install", "claude-code", "--json", "--", *command]
    done = subprocess.run(install, cwd=folder, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    entry: dict[str, Any] = json.loads(done.stdout)
    assert entry.pop("type") == "stdio"
    return entry


@pytest.fixture(params=SERVERS)
def first_example(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[dict[str, Any], Path, str, str]:
    """The README's server of a language as it is there, in a folder of its own, and the entry for it."""
    file, tool, said, command = SERVERS[request.param]
    with ExitStack() as stack:
        session = Session(tmp_path, 0, stack, runs_typescript=False)
        (body,) = [block.body for block in blocks("README.md") if block.info.endswith(f" {file}")]
        session.write(file, body)
    return printed_entry(tmp_path, command()), tmp_path, tool, said


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_the_readme_from_the_printed_entry(
    first_example: tuple[dict[str, Any], Path, str, str], mode: str
) -> None:
    """S-60: the official Python client starts what the entry says, and uses the tool and the resource."""
    entry, folder, tool, said = first_example
    parameters = StdioServerParameters(**entry, cwd=folder)
    async with Client(parameters, mode=mode, cache=None) as client:
        assert [own.name for own in (await client.list_tools()).tools] == [tool]
        called = await client.call_tool(tool, {"day": "friday", "text": "Call Bea"})
        assert called.content[0].text == said  # type: ignore[union-attr]
        assert (await client.read_resource("notes://day/friday")).contents[0].text == "Call Bea"  # type: ignore[union-attr]
        listed = [str(resource.uri) for resource in (await client.list_resources()).resources]
        assert listed == ["notes://all", *(f"notes://day/{day}" for day in ("friday", "monday", "tuesday"))]


@pytest.mark.parametrize("pin", [None, MODERN])
def test_the_readme_with_the_client_of_typescript(
    first_example: tuple[dict[str, Any], Path, str, str], pin: str | None
) -> None:
    """S-60: the official TypeScript client does the same."""
    entry, folder, tool, said = first_example
    given = {"entry": entry, "env": dict(os.environ), "cwd": str(folder), "tool": tool, "pin": pin}
    script = folder / "client.mjs"
    script.write_text(CLIENT.replace("process.argv[1]", "process.argv[2]"), "utf-8")
    command = [str(newer_node() / "node"), str(script), json.dumps(given)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    days = [f"notes://day/{day}" for day in ("friday", "monday", "tuesday")]
    expected = {"tools": [tool], "said": said, "note": "Call Bea", "listed": ["notes://all", *days]}
    assert json.loads(done.stdout) == expected


class Model:
    """What a model can do: call tools. Prints each call with the beginning of its result, as a transcript."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, tool: str, **arguments: object) -> str:
        result = await self._client.call_tool(tool, arguments)
        text = "\n".join(block.text for block in result.content)  # type: ignore[union-attr]
        lines = text.split("\n")
        shown = [line[:160] for line in lines[:6]] + (["…"] if len(lines) > 6 else [])
        print(f"> {tool}({json.dumps(arguments, ensure_ascii=False)})", *(f"  {line}" for line in shown), sep="\n")
        assert not result.is_error, text
        return text


def project(folder: Path) -> Path:
    """A repository with documentation and a database."""
    for path, text in {
        "README.md": "# Shop\n\nSells tea.\n",
        "src/price.py": "def price(cups):\n    return 2 * cups\n",
        "docs/index.md": "# Handbook\n\nStart here.\n",
        "docs/guide/refunds.md": "# Refunds\n\n## Within 30 days\n\nA customer gets the money back.\n",
    }.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    with sqlite3.connect(folder / "shop.db") as shop:
        shop.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
        shop.execute("INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bea')")
    (folder / ".gitignore").write_text("shop.db\n", "utf-8")
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    for arguments in (["init", "-q", "-b", "main"], ["add", "-A"], [*who, "commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *arguments], cwd=folder, check=True)
    (folder / "src/price.py").write_text("def price(cups):\n    return 3 * cups\n", "utf-8")
    subprocess.run(["git", *who, "commit", "-qam", "Raise the price"], cwd=folder, check=True)
    return folder


def serving(folder: Path, *words: str) -> StdioServerParameters:
    return StdioServerParameters(command=str(BIN / "mcp-resources"), args=["serve", *words], cwd=folder)


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_a_folder_by_tools_alone(mode: str, tmp_path: Path) -> None:
    """S-62: what `serve .` serves is found and read by tools."""
    async with Client(serving(project(tmp_path), "."), mode=mode, cache=None) as client:
        model = Model(client)
        assert {"list_resources", "read_resource"} <= {tool.name for tool in (await client.list_tools()).tools}
        root = tmp_path.name
        found = await model.call("list_resources", query="price")
        assert found.split("\n")[0].startswith(f"file:///{root}/src/price.py | src/price.py | ")
        read = await model.call("read_resource", uri=f"file:///{root}/src/price.py", range="2-2")
        assert read.startswith("    return 3 * cups")


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_documentation_code_and_data_by_tools_alone(mode: str, tmp_path: Path) -> None:
    """S-62, S-64: the official client finds, searches and reads by tools, without knowing a URI."""
    words = ("docs:handbook=docs", "git:shop=.", "db:shop=sqlite:shop.db,customers")
    async with Client(serving(project(tmp_path), *words), mode=mode, cache=None) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        expected = ["db_row", "db_rows", "docs_search", "git_diff", "git_log", "git_show"]
        assert [*tools] == [*expected, "list_resources", "read_resource"]
        assert tools["docs_search"].input_schema["required"] == ["q"]
        model = Model(client)
        listed = await model.call("list_resources", query="handbook")
        assert "docs:///handbook/guide/refunds.md" in listed
        hits = json.loads(await model.call("docs_search", q="customer money"))["hits"]
        page = await model.call("read_resource", uri=hits[0]["uri"])
        assert "A customer gets the money back." in page
        log = json.loads(await model.call("git_log", n=2))
        assert [commit["subject"] for commit in log["commits"]] == ["Raise the price", "Begin"]
        difference = await model.call("git_diff", **{"from": "HEAD~1", "to": "HEAD"})
        assert "+    return 3 * cups" in difference
        shown = await model.call("git_show", id=log["commits"][0]["id"])
        assert "src/price.py" in shown
        rows = json.loads(await model.call("db_rows"))["rows"]
        assert [row["name"] for row in rows] == ["Ada", "Bea"]
        assert "Bea" in await model.call("db_row", key="2")
