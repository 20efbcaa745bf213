"""The gateway: a server that does not answer one method, odd entries of lists, and updates of several agents."""

import json
import queue
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

import httpx2
import pytest
from gateway import Agent, Start, asked, configured, over_http, stub
from process import eventually
from vectors import MODERN

LISTS = {
    "resources/list": "resources",
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/templates/list": "resourceTemplates",
}
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}


@pytest.mark.parametrize(
    ("era", "method"),
    [
        *[("legacy", method) for method in ("initialize", "resources/subscribe")],
        *[("modern", method) for method in ("server/discover", "subscriptions/listen")],
        *[
            (era, method)
            for era in ("legacy", "modern")
            for method in (*LISTS, "resources/read", "tools/call", "prompts/get", "completion/complete")
        ],
    ],
)
def test_a_hang_at_one_method(gateway: Start, tmp_path: Path, era: str, method: str) -> None:
    """S-12: a server that does not answer one method costs no other server anything but the time for its lists."""
    log = tmp_path / "log"
    hung = stub(
        "hung",
        era=era,
        hang=[method],
        log=str(log),
        resources={"hung://x": "h"},
        prompts=["hung"],
        templates=["item://hung/{id}"],
        entry={"prefix": "h", "timeout": 1500},
    )
    well = stub("well", resources={"note://x": "x"}, prompts=["well"], templates=["item://well/{id}"])
    completion = {"argument": {"name": "id", "value": ""}}
    with gateway({"hung": hung, "well": well}) as server:
        # What hangs is begun first.
        server.modern("h read", "resources/read", {"uri": "h+hung://x"})
        server.modern("h call", "tools/call", {"name": "h_echo", "arguments": {}})
        server.modern("h prompt", "prompts/get", {"name": "h_hung"})
        template = {"type": "ref/resource", "uri": "h+item://hung/{id}"}
        server.modern("h complete", "completion/complete", completion | {"ref": template})
        server.modern("h listen", "subscriptions/listen", {"notifications": {"resourceSubscriptions": ["h+hung://x"]}})
        for list_method, member in LISTS.items():
            begun = time.monotonic()
            result = server.ask(list_method, list_method)["result"]
            assert time.monotonic() - begun < 4, list_method
            assert any("h_" not in json.dumps(item) and "h+" not in json.dumps(item) for item in result[member])
            is_missing = any(key.endswith("missing") for key in result.get("_meta", {}))
            assert is_missing == (method in (list_method, "initialize", "server/discover")), list_method
        begun = time.monotonic()
        assert server.ask("read", "resources/read", {"uri": "note://x"})["result"]["contents"][0]["text"] == "x"
        assert "result" in server.ask("call", "tools/call", {"name": "echo", "arguments": {}})
        assert "result" in server.ask("prompt", "prompts/get", {"name": "well"})
        well_template = {"ref": {"type": "ref/resource", "uri": "item://well/{id}"}}
        assert "result" in server.ask("complete", "completion/complete", completion | well_template)
        assert time.monotonic() - begun < 4
        # No time-out ends a call of a tool or a prompt, so that one that hangs is not answered.
        calls = {"h call": "tools/call", "h prompt": "prompts/get"}
        for id in ("h read", "h complete", *[id for id, own in calls.items() if own != method]):
            server.response(id)


def test_odd_icons_and_reserved_keys(gateway: Start) -> None:
    """S-12: entries with icons that are none, and with keys of the protocol in `_meta`, leave the lists valid."""
    meta = {"io.modelcontextprotocol/subscriptionId": 7, "io.modelcontextprotocol/odd": {"a": [1]}, "mine": 2}
    odd = {
        "text": {"icons": "red", "_meta": meta},
        "number": {"icons": [5, {"src": 7}, {"sizes": "any"}], "_meta": meta},
        "null": {"icons": None, "_meta": None},
        "object": {"icons": {"src": "x"}, "_meta": 7},
        "script": {"icons": [{"src": "javascript:alert(1)"}], "title": "t"},
    }
    servers = {name: stub(name, resources={f"{name}://x": name}, more=more) for name, more in odd.items()}
    with gateway(servers | {"well": stub("well", resources={"note://x": "x"})}) as server:
        uris = {item["uri"] for item in server.ask("l", "resources/list")["result"]["resources"]}
        assert "note://x" in uris
        assert uris == {"note://x", *[f"{name}://x" for name in odd]}
        assert "well_echo" in {item["name"] for item in server.ask("t", "tools/list")["result"]["tools"]}


