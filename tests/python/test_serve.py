"""`mcp-resources serve`: the command as a server, of words and of a configuration, over stdio and HTTP.

Its words, keys and statuses are fixed (S-01, `serve`); what the providers give is tested with them.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path

import pytest
from mcp_resources.client import Client

PATIENCE = 60.0
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a file that is hidden, and one below another folder."""
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "README.md").write_text("# Project\n")
    (folder / "src" / "main.py").write_text("print('hello')\n")
    (folder / ".env").write_text("SECRET=1\n")
    return folder


class Process:
    """A running `serve`: what it says on stderr, line by line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.said: list[str] = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line.rstrip("\n"))

    def wait_for(self, text: str) -> str:
        """The next line with this text; it is forgotten."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for line in list(self.said):
                if text in line:
                    self.said.remove(line)
                    return line
            assert self.process.poll() is None or self.reader.is_alive(), self.said
            time.sleep(0.01)
        raise AssertionError(f"{text!r} was not said, but {self.said}")

    def url(self) -> str:
        return self.wait_for("serving at ").rpartition(" ")[2]

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


Start = Callable[..., "contextmanager[Process]"]


@pytest.fixture
def serve(program: Path, tmp_path: Path) -> Callable[..., object]:
    """Starts `serve` in the folder of the test."""

    @contextmanager
    def serve(*words: str, at: Path = tmp_path) -> Iterator[Process]:
        with subprocess.Popen(
            [program, "serve", *words],
            cwd=at,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # `nohup` ignores it
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            served = Process(process)
            try:
                yield served
            finally:
                process.kill()
                served.reader.join(PATIENCE)  # what it reads is closed next

    return serve


async def uris(client: Client) -> list[str]:
    return [resource.uri async for resource in client.list()]


@pytest.mark.parametrize(
    ("words", "root"),
    [([], "project"), (["."], "project"), (["files:."], "project"), (["files:app=src"], "app"), (["./src"], "src")],
)
async def test_words_name_what_is_served(program: Path, project: Path, words: list[str], root: str) -> None:
    """S-01: `files:DIR`, `files:NAME=DIR`, a directory alone, and the working directory where nothing is named."""
    async with Client([str(program), "serve", *words], cwd=project) as client:
        listed = await uris(client)
        assert f"file:///{root}/" in listed
        assert "file:///" in listed
        assert not [uri for uri in listed if ".env" in uri]
        path = "README.md" if root == "project" else "main.py"
        assert await client.read(f"file:///{root}/{path}") == next(project.rglob(path)).read_text()


async def test_two_folders_are_two_roots(program: Path, project: Path) -> None:
    """S-01: entries of one kind are merged."""
    async with Client([str(program), "serve", "files:one=.", "files:two=src"], cwd=project) as client:
        instructions = (await client.about()).instructions
        assert instructions == "The files of directories, as file:///NAME/PATH."
        listed = await uris(client)
        assert {"file:///one/", "file:///two/", "file:///one/src/main.py", "file:///two/main.py"} <= set(listed)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["fils:."], "files"),
        (["files:none"], "none"),
        (["none"], "none"),
        (["README.md"], "write --config README.md"),
        (["files:README.md"], "README.md"),
        (["files:a=.", "files:a=src"], '"a"'),
        (["files:a/b=."], "a/b"),
        (["files:"], "files"),
        (["--config", "none.yaml"], "none.yaml"),
        (["--config", "none.yaml", "files:."], "cannot be used with"),
        (["--http", "x"], "--http"),
        (["--http", "0.0.0.0:8131"], "--http 0.0.0.0:8131 serves other machines, and nobody is asked who they are"),
        (["--http", "no.such.invalid:80"], "the host cannot be found"),
        (["--host", "0.0.0.0", "."], "there is no option --host; write --http 0.0.0.0:8000"),
        (["--port", "8000", "."], "write --http 8000"),
    ],
)
def test_what_cannot_be_served_is_said_at_once(serve: Start, project: Path, words: list[str], text: str) -> None:
    """S-01: an error on stderr, nothing on stdout, and the status is not 0, also while stdin is open."""
    with serve(*words, at=project) as served:
        assert served.process.wait(PATIENCE) == 2
        assert served.process.stdout is not None
        assert served.process.stdout.read() == ""
        served.reader.join(PATIENCE)
        said = "\n".join(served.said)
        assert said.startswith("error:"), said
        assert text in said, said
        assert "panicked" not in said, said


CONFIG: dict[str, object] = {"name": "shop", "providers": [{"files": {"roots": {"app": "project"}}}]}


