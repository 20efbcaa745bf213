"""The gateway: input, logs, idle servers, instructions, its guard, metrics, changes of its file, and its own tokens."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
from gateway import Agent, Start, asked, configured, is_there, noting, over_http, stub
from http_aside import serving_aside
from process import eventually
from prometheus_client.parser import text_string_to_metric_families
from token_upstream import SECRET, TokenUpstream

FORM: dict[str, Any] = {"elicitation": {}}
INPUT = {"q": {"action": "accept", "content": {}}}


def read(agent: Any, uri: str) -> Any:
    answered = agent.ask(f"{uri} {time.monotonic()}", "resources/read", {"uri": uri})
    return answered["result"]["contents"][0]["text"] if "result" in answered else answered["error"]["code"]


def test_input_for_a_read_passes(program: Path, tmp_path: Path) -> None:
    """G2: a read that needs input asks the client, with its state; the state is that client's alone."""
    log = tmp_path / "log"
    servers = {
        "a": stub("a", era="modern", asks_reads=True, resources={"note://x": "x"}, log=str(log)),
        "b": stub("b", era="modern", asks_reads=True, resources={"note://x": "other"}),
    }
    every = {"resources": "*"}
    own = {"mcpServers": {"a": every, "b": every}}
    agents = {name: {"token": f"token-of-{name}", **own} for name in ("one", "two")}
    with over_http(program, configured(tmp_path, servers, agents)) as gateway:
        one, two = (Agent(gateway.url, f"token-of-{name}") for name in ("one", "two"))
        asks = one.ask(1, "resources/read", {"uri": "b+note://x"}, FORM)["result"]
        assert asks["resultType"] == "input_required"
        assert asks["inputRequests"]["q"]["params"]["message"] == "Sure?"
        retry = {"uri": "b+note://x", "inputResponses": INPUT, "requestState": asks["requestState"]}
        for guess in ({**retry, "requestState": "state of b"}, {**retry, "uri": "note://x"}):
            assert one.ask(2, "resources/read", guess, FORM)["error"]["code"] == -32602
        assert two.ask(2, "resources/read", retry, FORM)["error"]["code"] == -32602
        done = one.ask(3, "resources/read", retry, FORM)["result"]
        assert json.loads(done["contents"][0]["text"]) == {"known": True, "answers": INPUT}
        assert done["ttlMs"] == 0, "it depends on the answers"
        # Without the capability the client is told what is missing; the server is asked with the client's own.
        assert one.ask(4, "resources/read", {"uri": "note://x"})["error"]["data"] == {
            "requiredCapabilities": {"elicitation": {}}
        }
        declared = [line["params"]["_meta"] for line in asked(log, "resources/read")]
        assert [meta["io.modelcontextprotocol/clientCapabilities"] for meta in declared] == [{}]


def test_the_clients_capabilities_reach_the_tool(gateway: Start, tmp_path: Path) -> None:
    """G2: a modern server knows what the client that calls can do, and nothing of its identity."""
    log = tmp_path / "log"
    with gateway({"a": stub("a", era="modern", log=str(log))}) as server:
        server.modern(1, "tools/call", {"name": "echo", "arguments": {}}, {"sampling": {}, "roots": {}})
        server.response(1)
        [call] = asked(log, "tools/call")
        meta = call["params"]["_meta"]
        assert meta["io.modelcontextprotocol/clientCapabilities"] == {"sampling": {}, "roots": {}}
        assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "mcp-resources-gateway"


def test_log_messages_pass(gateway: Start) -> None:
    """G2: log messages of a call reach the client that wants them, and no other."""
    with gateway({"a": stub("a", era="modern", logs=True)}) as server:
        call = {"name": "echo", "arguments": {}}
        server.modern(1, "tools/call", call)
        server.response(1)
        assert server.silent(0.2)
        for level, count in (("info", 1), ("error", 0)):
            wanted = {"_meta": {"io.modelcontextprotocol/logLevel": level}}
            server.modern(level, "tools/call", call | wanted)
            server.response(level)
            told = [server.next() for _ in range(count)]
            for message in told:
                assert message is not None
                assert message["method"] == "notifications/message"
                assert message["params"]["logger"] == "a"
                assert message["params"]["data"] == {"tool": "echo"}
            assert server.silent(0.2)


