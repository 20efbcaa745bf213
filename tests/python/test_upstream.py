"""The provider `upstream`: other servers in a server of one's own, in three languages (S-12, S-13, S-14)."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from gateway import is_there, noting, stub
from process import Server, eventually, running
from vectors import ROOT

LANGUAGES = ("rust", "python", "node")
CASES = json.loads((ROOT / "tests" / "fixtures" / "upstream.json").read_text())["cases"]
LISTED = {
    "resources/list": "uri",
    "resources/templates/list": "uriTemplate",
    "tools/list": "name",
    "prompts/list": "name",
}


def entry(spec: dict[str, Any], name: str) -> dict[str, Any]:
    """The options of a server in a case."""
    if "stub" not in spec:
        return spec
    own = stub(name, **spec["stub"])
    return {**own, **{key: value for key, value in spec.items() if key != "stub"}}


@pytest.fixture
def command(program: Path, tmp_path: Path) -> Any:
    """How a server of these servers is started."""

    def words(language: str, servers: dict[str, Any]) -> list[str]:
        if language == "python":
            return [sys.executable, str(Path(__file__).with_name("upstream_server.py")), json.dumps(servers)]
        if language == "node":
            script = ROOT / "tests" / "node" / "upstream-server.mjs"
            return [os.environ.get("NODE", "node"), str(script), json.dumps(servers)]
        file = tmp_path / "serve.json"
        file.write_text(json.dumps({"providers": [{"upstream": {"servers": servers}}]}))
        return [str(program), "serve", "--config", str(file), "--no-tools"]

    return words


def compare(answered: dict[str, Any], step: dict[str, Any], era: str) -> None:
    if "error" in step:
        codes = {"not found": -32002 if era == "legacy" else -32602}
        assert answered["error"]["code"] == codes.get(step["error"], step["error"])
        return
    result = answered["result"]
    if "uris" in step:
        method = step["ask"][0]
        [items] = [value for value in result.values() if isinstance(value, list)]
        assert [item[LISTED[method]] for item in items] == step["uris"]
    if "text" in step:
        assert result["contents"][0]["text"] == step["text"]
    if "content" in step:
        said = json.loads(result["content"][0]["text"])
        assert {member: said[member] for member in step["content"]} == step["content"]
    for member, value in step.get("result", {}).items():
        assert result[member] == value


def asking(server: Server, era: str, number: int, step: dict[str, Any]) -> dict[str, Any]:
    method, params = step["ask"]
    if era == "modern":
        return server.ask(number, method, params)
    server.request(number, method, params)
    return server.response(number)


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_cases(command: Any, case: dict[str, Any], language: str, era: str) -> None:
    """S-12, S-13, S-14: list, read, completion, update, templates, tools; hidden is absent; a dead one costs itself."""
    servers = {name: entry(spec, name) for name, spec in case["servers"].items()}
    with running(command(language, servers)) as server:
        if era == "legacy":
            offered = server.initialize()["capabilities"]
            assert {"tools", "prompts", "resources", "completions"} <= set(offered)
        for number, step in enumerate(case["steps"]):
            if "watch" in step:
                watch(server, era, step["watch"])
                continue
            begun = time.monotonic()
            answered = asking(server, era, number, step)
            assert time.monotonic() - begun < step.get("within", 30)
            compare(answered, step, era)
            if "updated" in step:
                told = server._kept.pop(0) if server._kept else server.next() or {}
                assert (told["method"], told["params"]["uri"]) == ("notifications/resources/updated", step["updated"])


def watch(server: Server, era: str, uris: list[str]) -> None:
    if era == "modern":
        server.modern("watch", "subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})
        acknowledged = server.next() or {}
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    else:
        for uri in uris:
            server.request(uri, "resources/subscribe", {"uri": uri})
            assert server.response(uri)["result"] == {}
    # The subscription at the server is made in the background.
    time.sleep(0.5)
    assert server.silent(0.2), "nothing has changed"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("servers", "named"),
    [
        ({}, "there are no servers"),
        ({"a": {}}, 'the server "a" needs either a command or a url'),
        ({"a": {"command": "x", "url": "http://x"}}, 'the server "a" needs either a command or a url'),
        ({"a": "wiki"}, "no http URL"),
        ({"a": {"command": "x", "resources": ["a b"]}}, '"a b" is no glob'),
        ({"a": {"command": "x", "tools": ["a b"]}}, '"a b" is no glob'),
        ({"a": {"command": "x", "prefix": "a b"}}, "prefix"),
        ({"a": {"command": "x", "resourcs": "*"}}, "resourcs"),
        ({"a": {"command": "x", "headers": {"X": "secret"}}}, "headers have no effect"),
        ({"a": {"url": "http://x/mcp", "env": {"X": "secret"}}}, "have no effect"),
        ({"a": {"url": "http://x/mcp", "headers": {"X": {"env": "NO_SUCH_VARIABLE"}}}}, "NO_SUCH_VARIABLE"),
        ({"a": {"url": "http://x/mcp", "headers": {"X": ["secret"]}}}, "{env: NAME}"),
        ({"a": {"command": "x", "timeout": 0}}, "timeout"),
    ],
)
def test_a_wrong_option_is_named(command: Any, servers: dict[str, Any], named: str, language: str) -> None:
    done = subprocess.run(command(language, servers), input="", capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert named in done.stderr
    assert "secret" not in done.stderr


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_is_left_when_it_is_killed(command: Any, tmp_path: Path, language: str) -> None:
    """The servers that it has started end with it, whichever way it ends; none is started before it is needed."""
    note = tmp_path / "pids"
    own = stub("a", resources={"note://x": "x"})
    started = noting([own["command"], *own["args"]], note)
    servers = {"a": own | {"command": started[0], "args": started[1:]}}
    for end in ("stdin", "kill"):
        note.unlink(missing_ok=True)
        with running(command(language, servers)) as server:
            server.initialize()
            assert not note.exists(), "nothing was asked yet"
            assert server.ask(2, "resources/read", {"uri": "note://x"})["result"]["contents"][0]["text"] == "x"
            [pid] = [int(line) for line in note.read_text().split()]
            if end == "stdin":
                server.end_input()
            else:
                server.process.kill()
            server.wait()
            assert eventually(lambda pid=pid: not is_there(pid), 5), end


def test_for_needs_uris_that_are_known(program: Path, tmp_path: Path) -> None:
    """An audience of an entry cannot be kept where its URIs are not known: it is refused, not ignored."""
    file = tmp_path / "serve.json"
    entry = {"upstream": {"servers": {"a": "http://127.0.0.1:9/mcp"}}, "for": ["staff"]}
    file.write_text(json.dumps({"providers": [entry]}))
    done = subprocess.run(
        [program, "serve", "--config", file], input="", capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 2
    assert "are not known before its servers are asked" in done.stderr
