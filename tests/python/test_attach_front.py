"""`run()` of an attached server on stdio: our pipe is in front of the SDK, which gets everything but our reads."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_attach_bytes import LEGACY, PYTHON, SCRIPT, Pipe
from vectors import MODERN, ROOT
from wire import META

HERE = Path(__file__).parent
PATIENCE = 30.0
SERVERS = {
    "mcp": [*PYTHON, "mcp", "resources"],
    "fastmcp": [*PYTHON, "fastmcp", "resources"],
    "TypeScript 2": [*SCRIPT, "2", "run"],
    "TypeScript 1": [*SCRIPT, "1", "run"],
}
ERAS = [(name, era) for name in SERVERS for era in (LEGACY, MODERN) if (name, era) != ("TypeScript 1", MODERN)]
OURS = {"mcp": "shop://row/7", "fastmcp": "shop://row/7", "TypeScript 2": "shop://live", "TypeScript 1": "shop://live"}
THEIRS = {"mcp": "own://note", "fastmcp": "own://note", "TypeScript 2": "app://own", "TypeScript 1": "app://own"}
TOOL: dict[str, tuple[str, dict[str, Any]]] = {
    "mcp": ("steps", {"n": 2}),
    "fastmcp": ("steps", {"n": 2}),
    "TypeScript 2": ("steps", {}),
    "TypeScript 1": ("steps", {}),
}


def opened(command: list[str], era: str, stderr: int = subprocess.DEVNULL) -> Pipe:
    pipe = Pipe(command, era, stderr)
    if era == MODERN:
        pipe.ask("hello", "server/discover", {})
    else:
        about = {"name": "client", "version": "1"}
        pipe.ask("hello", "initialize", {"protocolVersion": era, "capabilities": {}, "clientInfo": about})
        pipe.send({"method": "notifications/initialized"})
    return pipe


def request(era: str, id: int | str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    meta: dict[str, Any] = {}
    if era == MODERN:
        meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
        meta[META + "clientInfo"] = {"name": "client", "version": "1"}
    return {"id": id, "method": method, "params": params | ({"_meta": meta} if meta else {})}


@pytest.mark.parametrize(("name", "era"), ERAS)
def test_reads_of_both_many_at_a_time(name: str, era: str) -> None:
    pipe = opened(SERVERS[name], era)
    uris = [OURS[name], THEIRS[name], "shop://nothing"]
    for number in range(300):
        pipe.send(request(era, number, "resources/read", {"uri": uris[number % 3]}))
    answers: dict[int, dict[str, Any]] = {}
    assert pipe.process.stdout is not None
    while len(answers) < 300:
        message = json.loads(pipe.process.stdout.readline())
        answers[message["id"]] = message
    for number, answer in answers.items():
        if number % 3 == 2:
            assert "not found" in answer["error"]["message"].lower()
        else:
            (content,) = answer["result"]["contents"]
            assert content["uri"] == uris[number % 3]
            assert ("their" in content["text"]) is (number % 3 == 1)
    pipe.close()
    assert pipe.process.returncode == 0


@pytest.mark.parametrize(("name", "era"), ERAS)
def test_what_is_in_flight_at_the_end_of_input_is_answered(name: str, era: str) -> None:
    pipe = opened(SERVERS[name], era)
    tool, arguments = TOOL[name]
    pipe.send(request(era, 1, "tools/call", {"name": tool, "arguments": arguments}))
    pipe.send(request(era, 2, "resources/read", {"uri": OURS[name]}))
    assert pipe.process.stdin is not None
    assert pipe.process.stdout is not None
    pipe.process.stdin.close()
    answers = [json.loads(line) for line in pipe.process.stdout]
    assert {message["id"] for message in answers if "result" in message} == {1, 2}
    assert pipe.process.wait(PATIENCE) == 0
    pipe.process.stdout.close()


@pytest.mark.parametrize(("name", "era"), ERAS)
def test_a_signal_ends_it_and_its_listens(name: str, era: str) -> None:
    pipe = opened(SERVERS[name], era)
    uri = OURS[name]
    if era == MODERN:
        pipe.send(request(era, "listen", "subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}}))
        assert pipe.process.stdout is not None
        assert b"acknowledged" in pipe.process.stdout.readline()
    else:
        pipe.ask("subscribe", "resources/subscribe", {"uri": uri})
    pipe.process.send_signal(signal.SIGTERM)
    assert pipe.process.stdout is not None
    rest = [json.loads(line) for line in pipe.process.stdout]
    assert pipe.process.wait(PATIENCE) == 0
    if era == MODERN:
        assert [message["id"] for message in rest if "result" in message] == ["listen"]
    pipe.close()


@pytest.mark.parametrize(("name", "era"), ERAS)
def test_a_client_that_leaves(name: str, era: str) -> None:
    """It closes both of its ends in the middle of a burst: the server ends, without a trace on standard error."""
    leave(SERVERS[name], name, era)


HURRIED = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
from attached_app import attached
from mcp_resources import Limits
_, resources = attached(sys.argv[1], limits=Limits(grace=1))
resources.run()
"""