def test_an_idle_server_ends_and_returns(gateway: Start, tmp_path: Path) -> None:
    """G1b: `idle` ends a server that nobody has used for so long, and it returns; a watched one stays."""
    note = tmp_path / "pids"
    entry = stub("a", resources={"note://x": "x"})
    command = noting([entry["command"], *entry["args"]], note)
    entry |= {"command": command[0], "args": command[1:], "idle": "1s"}
    pids = lambda: [int(line) for line in note.read_text().split()]  # noqa: E731
    with gateway({"a": entry}) as server:
        assert read(server, "note://x") == "x"
        [first] = pids()
        assert eventually(lambda: not is_there(first), 8)
        assert read(server, "note://x") == "x"
        [_, second] = pids()
        server.initialize()
        server.request("s", "resources/subscribe", {"uri": "note://x"})
        server.response("s")
        time.sleep(3)
        assert is_there(second), "it is watched"
        server.request("u", "resources/unsubscribe", {"uri": "note://x"})
        server.response("u")
        assert eventually(lambda: not is_there(second), 8)


def test_instructions_are_those_of_the_servers(gateway: Start) -> None:
    """G1b: each server's instructions under its name, in the order of names, bounded."""
    servers = {
        "b": stub("b", era="modern", instructions="Use b.", resources={"note://b": "b"}),
        "a": stub("a", instructions="A" * 10_000, resources={"note://a": "a"}),
        "none": stub("none"),
    }
    with gateway(servers) as server:
        assert (read(server, "note://a"), read(server, "note://b")) == ("a", "b")
        server.ask("list", "tools/list")

        def instructions(number: int) -> str:
            found = server.ask(f"d{number}", "server/discover")["result"]
            return str(found.get("instructions"))

        for number in range(100):
            if "Use b." in (text := instructions(number)):
                break
            time.sleep(0.05)
        assert text == f"a: {'A' * 4096}\n\nb: Use b."
        assert server.initialize()["instructions"] == text


def test_its_guard_and_audit_log(program: Path, tmp_path: Path) -> None:
    """G1b, G3: `guard` stands in front of all servers, as in `serve`; each request is recorded with its agent."""
    servers = {
        "a": stub("a", resources={"note://x": "x", "note://secret/y": "y"}, only_tools={"see": None, "hide": None})
    }
    own = {"mcpServers": {"a": {"resources": "*"}}}
    agents = {name: {"token": f"token-of-{name}", **own} for name in ("one", "two")}
    guard: dict[str, Any] = {
        "deny": ["note://secret/**"],
        "audit": "audit.jsonl",
        "principals": {"two": {"deny": ["note://**"]}},
        "tools": {"deny": ["hide"]},
    }
    file = tmp_path / "team.json"
    file.write_text(json.dumps({"mcpServers": servers, "agents": agents, "guard": guard}))
    with over_http(program, file, "--watch-config") as gateway:
        one, two = (Agent(gateway.url, f"token-of-{name}") for name in ("one", "two"))
        assert [item["uri"] for item in one.ask(1, "resources/list")["result"]["resources"]] == ["note://x"]
        assert two.ask(1, "resources/list")["result"]["resources"] == []
        assert [tool["name"] for tool in one.ask(2, "tools/list")["result"]["tools"]] == ["see"]
        assert one.ask(3, "tools/call", {"name": "hide", "arguments": {}})["error"]["code"] == -32602
        assert (read(one, "note://x"), read(one, "note://secret/y"), read(two, "note://x")) == ("x", -32602, -32602)
        # A changed file is read again by itself.
        guard["deny"] = ["note://x"]
        file.write_text(json.dumps({"mcpServers": servers, "agents": agents, "guard": guard}))
        assert eventually(lambda: any("read again, with its changes" in line for line in gateway.said), 10)
        assert (read(one, "note://x"), read(one, "note://secret/y")) == (-32602, "y")
        file.write_text('{"mcpServers": 7}')
        assert eventually(lambda: any("what was served before is still served" in line for line in gateway.said), 10)
        assert read(one, "note://secret/y") == "y"
    entries = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    reads = [(entry["principal"], entry["outcome"]) for entry in entries if entry["method"] == "resources/read"]
    assert ("one", "ok") in reads
    assert any(principal == "two" and outcome != "ok" for principal, outcome in reads)