def config(at: Path, form: str = "json", **members: object) -> Path:
    """A configuration beside the project. JSON is YAML too."""
    path = at / f"resources.{form}"
    path.write_text(json.dumps({**CONFIG, **members}))
    return path


@pytest.mark.parametrize("form", ["yaml", "json"])
async def test_a_file_says_what_is_served(program: Path, project: Path, form: str) -> None:
    """S-01: paths of the file begin at its folder; the guard hides, and says so in the audit."""
    guard = {"deny": "**/main.py", "limits": {"contents": 1000}, "audit": "audit.jsonl"}
    path = config(project.parent, form, guard=guard, instructions="Read file:///app/.", title="The shop")
    async with Client([str(program), "serve", "--config", str(path)], cwd="/") as client:
        listed = await uris(client)
        assert "file:///app/README.md" in listed
        assert "file:///app/src/main.py" not in listed
        about = await client.about()
        assert (about.server_info["name"], about.server_info["title"]) == ("shop", "The shop")
        assert about.instructions == "Read file:///app/."
        for hidden in ("file:///app/src/main.py", "file:///app/.env"):
            with pytest.raises(LookupError):
                await client.read(hidden)
    records = [json.loads(line) for line in (project.parent / "audit.jsonl").read_text().splitlines()]
    assert any("main.py" in json.dumps(record) for record in records)


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"provider": []}, 'did you mean "providers"'),
        ({"providers": {}}, "providers must be a list"),
        ({"providers": ["files:."]}, "providers[0]"),
        ({"providers": [{"files": {"roots": "project"}, "git": {}}]}, "providers[0]"),
        ({"providers": [{"file": {"roots": "project"}}]}, '"files"'),
        ({"providers": [{"files": {"root": "project"}}]}, '"roots"'),
        ({"providers": [{"files": {"roots": {"a": 3}}}]}, "roots"),
        ({"providers": [{"files": {"roots": "project", "hidden": "yes"}}]}, "hidden"),
        ({"providers": [{"files": {"roots": "project", "symlinks": "all"}}]}, "never"),
        ({"providers": [{"files": {}}]}, "roots"),
        ({"providers": [{"files": {"roots": "nowhere"}}]}, "nowhere"),
        ({"name": 3}, "name is 3"),
        ({"guard": []}, "guard is a list"),
        ({"guard": {"dney": "**"}}, 'guard: unexpected key "dney"; did you mean "deny"?'),
        ({"guard": {"http": {"path": "mcp"}}}, 'guard.http: path is "mcp", expected a text that begins with a slash'),
        ({"guard": {"deny": ""}}, "guard.deny"),
        ({"guard": {"limits": {"content": 1}}}, "contents"),
        ({"guard": {"limits": {"contents": "1"}}}, "contents"),
        ({"guard": {"http": {"pth": "/x"}}}, "path"),
        ({"guard": {"http": {"hosts": "example.com"}}}, "hosts"),
        ({"guard": {"http": {"hosts": ["*"]}}}, 'hosts is "*", expected "*" in the place of the list'),
        ({"guard": {"http": {"hosts": [".example.com"]}}}, "there is no wildcard for a part of a name"),
        ({"guard": {"http": {"hosts": ["münchen.example"]}}}, "names in ASCII"),
        (
            {"guard": {"http": {"host": "0.0.0.0"}}},
            'there is no option "host"; give it with the command, as --http HOST:PORT',
        ),
        ({"guard": {"http": {"port": 80}}}, "--http PORT"),
        ({"guard": {"http": {"auth": {"resorce": "x"}}}}, 'there is no option "auth" here; write auth beside guard'),
        ({"guard": {"audit": 1}}, "guard.audit is 1"),
        ({"guard": {"redact": ["jtw"]}}, 'guard.redact: unexpected detector "jtw"; did you mean "jwt"?'),
        ({"providers": [{"clock": {}}, {"files": {"root": "project"}}]}, "providers[1]: unexpected option"),
        ({"guard": {"audit": "none/audit.jsonl"}}, "none/audit.jsonl"),
    ],
)
def test_a_wrong_file_names_the_key(serve: Start, project: Path, members: dict[str, object], text: str) -> None:
    """S-01: unknown keys and wrong types are errors at start, with the nearest name."""
    path = config(project.parent, **members)
    with serve("--config", str(path)) as served:
        assert served.process.wait(PATIENCE) == 2
        served.reader.join(PATIENCE)
        assert len(served.said) == 1, served.said
        assert served.said[0].startswith(f"error: {path}: "), served.said
        assert text in served.said[0]
        assert served.process.stdout is not None
        assert served.process.stdout.read() == ""


