"""`dev`: a server is started again when its sources change, and the official client stays connected."""

import asyncio
import functools
import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated
from process import eventually

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

ROOT = Path(__file__).resolve().parents[2]
MODERN, LEGACY = "2026-07-28", "legacy"
PATIENCE = 120.0
SERVER = """
import time
from mcp_resources import ResourceServer

server = ResourceServer("dev", version="1.0.0")

@server.tool
def slow(seconds: float) -> str:
    "Takes its time."
    time.sleep(seconds)
    return "done"
"""
RESOURCE = """
@server.resource("notes://{name}")
def {name}() -> str:
    "{about}"
    return "{text}"
"""


def patient(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Runs a test that waits for several starts of an interpreter."""

    @functools.wraps(test)
    def run(*given: object, **named: object) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(2 * PATIENCE):
                await test(*given, **named)

        asyncio.run(bounded())

    return run


def program_of(folder: Path, **texts: str) -> None:
    """Writes `server.py` with a resource for each name."""
    resources = [
        RESOURCE.replace("{name}", name).replace("{text}", text).replace("{about}", "A note.")
        for name, text in texts.items()
    ]
    write(folder / "server.py", SERVER + "".join(resources) + "\nserver.run()\n")


def write(file: Path, text: str) -> None:
    """As editors do: the file is never half written."""
    new = file.with_name(f".{file.name}.new")
    new.write_text(text, "utf-8")
    new.replace(file)


class Log:
    """What `dev` has written to stderr."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def text(self) -> str:
        return self.path.read_text("utf-8") if self.path.exists() else ""

    def wait_for(self, pattern: str, count: int = 1) -> str:
        assert eventually(lambda: len(re.findall(pattern, self.text())) >= count, PATIENCE), (pattern, self.text())
        return self.text()


def environment() -> dict[str, str]:
    return os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@contextmanager
def over_http(program: Path, folder: Path, *words: str) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    with (folder / "dev.err").open("wb") as log:
        command = [program, "dev", *words]
        process = subprocess.Popen(command, cwd=folder, env=environment(), stderr=log, stdin=subprocess.DEVNULL)
    try:
        found = Log(folder / "dev.err").wait_for(r"serving at http://\S+")
        yield re.findall(r"serving at (http://\S+)", found)[0], process
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0


Open = Callable[..., "asynccontextmanager[Client]"]


@pytest.fixture(params=["stdio", "http"])
def developed(request: pytest.FixtureRequest, program: Path, tmp_path: Path) -> Open:
    """Opens the official client of a `dev` with these words, over both transports."""

    @asynccontextmanager
    async def opened(*words: str, mode: str = MODERN, **options: object) -> AsyncIterator[Client]:
        given = {"mode": mode, "cache": None, **options}
        if request.param == "http":
            front = words.index("--") if "--" in words else len(words)
            with over_http(program, tmp_path, *words[:front], "--http", "0", *words[front:]) as (url, _):
                async with asyncio.timeout(PATIENCE), Client(url, **given) as client:
                    yield client
        else:
            line = ["-c", 'exec "$@" 2>dev.err', "sh", str(program), "dev", *words]
            command = StdioServerParameters(command="sh", args=line, cwd=tmp_path, env=environment())
            async with asyncio.timeout(PATIENCE), Client(command, **given) as client:
                yield client

    return opened


async def read(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    return content.text


async def listed(client: Client) -> set[str]:
    return {resource.uri for resource in (await client.list_resources()).resources}


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
@patient
async def test_a_client_stays_while_the_server_is_written(developed: Open, tmp_path: Path, mode: str) -> None:
    """S-01: changed lists and contents reach it, a syntax error loses nothing, and requests are printed."""
    program_of(tmp_path, a="first")
    log = Log(tmp_path / "dev.err")
    told: asyncio.Queue[object] = asyncio.Queue()

    async def on_message(message: object) -> None:
        if isinstance(message, types.ResourceListChangedNotification):
            told.put_nowait("list")
        elif isinstance(message, types.ResourceUpdatedNotification):
            told.put_nowait(message.params.uri)

    async def is_told() -> None:
        missing = {"list", "notes://a"}
        while missing:
            missing.discard(await told.get())

    async def steps(client: Client) -> None:
        program_of(tmp_path, a="second", b="new")
        await is_told()
        assert await listed(client) == {"notes://a", "notes://b"}
        assert await read(client, "notes://a") == "second"
        text = log.wait_for(r"server\.py changed: 2 resources")
        assert re.search(r"\+ resource notes://b", text)
        assert re.search(r"\d\d:\d\d:\d\d  resources/read notes://a  \d+ B  \d+ ms", log.text()), log.text()

        write(tmp_path / "server.py", "def broken(:\n")
        text = log.wait_for("the server does not start: .*the version before goes on")
        assert "SyntaxError" in text
        assert await read(client, "notes://b") == "new"
        program_of(tmp_path, a="third")
        await is_told()
        assert await read(client, "notes://a") == "third"
        assert "- resource notes://b" in log.wait_for("- resource")
        with pytest.raises(MCPError):
            await read(client, "notes://b")

    async with developed("server.py", mode=mode, message_handler=on_message) as client:
        assert await read(client, "notes://a") == "first"
        if mode == LEGACY:
            await client.subscribe_resource("notes://a")
            await steps(client)
            return
        async with client.listen(resource_subscriptions=["notes://a"], resources_list_changed=True) as subscription:

            async def pump() -> None:
                async for event in subscription:
                    told.put_nowait("list" if isinstance(event, ResourcesListChanged) else event.uri)
                    assert isinstance(event, ResourcesListChanged | ResourceUpdated)

            pumping = asyncio.create_task(pump())
            await steps(client)
            pumping.cancel()


@patient
async def test_requests_wait_for_a_server_that_dies_at_the_start(developed: Open, tmp_path: Path) -> None:
    """S-01: it waits for the next change, with a sentence; a request that came before is answered then."""
    write(tmp_path / "server.py", "import sys\nprint('no luck', file=sys.stderr)\nsys.exit(3)\n")
    log = Log(tmp_path / "dev.err")

    async def mend() -> None:
        await asyncio.to_thread(
            log.wait_for, "the server does not start: .*exit status 3.*requests wait until a source"
        )
        program_of(tmp_path, a="first")

    mending = asyncio.create_task(mend())
    async with developed("server.py") as client:
        assert await read(client, "notes://a") == "first"
    await mending


@patient
async def test_what_runs_during_a_restart(developed: Open, tmp_path: Path) -> None:
    """S-01: a call of a tool is an error, because it may have effects; a read is repeated."""
    program_of(tmp_path, a="first")
    async with developed("server.py") as client:
        await read(client, "notes://a")
        calling = asyncio.create_task(client.call_tool("slow", {"seconds": 300}))
        await asyncio.sleep(0.5)
        program_of(tmp_path, a="second")
        with pytest.raises(MCPError, match="the server was restarted while the tool ran; call it again"):
            await calling
        assert await read(client, "notes://a") == "second"


@patient
async def test_a_configuration(developed: Open, tmp_path: Path) -> None:
    """S-01: a file for `serve --config`, whose mistakes lose nothing."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "one" / "a.txt").write_text("first", "utf-8")
    (tmp_path / "two" / "b.txt").write_text("second", "utf-8")

    def roots(*names: str) -> None:
        write(tmp_path / "resources.yaml", f"providers:\n  - files: {{roots: [{', '.join(names)}]}}\n")

    roots("one")
    log = Log(tmp_path / "dev.err")
    async with developed("resources.yaml") as client:
        assert await read(client, "file:///one/a.txt") == "first"
        write(tmp_path / "resources.yaml", "providers:\n  - fils: {}\n")
        assert "did you mean" in log.wait_for("the server does not start")
        assert await read(client, "file:///one/a.txt") == "first"
        roots("one", "two")
        log.wait_for(r"\+ resource file:///two/b.txt")
        assert await read(client, "file:///two/b.txt") == "second"


@patient
async def test_a_command_and_what_is_no_source(developed: Open, tmp_path: Path) -> None:
    """S-01: ignored files and databases restart nothing; a module in a folder does."""
    program_of(tmp_path, a="first")
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("ignored\n", "utf-8")
    (tmp_path / "lib").mkdir()
    log = Log(tmp_path / "dev.err")
    async with developed("--", "python3", "server.py") as client:
        assert await read(client, "notes://a") == "first"
        for name in ("ignored", "data.db", "data.db-wal", ".hidden"):
            (tmp_path / name).write_text("x", "utf-8")
        await asyncio.sleep(3)
        assert "changed:" not in log.text()
        (tmp_path / "lib" / "module.py").write_text("x = 1", "utf-8")
        log.wait_for(r"lib/module\.py changed: 1 resource")
        assert await read(client, "notes://a") == "first"


@patient
async def test_a_program_for_node(developed: Open, tmp_path: Path) -> None:
    """S-01: its modules are no sources, its own files are."""
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "mcp-resources").symlink_to(ROOT)
    log = Log(tmp_path / "dev.err")

    def program(text: str) -> None:
        lines = [
            "import { ResourceServer } from 'mcp-resources';",
            "const server = new ResourceServer({ name: 'dev', version: '1.0.0' });",
            f"server.resource('notes://a', () => '{text}');",
            "await server.run();",
        ]
        write(tmp_path / "server.mjs", "\n".join(lines))

    program("first")
    async with developed("server.mjs") as client:
        assert await read(client, "notes://a") == "first"
        program("second")
        log.wait_for(r"server\.mjs changed: 1 resource")
        assert await read(client, "notes://a") == "second"


OTHER = """
from mcp.server import MCPServer

server = MCPServer("other")

@server.resource("notes://a")
def a() -> str:
    return "TEXT"

server.run()
"""


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
@patient
async def test_a_server_of_another_library(developed: Open, tmp_path: Path, mode: str) -> None:
    """S-01: nothing of it is ours, and its client stays as well."""
    write(tmp_path / "server.py", OTHER.replace("TEXT", "first"))
    log = Log(tmp_path / "dev.err")
    async with developed("server.py", mode=mode) as client:
        assert await read(client, "notes://a") == "first"
        write(tmp_path / "server.py", OTHER.replace("TEXT", "second"))
        log.wait_for(r"server\.py changed: 1 resource")
        assert await read(client, "notes://a") == "second"


@patient
async def test_a_server_that_crashes(developed: Open, tmp_path: Path) -> None:
    """S-01: one that has worked is started again, and says so."""
    program_of(tmp_path, a="first")
    crash = '\n@server.resource("notes://crash")\ndef crash() -> str:\n    import os\n    os._exit(7)\n'
    text = (tmp_path / "server.py").read_text("utf-8").replace("\nserver.run()", crash + "\nserver.run()")
    write(tmp_path / "server.py", text)
    log = Log(tmp_path / "dev.err")
    async with developed("server.py") as client:
        assert await read(client, "notes://a") == "first"
        await asyncio.sleep(2.5)
        crashing = asyncio.create_task(read(client, "notes://crash"))
        await asyncio.to_thread(log.wait_for, "the server is started again: it ended with exit status: 7")
        # It is repeated once more, and the process that it ends then has not worked for long.
        why = "the server is not running: it ended with exit status: 7; it starts again when a source changes"
        await asyncio.to_thread(log.wait_for, why)
        program_of(tmp_path, a="second")
        with pytest.raises(MCPError):
            await crashing
        assert await read(client, "notes://a") == "second"


def test_processes_end_with_it(program: Path, tmp_path: Path) -> None:
    """S-01: at the end of stdin, at a signal, and when it is killed."""
    program_of(tmp_path, a="first")
    text = (tmp_path / "server.py").read_text("utf-8")
    write(tmp_path / "server.py", f"import os\nopen('pids', 'a').write(f'{{os.getpid()}}\\n')\n{text}")
    pids = tmp_path / "pids"
    for way in ("stdin", signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        pids.write_text("", "utf-8")
        command = [program, "dev", "server.py"]
        with (
            (tmp_path / "dev.err").open("wb") as log,
            subprocess.Popen(command, cwd=tmp_path, env=environment(), stdin=subprocess.PIPE, stderr=log) as process,
        ):
            # That of the lists, and that of the client.
            assert eventually(lambda: len(pids.read_text("utf-8").split()) >= 2, PATIENCE)
            if way == "stdin":
                assert process.stdin is not None
                process.stdin.close()
            else:
                process.send_signal(way)
            assert process.wait(PATIENCE) == (-9 if way == signal.SIGKILL else 0)
        for pid in pids.read_text("utf-8").split():
            assert eventually(lambda pid=pid: not Path(f"/proc/{pid}").exists(), PATIENCE), way


def test_pages_of_other_sites_are_refused(program: Path, tmp_path: Path) -> None:
    """S-32: nobody is asked who they are, so only this machine and its pages are served."""
    program_of(tmp_path, a="first")
    for words, said in (
        (["server.py", "--http", "0.0.0.0:8000"], "dev serves this machine alone"),
        (["none.py"], "it does not exist, or is no file"),
        (["--http", "8000"], "nothing to run; write mcp-resources dev server.py"),
    ):
        done = subprocess.run(
            [program, "dev", *words], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    with over_http(program, tmp_path, "server.py", "--http", "0") as (url, _):
        address = url.removeprefix("http://").split("/")[0]
        for headers, status in (
            ({"Host": "evil.example"}, 403),
            ({"Origin": "https://evil.example"}, 403),
            ({"Origin": "http://localhost:3000"}, 200),
            ({"Mcp-Session-Id": "none"}, 404),
        ):
            connection = http.client.HTTPConnection(address, timeout=PATIENCE)
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
            connection.request("POST", "/mcp", body, {"Content-Type": "application/json", **headers})
            answer = connection.getresponse()
            assert answer.status == status, headers
            connection.close()
