"""The gateway: questions and log messages of servers before 2026-07-28 (R-004)."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from gateway import LegacyAgent, Start, asked, configured, is_there, noting, over_http, stub
from mcp import Client, types
from mcp.client.stdio import StdioServerParameters
from peering import NODE, Peer, serving
from process import Message, Server, eventually
from vectors import ROOT

FORM = {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}
SAMPLE = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 5}
QUESTIONS = [["elicitation/create", FORM], ["sampling/createMessage", SAMPLE], ["roots/list", {}]]
ANSWERS = {
    "elicitation/create": {"action": "accept", "content": {"name": "Ada"}},
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "Yo"}, "model": "m"},
    "roots/list": {"roots": [{"uri": "file:///project"}]},
}
ALL: Message = {"elicitation": {}, "sampling": {}, "roots": {}}


def own(**spec: Any) -> dict[str, Any]:
    """A stub that starts once for each client."""
    return stub("a", entry={"per_client": True}, **spec)


def call(server: Server, id: object, tool: str = "ask", **arguments: Any) -> None:
    server.request(id, "tools/call", {"name": tool, "arguments": arguments})


def question(server: Server) -> Message:
    message = server.next()
    assert message is not None
    assert "method" in message, message
    assert "id" in message, message
    return message


def found(answered: Message) -> Any:
    return json.loads(answered["result"]["content"][0]["text"])


def test_questions_reach_the_client(gateway: Start, tmp_path: Path) -> None:
    """R-004: each question reaches the client whose call caused it, and its answer goes back."""
    log = tmp_path / "log"
    with gateway({"a": own(questions=QUESTIONS, log=str(log))}) as server:
        server.initialize(capabilities=ALL)
        call(server, 1)
        for _ in QUESTIONS:
            message = question(server)
            if message["method"] == "elicitation/create":
                assert message["params"] == FORM
            server.send({"jsonrpc": "2.0", "id": message["id"], "result": ANSWERS[message["method"]]})
        assert found(server.response(1)) == [{"result": ANSWERS[method]} for method, _ in QUESTIONS]
        declared = [line["params"]["capabilities"] for line in asked(log, "initialize")]
        assert declared == [{}, ALL], "the shared connection, and the client's own"
        # Refused by the client: the server gets the reason.
        call(server, 2)
        for _ in QUESTIONS:
            error = {"code": -1, "message": "the user said no"}
            server.send({"jsonrpc": "2.0", "id": question(server)["id"], "error": error})
        assert {one["error"]["message"] for one in found(server.response(2))} == {"the user said no"}
        assert len(asked(log, "initialize")) == 2, "the connection is kept"


def test_a_question_ends_with_its_call(gateway: Start) -> None:
    """R-004: a question is withdrawn with the call; an answer that comes too late changes nothing."""
    with gateway({"a": own(questions=QUESTIONS[:1])}) as server:
        server.initialize(capabilities=ALL)
        call(server, 1)
        asks = question(server)
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        withdrawn = server.next()
        assert withdrawn is not None
        assert withdrawn["method"] == "notifications/cancelled"
        assert withdrawn["params"]["requestId"] == asks["id"]
        server.send({"jsonrpc": "2.0", "id": asks["id"], "result": ANSWERS["elicitation/create"]})
        call(server, 2)
        again = question(server)
        server.send({"jsonrpc": "2.0", "id": again["id"], "result": {"action": "decline"}})
        assert found(server.response(2)) == [{"result": {"action": "decline"}}]


def test_a_shared_process_asks_nobody(gateway: Start) -> None:
    """G2: the questions of a shared server are refused with a sentence that names the key."""
    with gateway({"a": stub("a", questions=QUESTIONS[:1])}) as server:
        server.initialize(capabilities=ALL)
        call(server, 1)
        [refused] = found(server.response(1))
        assert "`per_client: true` in its entry" in refused["error"]["message"]
        server.modern(2, "tools/call", {"name": "ask", "arguments": {}}, ALL)
        [refused] = found(server.response(2))
        assert "per_client" in refused["error"]["message"]
        assert eventually(lambda: b"per_client: true" in server.errors, 5)


def test_a_client_is_asked_only_what_it_declared(gateway: Start, tmp_path: Path) -> None:
    """R-004: capabilities that the client lacks are not declared, nor such questions passed."""
    log = tmp_path / "log"
    with gateway({"a": own(questions=QUESTIONS, log=str(log))}) as server:
        server.initialize(capabilities={"roots": {}})
        call(server, 1)
        asks = question(server)
        assert asks["method"] == "roots/list"
        server.send({"jsonrpc": "2.0", "id": asks["id"], "result": ANSWERS["roots/list"]})
        form, sample, roots = found(server.response(1))
        assert form["error"]["code"] == sample["error"]["code"] == -32601
        assert roots == {"result": ANSWERS["roots/list"]}
        assert asked(log, "initialize")[-1]["params"]["capabilities"] == {"roots": {}}


def test_logs_of_older_servers_reach_their_client(gateway: Start) -> None:
    """G2: on the connection of a client, log messages pass at its level; on the shared one they are dropped."""
    with gateway({"a": own(logs=True)}) as server:
        server.initialize()
        server.request("level", "logging/setLevel", {"level": "notice"})
        server.response("level")
        call(server, 1, "echo")
        server.response(1)
        message = server.next()
        assert message is not None
        assert message["params"] == {"level": "warning", "logger": "a", "data": ["notice"]}
        server.request("level", "logging/setLevel", {"level": "error"})
        server.response("level")
        call(server, 2, "echo")
        server.response(2)
        assert server.silent(0.3), "a warning is less than an error"
    with gateway({"a": stub("a", logs="unasked")}) as server:
        server.initialize()
        call(server, 1, "echo")
        server.response(1)
        assert server.silent(0.3)


def test_a_process_ends_with_its_client(program: Path, tmp_path: Path) -> None:
    """G2: a process of one client ends with its session; of two clients the right one is asked."""
    note = tmp_path / "pids"
    entry = own(questions=QUESTIONS[:1])
    command = noting([entry["command"], *entry["args"]], note)
    entry |= {"command": command[0], "args": command[1:]}
    pids = lambda: [int(line) for line in note.read_text().split()]  # noqa: E731
    every = {"mcpServers": {"a": {"resources": "*"}}}
    agents = {name: {"token": f"token-of-{name}", **every} for name in ("one", "two")}
    with (
        over_http(program, configured(tmp_path, {"a": entry}, agents)) as gateway,
        LegacyAgent(gateway.url, "token-of-one", ALL) as one,
        LegacyAgent(gateway.url, "token-of-two", ALL) as two,
    ):
        for agent, about in ((one, "of one"), (two, "of two"), (one, "again")):
            asks, answered = agent.converse(7, "ask", about)
            assert asks["params"]["message"] == about
            assert found(answered) == [{"result": {"action": "accept", "content": {"said": about}}}]
        shared, first, second = pids()
        assert one.http.delete("").status_code in (200, 202, 204)
        assert eventually(lambda: not is_there(first), 8)
        time.sleep(1)
        assert is_there(second), "its client is still there"
        assert is_there(shared)


def test_first_calls_at_once_keep_the_limit(program: Path, tmp_path: Path) -> None:
    """G2: a server has at most 20 processes of single clients, counted until each has ended."""
    note = tmp_path / "pids"
    entry = own()
    command = noting([entry["command"], *entry["args"]], note)
    entry |= {"command": command[0], "args": command[1:]}
    agents = {"one": {"token": "token-of-one", "mcpServers": {"a": {"resources": "*"}}}}
    with over_http(program, configured(tmp_path, {"a": entry}, agents)) as gateway, ExitStack() as stack:
        clients = [stack.enter_context(LegacyAgent(gateway.url, "token-of-one", ALL)) for _ in range(30)]
        pool = stack.enter_context(ThreadPoolExecutor(len(clients)))
        slow = {"name": "slow", "arguments": {"steps": 80}}
        counted: list[int] = []

        def running() -> None:
            counted.append(sum(map(is_there, [int(line) for line in note.read_text().split()])))

        def at_once(own: list[LegacyAgent], params: Message) -> list[Message]:
            calls = [pool.submit(client.ask, 1, "tools/call", params) for client in own]
            while not all(call.done() for call in calls):
                running()
                time.sleep(0.005)
            return [call.result() for call in calls]

        clients[0].ask(0, "tools/list")
        answers = at_once(clients, slow)
        refused = [number for number, answered in enumerate(answers) if "error" in answered]
        assert len(refused) == 10
        assert "as many clients" in answers[refused[0]]["error"]["message"]
        # Unused processes end to make room for them.
        again = at_once([clients[number] for number in refused], {"name": "echo", "arguments": {}})
        assert all("result" in answered for answered in again)
        assert max(counted) == 21, "twenty, and the shared one"


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_the_official_sdks_on_both_sides(program: Path, tmp_path: Path, transport: str) -> None:
    """R-004: a tool of the TypeScript SDK asks the client of the Python SDK, in every way."""
    logged: list[object] = []

    async def elicit(_: object, params: Any) -> Any:
        assert params.message == "Who are you?"
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def sample(_: object, params: Any) -> Any:
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(type="text", text="Yo"), model=f"m{params.max_tokens}"
        )

    async def roots(_: object) -> Any:
        return types.ListRootsResult(roots=[types.Root(uri="file:///project")])

    async def log(params: Any) -> None:
        logged.append(params.data)

    peer = Peer("asking", (NODE, str(ROOT / "tests" / "peers" / "asking.mjs")))
    with ExitStack() as stack:
        if transport == "http":
            entry: dict[str, Any] = {"url": stack.enter_context(serving(peer)), "resources": "*"}
        else:
            command, *args = peer.stdio()
            entry = {"command": command, "args": args, "per_client": True, "resources": "*"}
        file = configured(tmp_path, {"asking": entry})
        target = StdioServerParameters(command=str(program), args=["gateway", "--config", str(file)])
        async with Client(
            target,
            mode="legacy",
            elicitation_callback=elicit,
            sampling_callback=sample,
            list_roots_callback=roots,
            logging_callback=log,
        ) as client:
            for _ in range(2):
                done = await client.call_tool("ask", {})
                assert json.loads(done.content[0].text) == ["Ada", "Yo", ["file:///project"]]  # type: ignore[union-attr]
            assert logged == ["I ask", "I ask"]