@pytest.mark.parametrize("text", ["", "[", "providers: [", "\0", "a: &a [*a]", "- 1", '{"providers": [', "%YAML 9"])
def test_a_file_that_is_none_is_one_sentence(serve: Start, tmp_path: Path, text: str) -> None:
    """S-01: whatever is in the file."""
    path = tmp_path / "resources.yaml"
    path.write_text(text)
    with serve("--config", str(path)) as served:
        assert served.process.wait(PATIENCE) == 2
        served.reader.join(PATIENCE)
        assert "\n".join(served.said).startswith(f"error: {path}: "), served.said


def test_stdout_is_the_protocols(serve: Start, project: Path) -> None:
    """R-146: every line of stdout is a message; the end of stdin is the end, with status 0 (R-150)."""
    with serve(".", at=project) as served:
        assert served.process.stdin is not None
        assert served.process.stdout is not None
        served.process.stdin.write(f"{json.dumps(INITIALIZE)}\nno message\n")
        served.process.stdin.close()
        answers = [json.loads(line) for line in served.process.stdout]
        assert [answer.get("id") for answer in answers] == [1, None]
        assert answers[0]["result"]["serverInfo"]["name"] == "mcp-resources"
        assert served.process.wait(PATIENCE) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("words", [[], ["--http", "0"]])
def test_signals_end_it(serve: Start, project: Path, words: list[str], number: signal.Signals) -> None:
    """R-151: it ends by itself, in order, while a client is connected."""
    with serve(*words, at=project) as served:
        assert served.process.stdin is not None
        assert served.process.stdout is not None
        if words:
            address = served.url().split("/")[2].split(":")
            with socket.create_connection((address[0], int(address[1]))):
                assert served.end(number) == 0
        else:
            served.process.stdin.write(f"{json.dumps(INITIALIZE)}\n")
            served.process.stdin.flush()
            assert json.loads(served.process.stdout.readline())["id"] == 1
            assert served.end(number) == 0


async def test_http_is_for_this_machine(serve: Start, project: Path) -> None:
    """R-156, R-157: loopback alone, and another site's page is refused; the path is `/mcp` or what the file says."""
    path = config(project.parent, guard={"http": {"path": "/shop", "health": "/up"}})
    with serve("--config", str(path), "--http", "0") as served:
        url = served.url()
        assert url.startswith("http://127.0.0.1:")
        assert url.endswith("/shop")
        async with Client(url) as client:
            assert await client.read("file:///app/README.md") == "# Project\n"
        async with Client(url, headers={"Origin": "https://evil.example"}) as client:
            with pytest.raises(Exception, match="not allowed"):
                await client.read("file:///app/README.md")
        port = url.split(":")[2].split("/")[0]
        with serve("--http", port, at=project) as second:
            assert second.process.wait(PATIENCE) == 1
            second.reader.join(PATIENCE)
            assert port in second.said[0], second.said


async def test_sighup_reads_the_file_again(serve: Start, project: Path) -> None:
    """S-01: what has changed is served anew, clients hear that lists have changed; a wrong file changes nothing."""
    path = config(project.parent)
    with serve("--config", str(path), "--http", "0") as served:
        url = served.url()
        async with Client(url) as client:
            assert "file:///app/README.md" in await uris(client)
            roots = {"app": "project", "code": "project/src"}
            config(project.parent, providers=[{"files": {"roots": roots}}])
            served.process.send_signal(signal.SIGHUP)
            served.wait_for("read again")
            assert await client.read("file:///code/main.py") == "print('hello')\n"

            config(project.parent, providers=[{"files": {"roots": {"app": "nowhere"}}}])
            served.process.send_signal(signal.SIGHUP)
            assert "nowhere" in served.wait_for("error:")
            assert await client.read("file:///code/main.py") == "print('hello')\n"

            config(
                project.parent, guard={"deny": "**/main.py", "redact": "jwt"}, instructions="Read less.", tools=False
            )
            served.process.send_signal(signal.SIGHUP)
            served.wait_for("a change of guard.redact takes effect when the server is started again")
            served.wait_for("a change of tools takes effect when the server is started again")
            served.wait_for("read again")
            for uri in ("file:///code/main.py", "file:///app/src/main.py"):
                with pytest.raises(LookupError):
                    await client.read(uri)
            assert await client.read("file:///app/README.md") == "# Project\n"
            async with Client(url) as other:
                assert (await other.about()).instructions == "Read less."
        assert served.end() == 0


