"""`mcp-resources gateway`: many servers behind one address, each agent sees its own (S-10 to S-15)."""

import json
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from gateway import Agent, LegacyAgent, Start, asked, configured, is_there, noting, over_http, stub
from process import Server, eventually, running


def everything(server: Server, method: str, member: str) -> list[Any]:
    """All pages of a list."""
    items: list[Any] = []
    cursor: dict[str, Any] = {}
    for number in range(1000):
        result = server.ask(f"{method} {number} {time.monotonic()}", method, cursor)["result"]
        items += result[member]
        if "nextCursor" not in result:
            return items
        cursor = {"cursor": result["nextCursor"]}
    raise AssertionError("the list has no end")


def uris(server: Server) -> list[str]:
    return [item["uri"] for item in everything(server, "resources/list", "resources")]


def names(server: Server, kind: str = "tools") -> list[str]:
    return [item["name"] for item in everything(server, f"{kind}/list", kind)]


def read(server: Server, uri: str) -> Any:
    """The text at a URI, or the error's code."""
    answered = server.ask(f"{uri} {time.monotonic()}", "resources/read", {"uri": uri})
    return answered["result"]["contents"][0]["text"] if "result" in answered else answered["error"]["code"]


def call(server: Server, tool: str, **arguments: Any) -> Any:
    given = {"name": tool, "arguments": arguments}
    answered = server.ask(f"{tool} {time.monotonic()}", "tools/call", given)
    return answered.get("result", answered.get("error"))


@pytest.mark.parametrize(
    "eras", [("legacy", "modern"), ("modern", "legacy"), ("legacy", "legacy"), ("modern", "modern")]
)
def test_two_servers_are_one(gateway: Start, eras: tuple[str, str]) -> None:
    """S-12: lists, reads, completes and calls what both have, in both eras up and down."""
    first = stub("a", era=eras[0], resources={"note://x": "of a"}, templates=["item://a/{id}"], prompts=["p", "greet"])
    second = stub(
        "b", era=eras[1], resources={"note://x": "of b", "note://y": "y"}, templates=["item://b/{id}"], prompts=["p"]
    )
    with gateway({"a": first, "b": second}) as server:
        for _ in range(2):
            assert uris(server) == ["note://x", "b+note://x", "note://y"]
            assert [read(server, uri) for uri in ("note://x", "b+note://x", "note://y", "item://b/7")] == [
                "of a", "of b", "y", "item item://b/7 of b",
            ]  # fmt: skip
        listed = everything(server, "resources/list", "resources")
        assert listed[1] == {"uri": "b+note://x", "name": "x", "odd": {"of": "b"}}
        templates = everything(server, "resources/templates/list", "resourceTemplates")
        assert [template["uriTemplate"] for template in templates] == ["item://a/{id}", "item://b/{id}"]
        assert names(server, "prompts") == ["a_p", "greet", "b_p"]
        assert "a_echo" in names(server)
        assert "b_echo" in names(server)
        prompt = server.ask("p", "prompts/get", {"name": "b_p"})["result"]
        assert prompt["messages"][0]["content"]["text"] == "p of b"
        result = call(server, "b_echo", x=[1])
        assert json.loads(result["content"][0]["text"])["arguments"] == {"x": [1]}
        assert result["odd"] == [1, 2.5]
        failed = call(server, "a_fail")
        assert failed == {"code": -31999, "message": "It failed as asked", "data": {"why": "asked"}}
        for reference, values in [
            ({"type": "ref/resource", "uri": "item://b/{id}"}, ["of-b"]),
            ({"type": "ref/prompt", "name": "greet"}, ["of-a"]),
        ]:
            argument = {"name": "id", "value": "of"}
            completed = server.ask(
                json.dumps(reference), "completion/complete", {"ref": reference, "argument": argument}
            )
            assert completed["result"]["completion"]["values"] == values
        # The older era downstream, on the same pipe.
        server.initialize()
        server.request("old", "resources/read", {"uri": "note://none"})
        assert server.response("old")["error"]["code"] == -32002
        server.request("list", "tools/list")
        assert server.response("list")["result"]["tools"]
        server.end_input()
        assert server.wait() == 0


