"""The command `mcp-resources`: the native program against real servers, over pipes, HTTP and a pseudo-terminal."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import odd_server
import pytest
from vectors import ROOT

EXAMPLES = ROOT / "examples" / "python"
DOCUMENTS = [sys.executable, str(EXAMPLES / "documents.py")]
ODD = [sys.executable, odd_server.__file__]
GUIDE = "docs:///guide.md"
PATIENCE = 60.0
OUR_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

COUNTER = """
import os, threading
from mcp_resources import ResourceServer
server = ResourceServer("counter")
count = 0

@server.resource("count://now")
def now() -> str:
    global count
    count += 1
    return f"{os.getpid()} {count}"

def tick() -> None:
    while not stop.wait(0.05):
        server.notify_updated("count://now")

stop = threading.Event()
threading.Thread(target=tick, daemon=True).start()
server.run(**OPTIONS)
"""


@pytest.fixture
def run(program: Path, tmp_path: Path) -> Callable[..., "subprocess.CompletedProcess[bytes]"]:
    """Runs the program in a folder of its own, without a terminal."""

    def run(*words: str) -> "subprocess.CompletedProcess[bytes]":
        environment = {**os.environ, "HOME": str(tmp_path)}
        return subprocess.run(
            [program, *words],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )

    return run


@pytest.fixture
def counter(tmp_path: Path) -> list[str]:
    """A server of a resource that changes."""
    path = tmp_path / "counter.py"
    path.write_text(COUNTER.replace("**OPTIONS", ""))
    return [sys.executable, str(path)]


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def lines(done: "subprocess.CompletedProcess[bytes]") -> list[str]:
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()


def on_terminal(program: Path, words: list[str], at: Path, answer: str = "") -> tuple[int, str]:
    """Runs the program on a pseudo-terminal of 24 lines and 80 columns; gives its status and what was shown."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(at)
        environment = {**os.environ, "HOME": str(at), "TERM": "xterm-256color"}
        environment.pop("NO_COLOR", None)
        os.execve(program, [str(program), *words], environment)
    shown = b""
    if answer:
        os.write(terminal, answer.encode())
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            shown += part
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown.decode()


def test_ls_lists_entries_and_templates(run: Callable[..., "subprocess.CompletedProcess[bytes]"]) -> None:
    """Section 8: `VERB ARGS --server 'CMD'`, or `VERB ARGS -- CMD…`."""
    entries = [json.loads(line) for line in lines(run("ls", "--json", "--server", " ".join(DOCUMENTS)))]
    assert [entry.get("uri") or entry["uriTemplate"] for entry in entries][-2:] == [GUIDE, "docs:///{name}"]
    table = lines(run("ls", "--", *DOCUMENTS))
    assert table[0].split() == ["URI", "NAME", "TYPE", "SIZE"]
    assert "\x1b" not in "".join(table)
    assert any(line.split()[:2] == [GUIDE, "guide.md"] for line in table)
    assert lines(run("ls", "--templates", "--", *DOCUMENTS))[1].split()[0] == "docs:///{name}"
    assert len(lines(run("ls", "--json", "--limit", "2", "--", *DOCUMENTS))) == 2


def test_read_writes_the_bytes_and_nothing_else(
    run: Callable[..., "subprocess.CompletedProcess[bytes]"], tmp_path: Path
) -> None:
    """Section 8, S-14: the bytes of the contents; errors on stderr."""
    whole = (ROOT / "examples" / "data" / "docs" / "guide.md").read_bytes()
    assert run("read", GUIDE, "--", *DOCUMENTS).stdout == whole
    assert run("read", "odd://text", "--", *ODD).stdout == odd_server.TEXT.encode()
    assert run("read", "odd://binary", "--", *ODD).stdout == odd_server.BINARY
    (contents,) = json.loads(run("read", GUIDE, "--json", "--", *DOCUMENTS).stdout)
    assert contents == {"uri": GUIDE, "mimeType": "text/markdown", "text": whole.decode()}
    assert run("read", GUIDE, "--output", "copy", "--", *DOCUMENTS).stdout == b""
    assert (tmp_path / "copy").read_bytes() == whole
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "folder" / "a b.md").write_text("")
    served = ("--", sys.executable, "-m", "mcp_resources", "serve", "files:folder")
    table = lines(run("read", "file:///folder", *served))
    assert [line.split() for line in table] == [
        ["URI", "TYPE"],
        ["file:///folder/a%20b.md", "text/markdown"],
        ["file:///folder/inner/", "inode/directory"],
    ]
    assert run("read", "file:///folder/inner/", *served).stdout == b""
    assert run("read", "file:///folder/a%20b.md", *served).stdout == b""
    none = run("read", "docs:///none", "--", *DOCUMENTS)
    assert (none.returncode, none.stdout, none.stderr) == (1, b"", b"error: Resource not found: docs:///none\n")
    failed = run("read", "odd://none", "--", *ODD)
    assert failed.returncode == 1
    assert failed.stderr.startswith(b"error: Failed to read resource: no such thing ")
    assert b"\x1b" not in failed.stderr
    assert "\u202e" not in failed.stderr.decode()