@contextmanager
def silent() -> Iterator[socket.socket]:
    """A server that accepts connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener


def with_database(listener: socket.socket) -> list[object]:
    url = f"postgres://me@127.0.0.1:{listener.getsockname()[1]}/x"
    files = {"files": {"roots": {"app": "project"}}}
    return [files, {"db": {"databases": {"slow": {"url": url, "tables": ["t"]}}}}]


async def test_a_slow_source_delays_no_answer(serve: Start, project: Path) -> None:
    """S-01: a reload waits for its sources on a thread of its own. Signals meanwhile are one more; SIGTERM ends it."""
    path = config(project.parent)
    with silent() as listener, serve("--config", str(path), "--http", "0") as served:
        url = served.url()
        async with Client(url) as client:
            config(project.parent, providers=with_database(listener))
            served.process.send_signal(signal.SIGHUP)
            connection, _ = await asyncio.to_thread(listener.accept)
            for _ in range(3):
                served.process.send_signal(signal.SIGHUP)
            served.wait_for("still being read; it is read again after that")
            assert await client.read("file:///app/README.md") == "# Project\n"
            assert not [line for line in served.said if "error" in line or "read again," in line], served.said
            config(project.parent, providers=[{"files": {"roots": {"app": "project", "code": "project/src"}}}])
            connection.close()
            served.wait_for("read again, with its changes")
            served.wait_for("read again, with its changes")
            assert await client.read("file:///code/main.py") == "print('hello')\n"
            config(project.parent, providers=with_database(listener))
            served.process.send_signal(signal.SIGHUP)
            connection, _ = await asyncio.to_thread(listener.accept)
        assert served.end() == 0
        assert not [line for line in served.said if "error" in line], served.said
        connection.close()


async def test_what_is_no_file_is_not_waited_for(serve: Start, project: Path) -> None:
    """S-01: a pipe in the place of a file is refused at once, at the start and at a reload, and answers go on."""
    path = config(project.parent)
    pipe = project.parent / "pipe.json"
    os.mkfifo(pipe)
    for words, text in (
        (["--config", str(pipe)], "pipe.json: it is a pipe; name a file"),
        ([f"api:{pipe}"], "pipe.json"),
    ):
        with serve(*words) as served:
            assert served.process.wait(PATIENCE) == 2
            assert text in served.wait_for("error:")
    for members, text in (
        ({"guard": {"audit": "pipe.json"}}, "it is a pipe that no process reads"),
        ({"providers": [{"results": {"file": "pipe.json"}}]}, "pipe.json is no file"),
        ({"providers": [{"docs": {"sites": "project", "index": "pipe.json"}}]}, "pipe.json is no file"),
        ({"providers": [{"config": {"apps": {"a": "pipe.json"}, "allow": ["a"]}}]}, "pipe.json"),
    ):
        wrong = config(project.parent, form="yaml", **members)
        with serve("--config", str(wrong)) as served:
            assert served.process.wait(PATIENCE) == 2, members
            assert text in served.wait_for("error:")
    with serve("--config", str(path), "--http", "0") as served:
        async with Client(served.url()) as client:
            path.unlink()
            os.mkfifo(path)
            served.process.send_signal(signal.SIGHUP)
            assert "it is a pipe; name a file; what was served before is still served" in served.wait_for("error:")
            assert await client.read("file:///app/README.md") == "# Project\n"
        assert served.end() == 0


def test_a_configuration_may_come_from_a_command(program: Path, project: Path) -> None:
    """S-01: as a shell passes it, with the name of an open descriptor."""
    text = json.dumps({"providers": [{"files": {"roots": {"app": str(project)}}}]})
    script = f"{program} serve --config <(echo '{text}') < /dev/null"
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=PATIENCE)
    assert "error" not in ended.stderr or "the name of a YAML file" not in ended.stderr, ended.stderr
    assert ended.returncode == 0, ended.stderr


async def test_nothing_is_pushed_under_serve(serve: Start, program: Path, tmp_path: Path) -> None:
    """S-01: metrics measure this machine, and what stays empty is named."""
    for options in (None, {}, {"interval": "1s"}, {"host": True}):
        path = tmp_path / "resources.json"
        path.write_text(json.dumps({"providers": [{"metrics": options}]}))
        async with Client([str(program), "serve", "--config", str(path)]) as client:
            assert [uri for uri in await uris(client) if "cpu" in uri], options
    for provider, text in (({"memory": {}}, "memory stays empty"), ({"results": "r"}, "results stays empty")):
        path.write_text(json.dumps({"providers": [provider]}))
        with serve("--config", str(path), "--http", "0") as served:
            assert text in served.wait_for("warning:")
    path.write_text(json.dumps({"providers": [{"metrics": {"host": False}}]}))
    with serve("--config", str(path)) as served:
        assert "providers[0]: metrics: host is false" in served.wait_for("error:")


def test_sighup_without_a_file_ends_it(serve: Start, project: Path) -> None:
    """A terminal that is closed must not leave a server behind."""
    with serve("--http", "0", at=project) as served:
        served.url()
        assert served.end(signal.SIGHUP) == -signal.SIGHUP


def test_it_reads_without_permission_to_write(serve: Start, project: Path) -> None:
    """Nothing of what is served is touched."""
    before = {path: path.stat().st_mtime_ns for path in project.rglob("*")}
    with serve(".", at=project) as served:
        assert served.process.stdin is not None
        served.process.stdin.close()
        assert served.process.wait(PATIENCE) == 0
    assert {path: path.stat().st_mtime_ns for path in project.rglob("*")} == before
    assert os.listdir(project.parent) == ["project"]


EDITORS = {"claude-code": "project", "claude-desktop": "/", "vscode": "project", "cursor": "project"}
"""The clients that `install` knows, and the directory that each starts a server in."""


@pytest.mark.parametrize("editor", EDITORS)
async def test_what_install_prints_is_a_server(program: Path, project: Path, editor: str) -> None:
    """S-01: the entry starts it where the client does; an index, a bounded list, and completion of whole paths.

    Claude Code and Claude Desktop know lists alone; VS Code completes and browses directories.
    """
    for number in range(1_500):
        (project / "src" / f"part{number:04}.py").write_text(f"print({number})\n")
    environment = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(project)}
    words = [str(program), "install", editor, "--json", "--", "mcp-resources", "serve", "files:project=."]
    printed = subprocess.run(words, cwd=project, env=environment, capture_output=True, check=True)
    entry = json.loads(printed.stdout)
    assert entry.get("type", "stdio") == "stdio"
    at = project if EDITORS[editor] == "project" else Path(EDITORS[editor])
    # Only what starts in a directory of its own, and not from a shell, is given absolute paths.
    assert Path(entry["command"]).is_absolute() == (editor == "claude-desktop")
    command = [str(program) if entry["command"] == "mcp-resources" else entry["command"], *entry["args"]]
    async with Client(command, cwd=at) as client:
        listed = [resource async for resource in client.list()]
        assert [resource.uri for resource in listed[:3]] == [
            "file:///",
            "file:///project/",
            "file:///project/README.md",
        ]
        assert len(listed) == 1_002
        completed = await client.complete("file:///{root}/{+path}", "path", "src/part149", context={"root": "project"})
        assert completed.values == [f"src/part149{digit}.py" for digit in range(10)]
        directory = await client.read("file:///project/")
        assert isinstance(directory, list)
        assert {content.uri for content in directory} == {"file:///project/README.md", "file:///project/src/"}


def held(process: int) -> tuple[int, int, int]:
    """The descriptors, threads and watched directories of a process."""
    at = Path(f"/proc/{process}")
    watches = 0
    for info in (at / "fdinfo").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            watches += info.read_text().count("inotify wd")
    return len(list((at / "fd").iterdir())), len(list((at / "task").iterdir())), watches


def resident(process: int) -> int:
    """The resident memory, in kB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


