"""The gateway beside servers that are killed, hang, lie and flood: some rounds, and in `make soak` many."""

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

from gateway import configured, is_there, noting, stub
from process import Server, eventually, running

ROUNDS = int(os.environ.get("MCP_RESOURCES_UPSTREAMS", "12"))
WELL = [f"w://{number}" for number in range(20)]


def entries(tmp_path: Path) -> dict[str, Any]:
    killed = stub("killed", resources={"k://1": "k"})
    command = noting([killed["command"], *killed["args"]], tmp_path / "pids")
    # Each has its own URIs: a server that answers to any URI could else say what it likes about those of others.
    bad = {
        "flood": stub("flood", resources={"f://1": "f"}, flood=20_000_000, entry={"timeout": 3000}),
        "hung": stub("hung", resources={"h://1": "h"}, hang=["resources/read", "tools/call"], entry={"timeout": 500}),
        "killed": killed | {"command": command[0], "args": command[1:], "timeout": 10_000},
        "lies": stub("lies", resources={"l://1": "l"}, lies=True, noise=True, twice=True),
        "turns": stub("turns", resources={"t://1": "t", "t://2": "t"}, circle=5),
    }
    own = {name: entry | {"resources": [f"{name[0]}://*"]} for name, entry in bad.items()}
    return own | {"well": stub("well", resources=dict.fromkeys(WELL, "well"))}


def ask(server: Server, number: int, method: str, params: dict[str, Any] | None = None) -> Any:
    return server.ask(f"{method} {number} {time.monotonic()}", method, params)


def listed(server: Server) -> set[str]:
    """The URIs of all pages."""
    uris: set[str] = set()
    cursor: dict[str, Any] = {}
    while True:
        page = ask(server, len(uris), "resources/list", cursor)["result"]
        uris |= {item["uri"] for item in page["resources"]}
        if "nextCursor" not in page:
            return uris
        cursor = {"cursor": page["nextCursor"]}


def check_well(server: Server, number: int) -> None:
    begun = time.monotonic()
    for uri in random.sample(WELL, 3):
        assert ask(server, number, "resources/read", {"uri": uri})["result"]["contents"][0]["text"] == "well"
    assert time.monotonic() - begun < 5, "the others cost it nothing"


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def test_bad_servers_cost_only_themselves(program: Path, tmp_path: Path) -> None:
    """Every round one of them is as bad as it can be; the good one answers at once, and nothing grows or is left."""
    pids = tmp_path / "pids"
    with running([str(program), "gateway", "--config", str(configured(tmp_path, entries(tmp_path)))]) as server:
        server.initialize()
        server.request("s", "resources/subscribe", {"uri": "k://1"})
        server.response("s")
        assert eventually(lambda: listed(server) >= {*WELL, "k://1"})
        first = None
        for number in range(ROUNDS):
            match random.choice(["kill", "hang", "lie", "flood", "list"]):
                case "kill":
                    last = int(pids.read_text().split()[-1])
                    if is_there(last):
                        os.kill(last, signal.SIGKILL)
                case "hang":
                    assert "error" in ask(server, number, "resources/read", {"uri": "h://1"})
                case "lie":
                    lied = ask(server, number, "resources/read", {"uri": "l://1"})
                    assert "secret" not in json.dumps(lied)
                case "flood":
                    server.modern(f"flood {number}", "resources/read", {"uri": "f://1"})
                    check_well(server, number)
                    server.response(f"flood {number}")
                case "list":
                    begun = time.monotonic()
                    assert listed(server) >= set(WELL)
                    assert time.monotonic() - begun < 20
            check_well(server, number)
            server._kept.clear()
            if number == ROUNDS // 3:
                first = descriptors(server.process.pid)
        assert eventually(lambda: descriptors(server.process.pid) <= (first or 0) + 8, 10)
        assert server.memory() < 600 << 20
        assert ask(server, ROUNDS, "resources/read", {"uri": "k://1"})["result"]["contents"][0]["text"] == "k"
        server.end_input()
        assert server.wait() == 0
    assert eventually(lambda: not any(is_there(int(pid)) for pid in pids.read_text().split()), 10)
