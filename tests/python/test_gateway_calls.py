"""The gateway: how long a call of a tool lasts, and the three things that end it before its result."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from gateway import Agent, Gateway, LegacyAgent, Start, asked, configured, noting, over_http, stub
from process import eventually

both_eras = pytest.mark.parametrize("era", ["legacy", "modern"])
TOKEN = "token-of-one"
SLOW = {"name": "slow", "arguments": {"steps": 1000}}
ONE = {"one": {"token": TOKEN, "mcpServers": {"a": {"resources": "*"}}}}


@both_eras
def test_no_time_out_ends_a_call(gateway: Start, era: str) -> None:
    """G2: a call outlasts the time-out of its server, and its progress comes through."""
    with gateway({"a": stub("a", era=era, entry={"timeout": 500})}) as server:
        given = {"name": "slow", "arguments": {"steps": 20}, "_meta": {"progressToken": "t"}}
        server.modern(1, "tools/call", given)
        assert server.response(1)["result"]["content"]
        steps = [one["params"]["progress"] for one in server._kept if one.get("method") == "notifications/progress"]
        assert len(steps) > 5
        assert steps == sorted(steps)


@both_eras
def test_a_call_ends_with_its_cancellation(gateway: Start, tmp_path: Path, era: str) -> None:
    """G2: what a client cancels is cancelled at the server."""
    log = tmp_path / "log"
    with gateway({"a": stub("a", era=era, log=str(log))}) as server:
        server.modern(1, "tools/call", SLOW)
        assert eventually(lambda: asked(log, "tools/call"))
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        assert eventually(lambda: asked(log, "was cancelled"), 5)


@contextmanager
def calling(program: Path, folder: Path, **spec: Any) -> Iterator[tuple[Gateway, Path]]:
    """A gateway over HTTP of one stub, and the stub's log."""
    log = folder / "log"
    with over_http(program, configured(folder, {"a": stub("a", log=str(log), **spec)}, ONE)) as gateway:
        yield gateway, log


@both_eras
@pytest.mark.parametrize("streams", [True, False], ids=["stream", "no stream"])
def test_a_call_ends_with_its_client(program: Path, tmp_path: Path, era: str, streams: bool) -> None:
    """G2: the call of a client that is gone is cancelled at the server, whether its response has begun or not."""
    with calling(program, tmp_path, era=era) as (gateway, log):
        meta = {"_meta": {"progressToken": "t"}} if streams else {}
        request = Agent(gateway.url, TOKEN).request(1, "tools/call", SLOW | meta)
        if streams:
            with httpx2.stream("POST", **request) as answered:
                assert any("notifications/progress" in line for line in answered.iter_lines())
        else:
            with pytest.raises(httpx2.ReadTimeout):
                httpx2.post(**request | {"timeout": 2})
        assert eventually(lambda: asked(log, "was cancelled"), 5)


@pytest.mark.parametrize("per_client", [True, False], ids=["own process", "shared process"])
def test_a_call_ends_with_its_session(program: Path, tmp_path: Path, per_client: bool) -> None:
    """G2: the calls of a session that its client ends are cancelled at the server."""
    with (
        calling(program, tmp_path, entry={"per_client": per_client}) as (gateway, log),
        LegacyAgent(gateway.url, TOKEN) as agent,
    ):
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": SLOW}
        calls = threading.Thread(target=lambda: agent.http.post("", json=body))
        calls.start()
        assert eventually(lambda: asked(log, "tools/call"))
        assert agent.http.delete("").status_code in (200, 202, 204)
        assert eventually(lambda: asked(log, "was cancelled"), 5)
        calls.join()


@pytest.mark.parametrize(("era", "per_client"), [("legacy", False), ("legacy", True), ("modern", False)])
def test_a_call_ends_with_its_server(gateway: Start, tmp_path: Path, era: str, per_client: bool) -> None:
    """G2: the call at a server that ends fails with its name, and is not made again."""
    log, note = tmp_path / "log", tmp_path / "pids"
    entry = stub("a", era=era, log=str(log), entry={"per_client": per_client})
    command = noting([entry["command"], *entry["args"]], note)
    with gateway({"a": entry | {"command": command[0], "args": command[1:]}}) as server:
        server.initialize()
        server.request(1, "tools/call", SLOW)
        assert eventually(lambda: asked(log, "tools/call"))
        os.kill(int(note.read_text().split()[-1]), signal.SIGKILL)
        assert 'The server "a"' in server.response(1)["error"]["message"]
        server.request(2, "tools/call", {"name": "echo", "arguments": {}})
        assert server.response(2)["result"]["content"]
        assert [one["params"]["name"] for one in asked(log, "tools/call")] == ["slow", "echo"]