def test_complete_lists_values(run: Callable[..., "subprocess.CompletedProcess[bytes]"]) -> None:
    """Section 8: `complete TEMPLATE VARIABLE PREFIX`."""
    assert lines(run("complete", "docs:///{name}", "name", "gu", "--", *DOCUMENTS)) == ["guide.md"]
    (whole,) = lines(run("complete", "docs:///{name}", "name", "--json", "--", *DOCUMENTS))
    assert json.loads(whole)["total"] == 4


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """The URL of an endpoint."""
    path = tmp_path / "site.py"
    path.write_text(COUNTER.replace("**OPTIONS", '"http", port=0'))
    with subprocess.Popen([sys.executable, path], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        try:
            found = next((match for line in process.stderr if (match := re.search(r"http://\S+", line))), None)
            assert found
            yield found[0].rstrip(".,")
        finally:
            process.kill()


def test_servers_are_named_by_url_and_name(
    run: Callable[..., "subprocess.CompletedProcess[bytes]"], tmp_path: Path
) -> None:
    """Section 8: `NAME [--config FILE]`; the key `resources` restricts, an agent sees what it names alone."""
    entry = {"command": DOCUMENTS[0], "args": DOCUMENTS[1:]}
    few = {**entry, "resources": ["docs:///g*"]}
    agents = {"ui": {"mcpServers": {"all": {"resources": [GUIDE]}}}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"all": entry, "few": few}}))
    (tmp_path / "agents.json").write_text(json.dumps({"mcpServers": {"all": entry}, "agents": agents}))
    uris = lambda *words: [json.loads(line).get("uri") for line in lines(run("ls", "--json", *words))]  # noqa: E731
    assert len(uris("--server", "all")) == 5
    assert uris("--server", "few") == [GUIDE, None]
    assert uris("--config", "agents.json", "--agent", "ui") == [GUIDE, None]
    assert run("read", "docs:///x", "--server", "few").stderr == b"error: Access denied: docs:///x\n"
    wrong = run("ls", "--server", "fex")
    assert wrong.returncode == 2
    assert b'did you mean "few"?' in wrong.stderr


def test_usage_errors_end_with_two(run: Callable[..., "subprocess.CompletedProcess[bytes]"]) -> None:
    """Section 8: usage errors exit 2, with the word that was probably meant."""
    for words, part in [
        (["lss"], "'ls'"),
        (["ls", "--jsn"], "'--json'"),
        (["ls"], "no server is named"),
        (["ls", "--server", "a", "--", "b"], "two servers"),
        (["ls", "--server", "http://127.0.0.1:1/mcp", "--env", "A=b"], "--env is for a command"),
        (["ls", "--config", "none.json"], "none.json"),
    ]:
        done = run(*words)
        assert (done.returncode, done.stdout) == (2, b""), words
        assert part in done.stderr.decode()
    gone = run("ls", "--timeout", "5", "--server", "http://127.0.0.1:1/mcp")
    assert gone.returncode == 1
    assert gone.stderr.startswith(b"error: the server cannot be reached")
    assert run("--version").stdout.startswith(b"mcp-resources ")