class Listener:
    """A subscription of an agent over HTTP, and the URIs of the updates that it hears."""

    def __init__(self, url: str, token: str, uris: list[str]) -> None:
        self.heard: queue.Queue[str] = queue.Queue()
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": "subscriptions/listen",
            "Authorization": f"Bearer {token}",
        }
        params = {"notifications": {"resourceSubscriptions": uris}, "_meta": META}
        self.body = {"jsonrpc": "2.0", "id": token, "method": "subscriptions/listen", "params": params}
        self.http = httpx2.Client(timeout=30, headers=headers)
        self.begun = threading.Event()
        self.thread = threading.Thread(target=self._read, args=(url,), daemon=True)
        self.thread.start()
        assert self.begun.wait(10)

    def _read(self, url: str) -> None:
        with suppress(httpx2.HTTPError), self.http.stream("POST", url, json=self.body) as answered:
            for line in answered.iter_lines():
                if line.startswith("data: {"):
                    message = json.loads(line.removeprefix("data: "))
                    if message.get("method") == "notifications/resources/updated":
                        self.heard.put(message["params"]["uri"])
                    self.begun.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # The gateway ends the stream.
        self.thread.join(10)
        self.http.close()

    def taken(self) -> list[str]:
        found = []
        while not self.heard.empty():
            found.append(self.heard.get())
        return found


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_each_agent_hears_its_own_updates(program: Path, tmp_path: Path, era: str) -> None:
    """S-10, S-15: of one server's updates each agent hears those of its own resources that it has asked for."""
    uris = ["note://one/x", "note://two/x", "note://both/x"]
    log = tmp_path / "log"
    own = {
        name: {"mcpServers": {"a": {"resources": [f"note://{name}/**", "note://both/**"]}}} for name in ("one", "two")
    }
    agents = {name: {"token": f"token-of-{name}", **world} for name, world in own.items()}
    agents["writer"] = {"token": "token-of-writer", "mcpServers": {"a": {"resources": "*"}}}
    servers = {"a": stub("a", era=era, resources=dict.fromkeys(uris, "x"), log=str(log))}
    with ExitStack() as stack:
        # The listeners are left last, when the gateway has ended their streams.
        ended = stack.enter_context(ExitStack())
        gateway = stack.enter_context(over_http(program, configured(tmp_path, servers, agents)))
        one, two = (ended.enter_context(Listener(gateway.url, f"token-of-{name}", uris)) for name in ("one", "two"))
        if era == "legacy":
            assert eventually(lambda: len(asked(log, "resources/subscribe")) == 3)
        else:

            def wanted() -> list[str]:
                listens = asked(log, "subscriptions/listen")
                found = listens[-1]["params"]["notifications"] if listens else {}
                return sorted(found.get("resourceSubscriptions", []))

            assert eventually(lambda: wanted() == sorted(uris))
        time.sleep(0.3)
        one.taken()
        two.taken()
        writer = Agent(gateway.url, "token-of-writer")
        for number, uri in enumerate(uris):
            given = {"name": "set", "arguments": {"uri": uri, "text": "new"}}
            assert "result" in writer.ask(number, "tools/call", given)
        time.sleep(1)
        assert set(one.taken()) == {"note://one/x", "note://both/x"}
        assert set(two.taken()) == {"note://two/x", "note://both/x"}