def test_updates_and_lists_follow(gateway: Start, tmp_path: Path) -> None:
    """S-13: a change of a resource and of each list reaches sessions and listens."""
    logs = [tmp_path / "a", tmp_path / "b"]
    first = stub("a", resources={"note://x": "x"}, log=str(logs[0]))
    second = stub("b", era="modern", resources={"note://x": "other", "note://y": "y"}, log=str(logs[1]))
    with gateway({"a": first, "b": second}) as server:
        assert len(uris(server)) == 3
        server.initialize()
        for uri in ("note://x", "b+note://x", "note://y"):
            server.request(uri, "resources/subscribe", {"uri": uri})
            assert server.response(uri)["result"] == {}
        wanted = [{"uri": "note://x"}, {"uri": "note://x"}]
        assert eventually(lambda: [line["params"] for line in asked(logs[0], "resources/subscribe")] == wanted[:1])
        listens = lambda: asked(logs[1], "subscriptions/listen")  # noqa: E731
        assert eventually(
            lambda: any(
                len(line["params"]["notifications"].get("resourceSubscriptions", [])) == 2 for line in listens()
            )
        )
        time.sleep(0.2)
        assert server.silent(0.2), "nothing has changed"
        for tool, uri, shown in [
            ("a_set", "note://x", "note://x"),
            ("b_set", "note://x", "b+note://x"),
            ("b_set", "note://y", "note://y"),
        ]:
            server.request(shown, "tools/call", {"name": tool, "arguments": {"uri": uri, "text": "new"}})
            server.response(shown)
            if not server._kept:
                server._kept.append(server.next() or {})
            message = server.next()
            assert message == {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": shown}}
        server.request("add", "tools/call", {"name": "a_add", "arguments": {"uri": "note://z"}})
        server.response("add")
        message = server.next()
        assert message is not None
        assert message["method"] == "notifications/resources/list_changed"
        assert "note://z" in uris(server)
        for uri in ("note://x", "b+note://x", "note://y"):
            server.request(f"-{uri}", "resources/unsubscribe", {"uri": uri})
            server.response(f"-{uri}")
        assert eventually(lambda: [line["params"] for line in asked(logs[0], "resources/unsubscribe")] == wanted[:1])
        assert eventually(lambda: listens()[-1]["params"]["notifications"].get("resourceSubscriptions") == [])


def test_hung_servers_cost_two_seconds(gateway: Start) -> None:
    """Three hung servers: a list within 2.2 s that names them; after five failures they cost nothing."""
    servers = {f"hung{number}": stub("h", hang=["*"]) for number in range(2)}
    servers["hung2"] = stub("h", hang=["resources/list", "tools/list", "resources/templates/list"])
    with gateway(servers | {"well": stub("well", resources={"note://x": "x"})}) as server:
        server.ask("start", "prompts/list")
        for method, member in [
            ("resources/list", "resources"),
            ("tools/list", "tools"),
            ("resources/templates/list", "resourceTemplates"),
        ]:
            begun = time.monotonic()
            result = server.ask(method, method)["result"]
            assert time.monotonic() - begun < 2.2
            missing = [value for key, value in result["_meta"].items() if key.endswith("missing")]
            assert missing == [["hung0", "hung1", "hung2"]]
            assert result["ttlMs"] == 0
            assert len(result[member]) == {"resources": 1, "tools": 6, "resourceTemplates": 0}[member]
        assert read(server, "note://x") == "x"
        for number in range(5):
            server.ask(f"again {number}", "resources/list")
        begun = time.monotonic()
        assert len(server.ask("last", "resources/list")["result"]["resources"]) == 1
        assert time.monotonic() - begun < 1


def test_a_late_list_is_used(gateway: Start) -> None:
    """A server that starts too slowly for the first list is in the next one, and the list counts as changed."""
    slow = stub("slow", resources={"note://late": "late"})
    slow |= {"command": "sh", "args": ["-c", 'sleep 3; exec "$0" "$@"', sys.executable, *slow["args"]]}
    with gateway({"slow": slow}) as server:
        server.initialize()
        server.request("first", "resources/list")
        assert server.response("first")["result"]["resources"] == []
        message = server.next()
        assert message is not None
        assert message["method"] == "notifications/resources/list_changed"
        assert uris(server) == ["note://late"]


def test_lies_cost_only_the_liar(gateway: Start) -> None:
    """S-12: circles of pages, repeated items, contents of other URIs, answers to nothing, 100 MB."""
    servers = {
        "circle": stub("circle", resources={"c://1": "1", "c://2": "2"}, circle=7),
        "flood": stub("flood", resources={"f://1": "1"}, flood=100_000_000),
        "lies": stub("lies", resources={"l://1": "1"}, lies=True, entry={"resources": ["l://**"]}),
        "noise": stub("noise", resources={"n://1": "n"}, noise=True, twice=True),
        "well": stub("well", resources={"w://1": "w"}),
    }
    with gateway(servers) as server:
        listed = uris(server)
        assert set(listed) == {"c://1", "f://1", "l://1", "n://1", "w://1"}
        assert [uri for uri in listed if uri != "c://1"] == ["f://1", "l://1", "n://1", "w://1"]
        lied = server.ask("lie", "resources/read", {"uri": "l://1"})["result"]
        assert [one["uri"] for one in lied["contents"]] == ["l://1"]
        server.modern("flood", "resources/read", {"uri": "f://1"})
        begun = time.monotonic()
        assert (read(server, "w://1"), read(server, "n://1")) == ("w", "n")
        assert time.monotonic() - begun < 5
        assert server.response("flood")["error"]["code"] != -32602
        assert read(server, "w://1") == "w"
        assert server.memory() < 900 << 20


def test_three_lists_of_ten_thousand(gateway: Start) -> None:
    """Three servers, 10,000 items each, while items are inserted: the union is exact."""
    servers = {
        name: stub(name, count=10_000, page=500, era=era)
        for name, era in [("a", "legacy"), ("b", "modern"), ("c", "legacy")]
    }
    with gateway(servers) as server:
        names(server)
        items: list[str] = []
        cursor: dict[str, Any] = {}
        inserted = 0
        while True:
            result = server.ask(f"page {inserted}", "resources/list", cursor)["result"]
            items += [item["uri"] for item in result["resources"]]
            if "nextCursor" not in result:
                break
            cursor = {"cursor": result["nextCursor"]}
            inserted += 1
            call(server, f"{'abc'[inserted % 3]}_add", uri=f"many://new/{inserted}")
        wanted = {f"many://{name}/{number:05}" for name in "abc" for number in range(10_000)}
        old = [uri for uri in items if "/new/" not in uri]
        assert len(old) == 30_000
        assert set(old) == wanted
        assert len(items) == len(set(items))


def test_names_and_prefixes(gateway: Start) -> None:
    """G2: a prefix always; `ui://` keeps its scheme, and a tool's page follows it; globs of tools."""
    page = {"ui": {"resourceUri": "ui://shop/page"}, "ui/resourceUri": "ui://shop/page"}
    first = stub(
        "a",
        resources={"ui://shop/page": "of a", "note://x": "x"},
        only_tools={"show": page, "own": None, "hidden": None},
    )
    second = stub("b", era="modern", resources={"ui://shop/page": "of b"}, only_tools={"show": page, "echo": None})
    third = stub(
        "c",
        resources={"ui://shop/page": "of c", "note://x": "c"},
        templates=["item://c/{id}"],
        only_tools={"echo": page},
        prompts=["p"],
    )
    first["tools"] = ["show", "o*"]
    third["prefix"] = "pre"
    with gateway({"a": first, "b": second, "c": third}) as server:
        assert names(server) == ["a_show", "own", "b_show", "echo", "pre_echo"]
        assert uris(server) == ["note://x", "ui://shop/page", "ui://b+shop/page", "pre+note://x", "ui://pre+shop/page"]
        tools = {tool["name"]: tool for tool in everything(server, "tools/list", "tools")}
        for tool, text in [("a_show", "of a"), ("b_show", "of b"), ("pre_echo", "of c")]:
            uri = tools[tool]["_meta"]["ui"]["resourceUri"]
            assert uri.startswith("ui://")
            assert tools[tool]["_meta"]["ui/resourceUri"] == uri
            assert read(server, uri) == text
            assert call(server, tool)["_meta"]["ui"]["resourceUri"] == uri
        assert read(server, "pre+note://x") == "c"
        assert read(server, "pre+item://c/1") == "item item://c/1 of c"
        assert read(server, "item://c/1") == -32602, "without the prefix nobody has it"
        templates = everything(server, "resources/templates/list", "resourceTemplates")
        assert [template["uriTemplate"] for template in templates] == ["pre+item://c/{id}"]
        assert names(server, "prompts") == ["pre_p"]
        for unknown in ("hidden", "a_hidden", "show", "c_echo"):
            assert call(server, unknown) == {"code": -32602, "message": f"Unknown tool: {unknown}"}


def test_names_survive_a_restart(program: Path, tmp_path: Path) -> None:
    """Of two equal URIs both stay readable, under the same URIs in every process, wherever a list begins."""
    servers = {
        "a": stub("a", count=30, page=10, resources={"same://1": "of a"}),
        "b": stub("b", resources={"same://1": "of b"}),
    }
    command = [str(program), "gateway", "--config", str(configured(tmp_path, servers))]
    for _ in range(2):
        with running(command) as server:
            assert read(server, "b+same://1") == "of b"
            assert read(server, "same://1") == "of a"
            assert uris(server)[-1] == "b+same://1"


def test_input_passes_with_its_state(gateway: Start) -> None:
    """G2: a modern server's question reaches a modern client; a state that this client was not given is unknown."""
    with gateway({"a": stub("a", era="modern", asks=True, only_tools={"sure": None})}) as server:
        params = {"name": "sure", "arguments": {}}
        server.modern("ask", "tools/call", params, {"elicitation": {}})
        result = server.response("ask")["result"]
        assert result["resultType"] == "input_required"
        state = result["requestState"]
        answered = {"inputResponses": {"q": {"action": "accept", "content": {}}}, "requestState": state}
        assert "content" in server.ask("done", "tools/call", params | answered)["result"]
        wrong = server.ask("wrong", "tools/call", params | answered | {"requestState": "guessed"})
        assert wrong["error"]["code"] == -32602
        server.initialize()
        server.request("old", "tools/call", params)
        assert "error" in server.response("old")


AGENTS = {
    "one": {
        "token": "token-of-one",
        "mcpServers": {
            "a": {"resources": ["note://pub/**", "item://a/of*"], "tools": ["echo"]},
            "both": {"resources": "*", "tools": []},
        },
    },
    "two": {
        "token": "token-of-two",
        "mcpServers": {"b": {"resources": ["note://**"]}, "both": {"resources": ["same://2"], "tools": ["set"]}},
    },
}


def worlds(tmp_path: Path) -> tuple[dict[str, Any], dict[str, Path]]:
    logs = {name: tmp_path / f"log-{name}" for name in ("a", "b", "both")}
    own = {"note://pub/1": "a1", "note://hid/1": "h1"}
    templates = ["item://a/{id}", "note://hid/{x}"]
    same = {"same://1": "1", "same://2": "2"}
    servers = {
        "a": stub("a", count=250, page=100, resources=own, templates=templates, log=str(logs["a"])),
        "b": stub("b", era="modern", resources={"note://pub/1": "b1", "note://only/b": "b"}, log=str(logs["b"])),
        "both": stub("both", era="modern", ttl=60_000, scope="public", resources=same, log=str(logs["both"])),
    }
    return servers, logs


def test_two_agents_have_two_worlds(program: Path, tmp_path: Path) -> None:
    """S-10, S-12, S-15: lists, reads, completion, tools; what another agent has is answered as what nobody has."""
    servers, logs = worlds(tmp_path)
    file = configured(tmp_path, servers, AGENTS)
    with over_http(program, file) as gateway:
        one, two = (Agent(gateway.url, f"token-of-{name}") for name in ("one", "two"))
        for stranger in (Agent(gateway.url, None), Agent(gateway.url, "token-of-three")):
            assert stranger.ask(1, "resources/list") == 401
        assert uris(one) == ["note://pub/1", "same://1", "same://2"]  # type: ignore[arg-type]
        assert uris(two) == ["note://only/b", "note://pub/1", "same://2"]  # type: ignore[arg-type]
        assert names(one) == ["echo"]  # type: ignore[arg-type]
        assert names(two) == ["add", "b_set", "echo", "fail", "remove", "slow", "both_set"]  # type: ignore[arg-type]
        templates = everything(one, "resources/templates/list", "resourceTemplates")  # type: ignore[arg-type]
        assert [template["uriTemplate"] for template in templates] == ["item://a/{id}"]
        assert everything(two, "resources/templates/list", "resourceTemplates") == []  # type: ignore[arg-type]
        # One URI on two servers: each reads its own.
        assert (read(one, "note://pub/1"), read(two, "note://pub/1")) == ("a1", "b1")  # type: ignore[arg-type]
        unknown = two.ask("x", "resources/read", {"uri": "note://none"})
        for guess in ("same://1", "a+note://pub/1", "item://a/of-a", "many://a/00001", "both+same://1"):
            answered = two.ask("x", "resources/read", {"uri": guess})
            assert answered == json.loads(json.dumps(unknown).replace("note://none", guess))
        assert one.ask("x", "resources/read", {"uri": "note://hid/1"})["error"]["code"] == -32602
        for agent, guess in [(two, "a_echo"), (one, "set"), (one, "both_set"), (two, "nothing")]:
            answered = agent.ask("x", "tools/call", {"name": guess, "arguments": {}})
            assert answered["error"] == {"code": -32602, "message": f"Unknown tool: {guess}"}
        completion = {"ref": {"type": "ref/resource", "uri": "item://a/{id}"}, "argument": {"name": "id", "value": ""}}
        assert one.ask("c", "completion/complete", completion)["result"]["completion"] == {
            "values": ["of-a"],
            "total": 1,
            "hasMore": False,
        }
        refused = two.ask("c", "completion/complete", completion)
        completion["ref"]["uri"] = "item://none/{id}"
        assert two.ask("c", "completion/complete", completion) == refused
        # A cursor of one agent does not open for another.
        assert "error" in two.ask("k", "resources/list", {"cursor": "garbage"})
        # A public result is asked for once for both; nothing hidden was asked for at all.
        assert (read(one, "same://2"), read(two, "same://2"), read(one, "same://2")) == ("2", "2", "2")  # type: ignore[arg-type]
        reads = [line["params"]["uri"] for line in asked(logs["both"], "resources/read")]
        assert reads.count("same://2") == 1
        assert {line["params"]["uri"] for line in asked(logs["a"], "resources/read")} == {"note://pub/1"}
        assert len(asked(logs["both"], "server/discover")) == 1, "both agents share the server"


def test_an_older_session_over_http_has_its_world(program: Path, tmp_path: Path) -> None:
    """S-10, S-12: the same world in a session of an older revision; every answer is valid under its schema."""
    servers, _ = worlds(tmp_path)
    with (
        over_http(program, configured(tmp_path, servers, AGENTS)) as gateway,
        LegacyAgent(gateway.url, "token-of-one") as one,
    ):
        assert uris(one) == ["note://pub/1", "same://1", "same://2"]  # type: ignore[arg-type]
        assert names(one) == ["echo"]  # type: ignore[arg-type]
        assert read(one, "note://pub/1") == "a1"  # type: ignore[arg-type]
        assert read(one, "note://hid/1") == -32002  # type: ignore[arg-type]
        assert json.loads(call(one, "echo", n=1)["content"][0]["text"])["arguments"] == {"n": 1}  # type: ignore[arg-type]
        templates = everything(one, "resources/templates/list", "resourceTemplates")  # type: ignore[arg-type]
        assert [template["uriTemplate"] for template in templates] == ["item://a/{id}"]


def test_a_cursor_is_one_agents(program: Path, tmp_path: Path) -> None:
    servers = {"a": stub("a", count=250, page=100)}
    own = {"mcpServers": {"a": {"resources": "*"}}}
    agents = {name: {"token": f"token-of-{name}", **own} for name in ("one", "two")}
    with over_http(program, configured(tmp_path, servers, agents)) as gateway:
        one, two = (Agent(gateway.url, f"token-of-{name}") for name in ("one", "two"))
        cursor = one.ask(1, "resources/list")["result"]["nextCursor"]
        unknown = two.ask(2, "resources/list", {"cursor": "garbage"})
        assert two.ask(2, "resources/list", {"cursor": cursor}) == unknown
        assert len(one.ask(2, "resources/list", {"cursor": cursor})["result"]["resources"]) == 100


def test_a_private_result_is_one_agents(program: Path, tmp_path: Path) -> None:
    """A result that is `private` is asked for again for another agent, and kept for its own."""
    log = tmp_path / "log"
    servers = {"a": stub("a", era="modern", ttl=60_000, resources={"note://x": "x"}, log=str(log))}
    own = {"mcpServers": {"a": {"resources": "*"}}}
    agents = {name: {"token": f"token-of-{name}", **own} for name in ("one", "two")}
    with over_http(program, configured(tmp_path, servers, agents)) as gateway:
        one, two = (Agent(gateway.url, f"token-of-{name}") for name in ("one", "two"))
        for agent in (one, one, two, two, one):
            assert read(agent, "note://x") == "x"  # type: ignore[arg-type]
        assert len(asked(log, "resources/read")) == 2


def test_nothing_is_left(program: Path, tmp_path: Path) -> None:
    """Done when 5: no process is left after the end of stdin, SIGTERM, or kill -9 of the gateway."""
    note = tmp_path / "pids"
    entry = stub("a", resources={"note://x": "x"})
    command = noting([entry["command"], *entry["args"]], note)
    stubborn = noting(["sh", "-c", "trap '' TERM; sleep 1000 & while true; do sleep 1000; done"], note)
    servers = {
        "a": entry | {"command": command[0], "args": command[1:]},
        "stubborn": entry | {"command": stubborn[0], "args": stubborn[1:]},
    }
    file = configured(tmp_path, servers)
    for end in ("stdin", "term", "kill"):
        note.unlink(missing_ok=True)
        with running([str(program), "gateway", "--config", str(file)]) as server:
            assert uris(server) == ["note://x"]
            pids = [int(line) for line in note.read_text().split()]
            assert len(pids) == 2
            family = pids + [
                int(child) for pid in pids for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            ]
            assert all(map(is_there, family))
            if end == "stdin":
                server.end_input()
                assert server.wait() == 0
            elif end == "term":
                server.process.send_signal(signal.SIGTERM)
                assert server.wait() == 0
            else:
                server.process.kill()
                server.wait()
            assert eventually(lambda family=family: not any(map(is_there, family)), 5), end


def test_a_server_that_ends_returns(gateway: Start, tmp_path: Path) -> None:
    """S-13: a server that ends is started again; each watched URI is told once, within 2 s."""
    mark = tmp_path / "end"
    with gateway(
        {"a": stub("a", resources={"note://x": "x", "note://y": "y"}, ends_on=str(mark)), "b": stub("b")}
    ) as server:
        uris(server)
        server.initialize()
        for uri in ("note://x", "note://y"):
            server.request(uri, "resources/subscribe", {"uri": uri})
            server.response(uri)
        time.sleep(0.3)
        mark.write_text("")
        server.request("ends", "resources/read", {"uri": "note://x"})
        begun = time.monotonic()
        time.sleep(0.1)
        mark.unlink()
        told = [server.next(10) or {}, server.next(10) or {}]
        found = sorted(message["params"]["uri"] for message in told if "method" in message)
        while len(found) < 2:
            message = server.next(10) or {}
            if "method" in message:
                found = sorted([*found, message["params"]["uri"]])
        assert found == ["note://x", "note://y"]
        assert time.monotonic() - begun < 2.5
        time.sleep(0.5)
        assert not [message for message in server._kept if "method" in message]
        assert read(server, "note://y") == "y"


def test_a_file_that_is_read_again(program: Path, tmp_path: Path) -> None:
    """G3: SIGHUP takes the changes of the file; servers that stay keep their process and their subscriptions."""
    log, more = tmp_path / "log", tmp_path / "more"
    servers = {"a": stub("a", resources={"note://x": "x"}, log=str(log))}
    every = {"resources": "*"}
    agents: dict[str, Any] = {"one": {"token": "token-of-one", "mcpServers": {"a": every}}}
    file = configured(tmp_path, servers, agents)
    with over_http(program, file) as gateway:
        one, two = (Agent(gateway.url, f"token-of-{name}") for name in ("one", "two"))

        def read_again(note: str) -> None:
            count = len([line for line in gateway.said if note in line])
            gateway.process.send_signal(signal.SIGHUP)
            assert eventually(lambda: len([line for line in gateway.said if note in line]) > count), gateway.said

        with watching(gateway.url, "token-of-one", "note://x") as updates:
            assert eventually(lambda: asked(log, "resources/subscribe"))
            assert two.ask(1, "resources/list") == 401
            servers["b"] = stub("b", resources={"note://y": "y"}, log=str(more))
            agents["one"]["mcpServers"]["b"] = every
            agents["two"] = {"token": "token-of-two", "mcpServers": {"b": every}}
            configured(tmp_path, servers, agents)
            read_again("read again, with its changes")
            assert uris(one) == ["note://x", "note://y"]  # type: ignore[arg-type]
            assert uris(two) == ["note://y"]  # type: ignore[arg-type]
            time.sleep(2.5)
            call(one, "a_set", uri="note://x", text="new")  # type: ignore[arg-type]
            assert "resources/updated" in updates(10)
        assert len(asked(log, "resources/subscribe")) == 1, "it stayed subscribed"
        assert asked(log, "initialize") == asked(log, "initialize")[:1]
        # A wrong file changes nothing.
        file.write_text('{"mcpServers": {"a": {}}}')
        read_again("what was served before is still served")
        assert uris(one) == ["note://x", "note://y"]  # type: ignore[arg-type]
        # An agent and a server that are gone end.
        del servers["b"], agents["two"], agents["one"]["mcpServers"]["b"]
        configured(tmp_path, servers, agents)
        read_again("read again, with its changes")
        assert two.ask(1, "resources/list") == 401
        assert uris(one) == ["note://x"]  # type: ignore[arg-type]
        read_again("no agent has changed")


@contextmanager
def watching(url: str, token: str, uri: str) -> Iterator[Callable[[float], str]]:
    """A listen over HTTP, once it is acknowledged; gives the next message."""
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "subscriptions/listen",
        "Authorization": f"Bearer {token}",
    }
    params = {"notifications": {"resourceSubscriptions": [uri]}, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    messages: queue.Queue[str] = queue.Queue()
    with httpx2.stream("POST", url, json=body, headers=headers, timeout=60) as answered:

        def follow() -> None:
            with suppress(httpx2.HTTPError, RuntimeError):
                for line in answered.iter_lines():
                    if line.startswith("data: {"):
                        messages.put(line)

        threading.Thread(target=follow, daemon=True).start()
        assert "acknowledged" in messages.get(timeout=10)
        yield lambda seconds: messages.get(timeout=seconds)