@pytest.mark.parametrize(
    ("guard", "named"),
    [
        ({"dney": []}, 'guard: unexpected key "dney"'),
        ({"deny": ["a b"]}, "guard"),
        ({"http": {"path": "/x"}}, "guard.http"),
        ({"audit": 7}, "guard.audit"),
        (7, "guard is 7"),
    ],
)
def test_a_wrong_guard_is_one_sentence(program: Path, tmp_path: Path, guard: Any, named: str) -> None:
    file = tmp_path / "team.json"
    file.write_text(json.dumps({"mcpServers": {"a": {"command": "x", "resources": "*"}}, "guard": guard}))
    command = [program, "gateway", "--config", file]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr


def test_its_metrics(program: Path, tmp_path: Path) -> None:
    """G3: upstreams, breakers, subscriptions and latency by server, at an address of their own."""
    servers = {"a": stub("a", resources={"note://x": "x"}), "dead": {"command": "no-such-program", "resources": "*"}}
    with over_http(program, configured(tmp_path, servers), "--status", "127.0.0.1:0") as gateway:
        [line] = [line for line in gateway.said if "health and metrics at" in line]
        status = line.rpartition(" ")[2]
        agent = Agent(gateway.url, None)
        for number in range(6):
            agent.ask(number, "resources/list")
        assert read(agent, "note://x") == "x"
        assert httpx2.get(f"{status}/health").text == "ok\n"
        families = {
            family.name: {(sample.name, *sorted(sample.labels.items())): sample.value for sample in family.samples}
            for family in text_string_to_metric_families(httpx2.get(f"{status}/metrics").text)
        }
        prefix = "mcp_resources_upstream"
        sample = lambda name, server, **more: families[f"{prefix}_{name}"][  # noqa: E731
            (f"{prefix}_{name}{more.pop('suffix', '')}", *sorted({"server": server, **more}.items()))
        ]
        assert (sample("up", "a"), sample("up", "dead")) == (1, 0)
        assert (sample("breaker_open", "a"), sample("breaker_open", "dead")) == (0, 1)
        assert sample("subscriptions", "a") == 0
        assert sample("requests", "a", suffix="_total", outcome="answered") > 0
        assert sample("requests", "dead", suffix="_total", outcome="failed") >= 5
        assert sample("request_duration_seconds", "a", suffix="_count") > 0