def watching(program: Path, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [program, "watch", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )


def test_a_server_that_dies_at_start_is_started_once(
    run: Callable[..., "subprocess.CompletedProcess[bytes]"], tmp_path: Path
) -> None:
    for command in (("ls",), ("read", "a://b"), ("lint",)):
        dead = run(*command, "--", "sh", "-c", "echo x >> starts; echo it is broken >&2; exit 3")
        assert dead.returncode == (2 if command == ("lint",) else 1)
        reason = "the server cannot be reached: the server ended with exit status 3: it is broken"
        assert dead.stderr.decode().splitlines()[0] == "it is broken"
        assert dead.stderr.decode().splitlines()[-1].endswith(reason)
        assert (tmp_path / "starts").read_text() == "x\n"
        (tmp_path / "starts").unlink()


def test_watch_writes_a_line_for_each_change(program: Path, counter: list[str]) -> None:
    """S-13: the contents at first and after each change; SIGINT ends it with 130, a closed stdout with 0."""
    with watching(program, "--json", "count://now", "--", *counter) as process:
        assert process.stdout
        found = [json.loads(process.stdout.readline()) for _ in range(3)]
        assert [change["uri"] for change in found] == ["count://now"] * 3
        numbers = [int(change["contents"][0]["text"].split()[1]) for change in found]
        assert numbers == sorted(set(numbers))
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
    with watching(program, "--json", "count://now", "--", *counter) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == ""


def test_watch_over_http_and_for_people(program: Path, site: str) -> None:
    """S-13 over Streamable HTTP; without `--json` a line has the time, the URI and the size."""
    with watching(program, "count://now", "--server", site) as process:
        assert process.stdout
        for _ in range(2):
            assert re.fullmatch(r"\d\d:\d\d:\d\d  count://now  \d+ B\n", process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 143


def test_watch_survives_the_end_of_its_server(program: Path, counter: list[str]) -> None:
    """Section 8: a stdio server that ends is started again."""
    with watching(program, "--json", "count://now", "--", *counter) as process:
        assert process.stdout
        first = server_of(process.stdout.readline())
        os.kill(first, signal.SIGKILL)
        second = next(pid for line in process.stdout if (pid := server_of(line)) != first)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
    wait_for(lambda: not Path(f"/proc/{second}").exists())


def server_of(line: str) -> int:
    """The process that a line's contents come from."""
    return int(json.loads(line)["contents"][0]["text"].split()[0])


def test_lint_finds_mistakes(run: Callable[..., "subprocess.CompletedProcess[bytes]"]) -> None:
    """Section 8: 0 clean, 1 findings, 2 could not judge."""
    for words in ([], ["--revision", "2025-06-18"]):
        clean = run("lint", *words, "--", *DOCUMENTS)
        assert (clean.returncode, clean.stdout) == (0, b""), clean.stdout.decode()
    found = run("lint", "--json", "--", *ODD)
    rules = {json.loads(line)["rule"] for line in found.stdout.splitlines()}
    assert found.returncode == 1
    assert rules == {
        "completion-fails",
        "dead-template",
        "duplicate-uri",
        "invalid-template",
        "invalid-uri",
        "mime-type-differs",
        "missing-name",
        "not-found-code",
        "odd-entry",
        "repeated-cursor",
        "size-differs",
        "unreadable",
    }
    assert b"\x1b" not in run("lint", "--", *ODD).stdout
    assert run("lint", "--", "/bin/false").returncode == 2


def test_nothing_of_a_server_moves_the_terminal(program: Path, tmp_path: Path) -> None:
    """Escapes, C1 and bidirectional overrides of a server never reach a terminal; colours are ours."""
    for words in (["ls"], ["read", "odd://text"], ["read", "odd://text", "--json"], ["lint"], ["read", "odd://none"]):
        status, shown = on_terminal(program, [*words, "--", *ODD], tmp_path)
        assert status in (0, 1)
        assert "red" in shown, (words, shown)
        bare = OUR_COLOURS.sub("", shown) if words[0] != "read" or status else shown
        bare = bare.replace("\r\x1b[K", "")
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e]", bare), (words, shown)
        assert "\x1b[31mred" not in shown
    status, shown = on_terminal(program, ["read", "odd://binary", "--", *ODD], tmp_path)
    assert status == 1
    assert "--output FILE" in shown
    status, shown = on_terminal(program, ["ls", "--", *DOCUMENTS], tmp_path)
    assert status == 0
    assert "\x1b[1m" in shown, "the head of a table is bold"


def test_install_asks_on_a_terminal_alone(
    program: Path, run: Callable[..., "subprocess.CompletedProcess[bytes]"], tmp_path: Path
) -> None:
    """Section 8: `install CLIENT` writes nothing when stdin is no terminal (it prints)."""
    words = ["install", "vscode", "--name", "docs", "--", *DOCUMENTS]
    entry = {"type": "stdio", "command": DOCUMENTS[0], "args": DOCUMENTS[1:]}
    assert json.loads(run(*words).stdout) == {"servers": {"docs": entry}}
    assert not (tmp_path / ".vscode").exists()
    file = tmp_path / ".vscode" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{\n  // mine\n  "inputs": [],\n  "servers": {"other": {"url": "http://a"}}\n}\n')
    before = file.read_text()
    status, _ = on_terminal(program, words, tmp_path, "n\n")
    assert status == 0
    assert file.read_text() == before
    status, shown = on_terminal(program, words, tmp_path, "y\n")
    after = file.read_text()
    assert status == 0, shown
    assert "// mine" in after
    servers = json.loads(after.replace("// mine", ""))["servers"]
    assert servers == {"other": {"url": "http://a"}, "docs": entry}
    assert [path.name for path in file.parent.iterdir()] == ["mcp.json"]
    file.write_text("{ broken")
    status, shown = on_terminal(program, words, tmp_path, "y\n")
    assert status == 1
    assert "edit the file by hand" in shown
    assert file.read_text() == "{ broken"


def test_shells_complete_uris_through_the_server(program: Path, tmp_path: Path) -> None:
    """Section 5: completions of URIs; a server that does not answer completes nothing."""
    script = """
        source <(mcp-resources completions bash)
        COMP_LINE=$1 COMP_POINT=${#1}
        _mcp_resources mcp-resources "$2" read
        printf '%s\\n' "${COMPREPLY[@]}"
    """

    def completed(line: str, word: str) -> list[str]:
        environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
        done = subprocess.run(
            ["bash", "-c", script, "bash", line, word],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        return done.stdout.split("\n")[:-1]

    assert completed("mcp-resources re", "re") == ["read"]
    assert completed("mcp-resources ls --templ", "--templ") == ["--templates"]
    server = " ".join(DOCUMENTS)
    wait_for(lambda: completed(f"mcp-resources read -s '{server}' docs:///gu", "///gu") == ["///guide.md"])
    assert completed("mcp-resources read -s 'sleep 60' docs", "docs") in ([], [""])


def test_the_console_scripts_are_the_same_program(program: Path) -> None:
    """One native program in the wheel and in npm; its start imports nothing of the package but the compiled module."""
    native = subprocess.run([program, "--version"], capture_output=True, check=True, timeout=PATIENCE).stdout
    script = Path(sys.executable).with_name("mcp-resources")
    python = subprocess.run(
        [sys.executable, "-X", "importtime", script, "--version"], capture_output=True, check=True, timeout=PATIENCE
    )
    assert python.stdout == native
    assert b"mcp_resources_command" in python.stderr
    assert b"asyncio" not in python.stderr
    module = [sys.executable, "-m", "mcp_resources"]
    assert subprocess.run([*module, "--version"], capture_output=True, check=True, timeout=PATIENCE).stdout == native
    wrong = subprocess.run([*module, "lss"], capture_output=True, check=False, timeout=PATIENCE)
    assert (wrong.returncode, wrong.stdout) == (2, b"")
    failed = subprocess.run([script, "ls"], capture_output=True, check=False, timeout=PATIENCE)
    assert failed.returncode == 2
    assert failed.stderr.startswith(b"error: no server is named")
    node = ROOT / "node_modules" / ".bin" / "mcp-resources"
    assert subprocess.run([node, "--version"], capture_output=True, check=True, timeout=PATIENCE).stdout == native
    for one in (script, node):
        with watching(one, GUIDE, "--", *DOCUMENTS) as process:
            assert process.stdout
            process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 130