@pytest.mark.parametrize("era", [LEGACY, MODERN])
@pytest.mark.parametrize("name", ["mcp", "fastmcp"])
def test_a_client_that_leaves_a_server_which_does_not_end_in_time(name: str, era: str) -> None:
    """The SDK is cut off in the middle of its requests, without a trace either."""
    leave([sys.executable, "-c", HURRIED, name], name, era)


def leave(command: list[str], name: str, era: str) -> None:
    pipe = opened(command, era, stderr=subprocess.PIPE)
    for number in range(200):
        pipe.send(request(era, number, "resources/read", {"uri": OURS[name]}))
        pipe.send(request(era, f"tool {number}", "tools/list", {}))
    assert pipe.process.stdout is not None
    pipe.process.stdout.close()
    _, errors = pipe.process.communicate(timeout=PATIENCE)
    assert (pipe.process.returncode, b"Traceback" in errors, b"Error" in errors) == (0, False, False), errors.decode()


NOISY = {
    "mcp": """
from mcp.server.mcpserver import MCPServer as App
app = App("app")
""",
    "fastmcp": """
from fastmcp import FastMCP as App
app = App("app")
""",
}
NOISE = """
import os, subprocess
from mcp_resources import ResourceServer
print("at the start")
@app.tool()
def loud() -> str:
    print("in a tool")
    os.write(1, b"raw\\n")
    subprocess.run(["echo", "from a child"])
    return input() if False else "quiet"
resources = ResourceServer("ours").attach(app)
@resources.resource("a://b")
def read() -> str:
    print("in a read")
    return "text"
resources.run()
"""
NOISY_SCRIPT = """
import {{ McpServer }} from '{package}';
import {{ execSync }} from 'node:child_process';
import {{ ResourceServer }} from 'mcp-resources';
const make = () => {{
  const app = new McpServer({{ name: 'app', version: '1' }});
  app.registerTool('loud', {{}}, async () => {{
    console.log('in a tool');
    execSync('echo from a child', {{ stdio: 'inherit' }});
    return {{ content: [{{ type: 'text', text: 'quiet' }}] }};
  }});
  return app;
}};
const resources = new ResourceServer({{ name: 'ours' }}).attach(make);
resources.resource('a://b', () => {{
  console.log('in a read');
  return 'text';
}});
await resources.run();
"""


@pytest.mark.parametrize("name", SERVERS)
def test_nothing_else_is_written_to_the_client(name: str, tmp_path: Path) -> None:
    if name in NOISY:
        command = [sys.executable, "-c", NOISY[name] + NOISE.replace('print("at the start")\n', "")]
    else:
        package = "@modelcontextprotocol/server" if name.endswith("2") else "@modelcontextprotocol/sdk/server/mcp.js"
        script = ROOT / "tests" / "node" / f".noisy-{os.getpid()}-{name[-1]}.mjs"
        script.write_text(NOISY_SCRIPT.format(package=package))
        command = [SCRIPT[0], str(script)]
    try:
        pipe = opened(command, LEGACY)
        assert json.loads(pipe.ask(1, "tools/call", {"name": "loud", "arguments": {}}))["result"]["content"][0]["text"]
        assert json.loads(pipe.ask(2, "resources/read", {"uri": "a://b"}))["result"]["contents"][0]["text"] == "text"
        assert pipe.lines == []
        pipe.close()
    finally:
        if name not in NOISY:
            script.unlink()


@pytest.mark.parametrize("name", SERVERS)
def test_a_message_for_the_sdk_may_be_large(name: str) -> None:
    """Larger than what we take, as without `attach`."""
    pipe = opened(SERVERS[name], LEGACY)
    text = "x" * (12 << 20)
    tool, arguments = ("add", {"a": 1, "b": 2}) if name in ("mcp", "fastmcp") else ("echo", {"text": text})
    answer = json.loads(pipe.ask(1, "tools/call", {"name": tool, "arguments": arguments | {"more": text}}))
    assert "result" in answer
    pipe.close()


SLOW = """
import asyncio
from mcp.server.mcpserver import MCPServer
from mcp_resources import ResourceServer
resources = ResourceServer("ours").attach(app := MCPServer("app"))
state = "idle"
@resources.resource("a://slow")
async def slow() -> str:
    global state
    state = "begun"
    try:
        await asyncio.sleep(60)
    finally:
        state = "ended"
    return ""
@resources.resource("a://state")
def look() -> str:
    return state
resources.run()
"""


def test_a_cancelled_read_of_ours_ends() -> None:
    pipe = opened([sys.executable, "-c", SLOW], LEGACY)

    def until(state: str) -> None:
        for number in range(1_000):
            answer = json.loads(pipe.ask(f"{state} {number}", "resources/read", {"uri": "a://state"}))
            if answer["result"]["contents"][0]["text"] == state:
                return
        raise AssertionError(state)

    pipe.send(request(LEGACY, 7, "resources/read", {"uri": "a://slow"}))
    until("begun")
    pipe.send({"method": "notifications/cancelled", "params": {"requestId": 7}})
    until("ended")
    pipe.close()
    assert pipe.process.returncode == 0