def test_its_own_tokens(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G3: the gateway gets a token with its own credentials, renews it, and never passes on a client's."""
    monkeypatch.setenv("GATEWAY_SECRET", SECRET)
    with serving_aside(TokenUpstream(lasts=4)) as upstream:
        credentials = {
            "token_url": f"{upstream.url}/token",
            "client_id": "the gateway",
            "client_secret": "${GATEWAY_SECRET}",
            "scope": "read write",
        }
        servers = {"t": {"url": f"{upstream.url}/mcp", "client_credentials": credentials, "resources": "*"}}
        agents = {"one": {"token": "token-of-a-client", "mcpServers": {"t": {"resources": "*"}}}}
        with over_http(program, configured(tmp_path, servers, agents)) as gateway:
            agent = Agent(gateway.url, "token-of-a-client")
            for _ in range(3):
                assert read(agent, "note://t") == "for tokens"
            assert upstream.asked == [
                {"grant_type": "client_credentials", "scope": "read write", "id": "the gateway", "secret": SECRET}
            ]
            time.sleep(3.2)
            assert read(agent, "note://t") == "for tokens"
            assert len(upstream.given) == 2, "it was renewed before its end"
            # A token that was revoked fails once, and is replaced.
            upstream.revoke()
            assert isinstance(read(agent, "note://t"), int)
            assert read(agent, "note://t") == "for tokens"
            upstream.revoke()
            upstream.refuses = True
            for number in range(3):
                failed = agent.ask(number, "resources/read", {"uri": "note://t"})
                assert "credentials" in failed["error"]["message"]
                assert SECRET not in json.dumps(failed)
            assert not any("token-of-a-client" in str(header) for header in upstream.seen)
            assert not any(SECRET in line or "token-0" in line for line in gateway.said)


def test_a_fixed_bearer_is_the_gateways(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G3: a header of the entry goes to the server, whatever the client sends."""
    monkeypatch.setenv("WIKI_TOKEN", "fixed")
    with serving_aside(TokenUpstream()) as upstream:
        upstream.good.add("fixed")
        headers = {"Authorization": "Bearer ${WIKI_TOKEN}"}
        servers = {"t": {"url": f"{upstream.url}/mcp", "headers": headers, "resources": "*"}}
        agents = {"one": {"token": "token-of-a-client", "mcpServers": {"t": {"resources": "*"}}}}
        with over_http(program, configured(tmp_path, servers, agents)) as gateway:
            assert read(Agent(gateway.url, "token-of-a-client"), "note://t") == "for tokens"
        assert set(upstream.seen) == {"Bearer fixed"}


@pytest.mark.parametrize(
    ("credentials", "named"),
    [
        ({"token_url": "http://auth.example/t", "client_id": "a", "client_secret": "b"}, "https://"),
        ({"token_url": "http://127.0.0.1.evil.example/t", "client_id": "a", "client_secret": "b"}, "https://"),
        ({"token_url": "https://x/t", "client_id": "a"}, "client_secret"),
        ({"token_url": "https://x/t", "client_id": "a", "client_secret": "b", "scopes": "x"}, "scopes"),
        ({"token_url": 7, "client_id": "a", "client_secret": "b"}, "token_url"),
        ([], "client_credentials"),
    ],
)
def test_wrong_credentials_are_one_sentence(program: Path, tmp_path: Path, credentials: Any, named: str) -> None:
    servers = {"t": {"url": "https://x/mcp", "client_credentials": credentials, "resources": "*"}}
    command = [program, "gateway", "--config", configured(tmp_path, servers)]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode > 0
    assert done.stdout == ""
    assert named in done.stderr


def test_pages_follow_in_the_older_era(gateway: Start) -> None:
    """Done when 6: a tool's page and its result's follow the URI of the resource in the older era too."""
    page = {"ui": {"resourceUri": "ui://shop/page"}}
    servers = {
        "a": stub("a", resources={"ui://shop/page": "of a"}, only_tools={"show": page}),
        "b": stub(
            "b", era="modern", resources={"ui://shop/page": "of b"}, only_tools={"show": page}, entry={"prefix": "p"}
        ),
    }
    with gateway(servers) as server:
        for _ in range(2):
            server.ask(f"{time.monotonic()}", "resources/list")
        server.initialize()
        server.request("tools", "tools/list")
        tools = {
            tool["name"]: tool["_meta"]["ui"]["resourceUri"] for tool in server.response("tools")["result"]["tools"]
        }
        assert tools == {"show": "ui://shop/page", "p_show": "ui://p+shop/page"}
        for tool, text in (("show", "of a"), ("p_show", "of b")):
            server.request(tool, "resources/read", {"uri": tools[tool]})
            assert server.response(tool)["result"]["contents"][0]["text"] == text
            server.request(f"call {tool}", "tools/call", {"name": tool, "arguments": {}})
            result = server.response(f"call {tool}")["result"]
            assert result["_meta"]["ui"]["resourceUri"] == tools[tool]


def test_another_era_after_a_restart(gateway: Start, tmp_path: Path) -> None:
    """Bad input: a server that returns in the other era is read, called, listed and watched as before."""
    mark, other = tmp_path / "end", tmp_path / "modern"
    spec = {"resources": {"note://x": "x"}, "ends_on": str(mark), "modern_on": str(other)}
    with gateway({"a": stub("a", **spec)}) as server:
        server.initialize()
        server.request("s", "resources/subscribe", {"uri": "note://x"})
        server.response("s")
        for is_modern in (True, False):
            assert read(server, "note://x") == "x"
            other.write_text("") if is_modern else other.unlink()
            mark.write_text("")
            server.modern(f"ends {is_modern}", "resources/read", {"uri": "note://x"})
            time.sleep(0.3)
            mark.unlink()
            server.response(f"ends {is_modern}")
            assert eventually(lambda: read(server, "note://x") == "x", 10)
            given = {"name": "set", "arguments": {"uri": "note://x", "text": "x"}}
            server._kept.clear()
            assert "result" in server.ask(f"set {is_modern}", "tools/call", given)
            message = server.next(5)
            assert message is not None
            assert message["method"] == "notifications/resources/updated"
            assert [item["uri"] for item in server.ask(f"l {is_modern}", "resources/list")["result"]["resources"]] == [
                "note://x"
            ]
