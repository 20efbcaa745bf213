"""The command and the client with servers that are odd as real ones are: what they list is shown, read and named."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import quirky_server as quirky
from mcp import StdioServerParameters
from mcp.client.session import ClientSession
from mcp.client.stdio import stdio_client
from mcp_resources import AccessDeniedError, Client, InvalidUriError, ReadFailedError
from test_command import on_terminal, run
from vectors import ROOT

__all__ = ["run"]

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]
CLEAR = ["plain", "surrogate", "nan", "both", "string-id", "float-id", "no-version", "indented", "mark"]
LOW_LEVEL = """
import asyncio, sys
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def resources(context, params):
    return types.ListResourcesResult(resources=[types.Resource(uri="l://a", name="a")])

async def read(context, params):
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri="l://a", text="hi")])

async def tools(context, params):
    return types.ListToolsResult(tools=[])

async def prompts(context, params):
    return types.ListPromptsResult(prompts=[])

HANDLERS = {
    "resources": {"on_list_resources": resources, "on_read_resource": read},
    "tools": {"on_list_tools": tools},
    "prompts": {"on_list_prompts": prompts},
}

async def main():
    server = Server("low", **HANDLERS[sys.argv[1]])
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

asyncio.run(main())
"""


def server(quirk: str) -> list[str]:
    return [sys.executable, quirky.__file__, quirk]


async def official(quirk: str) -> tuple[list[str], list[str]]:
    """The URIs that the official client lists, and what it reads under each."""
    program, *arguments = server(quirk)
    async with (
        stdio_client(StdioServerParameters(command=program, args=arguments)) as (read, write),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        uris = [str(resource.uri) for resource in (await session.list_resources()).resources]
        texts = [(await session.read_resource(uri)).contents[0] for uri in uris]
        return uris, [getattr(text, "text", "") for text in texts]


async def test_what_a_server_lists_is_shown_and_read_as_it_is() -> None:
    """As the official client: each text is listed, and sent back unchanged, whether or not it is a URI."""
    async with Client(server("plain")) as client:
        uris = [resource.uri async for resource in client.list()]
        texts = [await client.read(uri) for uri in uris]
    assert uris == quirky.URIS
    assert texts == [f"read {uri}" for uri in uris]
    assert (uris, texts) == await official("plain")


async def test_an_allow_list_is_asked_in_the_canonical_form(tmp_path: Path) -> None:
    """S-11, S-12: no spelling opens what is closed; what is no URI at all matches no glob."""
    program, *arguments = server("plain")
    entry = {"command": program, "args": arguments, "resources": ["q://a*", "q://日*", "q://twice"]}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"quirky": entry}}))
    async with Client.from_config(config) as client:
        assert [resource.uri async for resource in client.list()] == [
            "q://a b",
            "q://日本語 x",
            "q://a#b#c",
            "q://twice",
            "q://twice",
        ]
        assert await client.read("q://a%20b") == "read q://a%20b"
        assert await client.read("Q://a b") == "read Q://a b"
        for closed in ("q://plain", "q://%70lain", "q://a\\b", "q://a ", "q://a\t/../plain", "q://100%", "C:\\dir"):
            with pytest.raises(AccessDeniedError):
                await client.read(closed)
        for no_uri in ("/etc/passwd", "not a uri", "", " q://a"):
            with pytest.raises(InvalidUriError):
                await client.read(no_uri)


def test_what_is_left_out_is_named(run: Run) -> None:
    """Without `--verbose`: which entry, and why."""
    done = run("ls", "--json", "--", *server("odd"))
    assert done.returncode == 0
    assert [json.loads(line)["uri"] for line in done.stdout.splitlines()] == quirky.URIS
    first = len(quirky.URIS) + 1
    assert done.stderr.decode().splitlines() == [
        f'warning: quirky_server: left out: entry {first} of "resources", {{"name": "no uri"}}: it has no "uri"',
        f'warning: quirky_server: left out: entry {first + 1} of "resources", {{"uri": 7, "name": "number"}}: '
        'its "uri" is not a string',
        f'warning: quirky_server: left out: entry {first + 2} of "resources", "text": it is not an object',
        f'warning: quirky_server: left out: entry {first + 3} of "resources", null: it is not an object',
    ]


@pytest.mark.parametrize("quirk", CLEAR)
async def test_answers_that_are_clear_are_used(quirk: str) -> None:
    async with Client(server(quirk), timeout=20_000) as client:
        assert len([resource async for resource in client.list()]) == len(quirky.URIS)
        text = await client.read("q://plain")
    assert text == ("read\ufffd q://plain" if quirk == "surrogate" else "read q://plain")


@pytest.mark.parametrize("quirk", quirky.BLOBS)
def test_every_form_of_base64_is_read(run: Run, quirk: str) -> None:
    done = run("read", "q://blob", "--", *server(quirk))
    assert done.stdout == quirky.BLOB + (b"x" if quirk == "bare" else b"")


async def test_errors_say_what_is_wrong() -> None:
    async with Client(server("nothing")) as client:
        with pytest.raises(ReadFailedError, match="its \"blob\" is not base64: '\\?' is no character of base64"):
            await client.read("q://x")


def test_a_list_that_repeats_its_cursor_is_printed_once(run: Run) -> None:
    done = run("ls", "--json", "--", *server("same"))
    assert [json.loads(line)["uri"] for line in done.stdout.splitlines()] == ["q://1", "q://2"]
    assert (done.returncode, b"repeats a cursor" in done.stderr) == (1, True)


@pytest.mark.parametrize("low_level", [False, True])
def test_servers_without_a_method_have_nothing_of_its_kind(run: Run, tmp_path: Path, low_level: bool) -> None:
    """R-012: of templates, of resources, or of both."""
    program = tmp_path / "low.py"
    program.write_text(LOW_LEVEL)
    low = lambda kind: [sys.executable, str(program), kind]  # noqa: E731
    for quirk in ("resources",) if low_level else ("null", "surrogate", "templates"):
        done = run("ls", "--json", "--", *(low(quirk) if low_level else server(quirk)))
        assert (done.returncode, done.stderr) == (0, b"")
        assert bool(done.stdout) == (quirk != "null")
    for quirk in ("tools", "prompts") if low_level else ("tools",):
        words = low(quirk) if low_level else server(quirk)
        for command in (["ls"], ["ls", "--json"], ["lint"]):
            done = run(*command, "--", *words)
            assert (done.returncode, done.stdout) == (0, b""), done.stderr
            assert done.stderr == b"note: the server has no resources\n"
        done = run("read", "a://b", "--", *words)
        assert (done.returncode, done.stderr) == (
            1,
            b"error: Failed to read resource: the server has no resources\n",
        )
        done = run("complete", "a://{b}", "b", "--", *words)
        assert (done.returncode, done.stderr) == (1, b"error: the server has no completions\n")


def test_what_a_child_prints_does_not_move_the_terminal(run: Run, program: Path, tmp_path: Path) -> None:
    """A terminal gets the escapes of a child in letters; a pipe gets its bytes."""
    child = tmp_path / "child.py"
    said = b"\x1b]0;title\x07\x1b[2J\x9b\xc2\x9b1m\xe2\x80\xaeexe\r\xff caf\xc3\xa9\r\n"
    child.write_text(
        f"import sys\nsys.stderr.buffer.write({said!r})\nsys.stderr.flush()\n"
        f"sys.argv[1:] = ['plain']\nexec(open({quirky.__file__!r}).read())"
    )
    words = ["read", "q://plain", "--", sys.executable, str(child)]
    done = run(*words)
    assert (done.stdout, done.stderr) == (b"read q://plain", said)
    status, shown = on_terminal(program, words, tmp_path)
    assert status == 0, shown
    assert "\\x1b]0;title\\x07\\x1b[2J\\x9b\\u{9b}1m\\u{202e}exe\\r\\xff café\r\n" in shown
    assert not any(c in shown for c in "\x1b\x07\x9b\u202e")


def test_json_of_a_server_does_not_move_the_terminal(program: Path, tmp_path: Path) -> None:
    """`--json` on a terminal is the same value, without a character that the terminal obeys."""
    odd = tmp_path / "odd.py"
    text = "\x9b2J\u202e\x7f\U000e0041"
    odd.write_text(
        f"import quirky_server as quirky\nquirky.URIS[:] = ['q://x']\nnative = quirky.json.dumps\n"
        f"quirky.json.dumps = lambda reply: native(reply, ensure_ascii=False).replace('read q', {text!r} + 'read q')"
        f".replace('\"x\"', '\"' + {text!r} + '\"')\nquirky.main('plain')"
    )
    command = ["--", "env", f"PYTHONPATH={ROOT / 'tests' / 'python'}", sys.executable, str(odd)]
    for words, find in (
        (["ls", "--json"], lambda found: found["name"]),
        (["read", "q://x", "--json"], lambda found: found[0]["text"].removesuffix("read q://x")),
    ):
        status, shown = on_terminal(program, [*words, *command], tmp_path)
        assert status == 0, shown
        assert not any(c in shown for c in text + "\x1b"), shown
        assert find(json.loads(shown.splitlines()[0])) == text


SECRET = "t0ken-of-mine"


@pytest.mark.parametrize(
    "words",
    [
        ["--header", f"Authorization Bearer {SECRET}", "--server", "http://127.0.0.1:1/mcp"],
        [f"--header=Authorization Bearer {SECRET}", "--server", "http://127.0.0.1:1/mcp"],
        ["--header", f"Authorization Bearer: {SECRET}", "--server", "http://127.0.0.1:1/mcp"],
        ["--header", f"Authorization: {SECRET}\x01", "--server", "http://127.0.0.1:1/mcp"],
        ["--header", "Authorization:", "Bearer", SECRET, "--server", "http://127.0.0.1:1/mcp"],
        ["--header", f"Authorization: {SECRET}", "--", "/bin/true"],
        ["--env", SECRET, "--", "/bin/true"],
        ["--env", f"={SECRET}", "--", "/bin/true"],
        ["--env", f"A={SECRET}", "--server", "http://127.0.0.1:1/mcp"],
        ["--server", f"ws://me:{SECRET}@127.0.0.1/mcp"],
        ["--server", f"me:{SECRET}@127.0.0.1"],
        ["--server", f"A={SECRET} 'python"],
        ["--server", f"http://me:{SECRET}@127.0.0.1:1/mcp?key={SECRET}"],
        ["--server", f"http://127.0.0.1:1/mcp?key={SECRET}", "--header", f"X: {SECRET}"],
    ],
)
def test_no_message_repeats_a_secret(run: Run, words: list[str]) -> None:
    """Headers, variables and parts of a URL are in no message, however wrong their form."""
    for command in (["ls"], ["read", "a://b"], ["lint"], ["ls", "--verbose"]):
        done = run(*command, *words)
        assert done.returncode in (1, 2), command
        assert SECRET.encode() not in done.stdout + done.stderr, done.stderr
        assert b"error: " in done.stderr


def test_a_file_with_secrets_is_for_its_owner(program: Path, tmp_path: Path) -> None:
    """A new file has the mode 0600; the mode of another is kept, and a link is followed."""
    words = ["install", "cursor", "--name", "x", "--header", "Authorization: Bearer t", "--server", "http://a/mcp"]
    file = tmp_path / ".cursor" / "mcp.json"
    mode = lambda: stat.S_IMODE(file.stat().st_mode)  # noqa: E731
    before = os.umask(0o022)
    try:
        status, shown = on_terminal(program, words, tmp_path, "y\n")
    finally:
        os.umask(before)
    assert (status, mode()) == (0, 0o600), shown
    assert "others can read" not in shown
    file.chmod(0o644)
    real = tmp_path / "real.json"
    file.rename(real)
    file.symlink_to(real)
    status, shown = on_terminal(program, words, tmp_path, "y\n")
    assert (status, mode(), file.is_symlink()) == (0, 0o644, True), shown
    assert "chmod 600" in shown
    real.unlink()
    status, shown = on_terminal(program, words, tmp_path, "y\n")
    assert status == 1
    assert "it is a link to nothing" in shown
    assert not real.exists()