@pytest.mark.skipif(sys.platform != "linux", reason="it counts threads and files in /proc, which only Linux has")
@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
async def test_nothing_is_left_of_a_thousand_clients(serve: Start, project: Path, revision: str) -> None:
    """S-01: each lists, reads and watches; when they are gone, memory, descriptors and watches are as before."""
    path = config(project.parent, guard={"limits": {"session_idle": 1_000}})
    with serve("--config", str(path), "--http", "0") as served:
        url, process = served.url(), served.process.pid

        async def one() -> None:
            async with Client(url, revision=revision) as client:
                assert len(await uris(client)) == 4
                async with aclosing(client.watch("file:///app/README.md")) as changes:
                    assert (await anext(changes)).contents == "# Project\n"

        async def some(number: int) -> None:
            for _ in range(number // 20):
                await asyncio.gather(*(one() for _ in range(20)))

        await some(200)
        await settled(lambda: held(process)[2] == 0)
        before, memory = held(process), resident(process)
        await some(1_000)
        await settled(lambda: held(process)[2] == 0 and held(process)[0] <= before[0])
        after = held(process)
        assert (after[0], after[2]) <= (before[0], before[2])
        assert after[1] <= before[1] + 1
        assert resident(process) < memory + 8_192


async def settled(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 25
    while not what():
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(0.05)
