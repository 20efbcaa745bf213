"""`ResourceServer.from_config`: a server from the file of `mcp-resources serve`, and further registrations in code."""

import asyncio
import json
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp_resources import Auth, Context, Guard, RegistrationError, ResourceServer, StaticTokens, Verified, providers
from mcp_resources.testing import Client, ServerError
from test_asgi import post as asgi_post
from test_http import META, post, serving
from vectors import MODERN, ROOT

FIXTURES = ROOT / "tests" / "fixtures" / "serve"
TEAM: dict[str, Any] = json.loads((FIXTURES / "team.json").read_text())
WRONG: dict[str, Any] = json.loads((FIXTURES / "wrong.json").read_text())
PATIENCE = 20.0
Lists = Callable[[str], Awaitable[list[str]]]


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """A copy of the shared file."""
    shutil.copytree(FIXTURES / "team", tmp_path / "team")
    (tmp_path / "team" / "tokens.yaml").chmod(0o600)
    return tmp_path / "team" / "team.yaml"


def person(server: ResourceServer, name: str) -> Client:
    groups = {"alice": ["operations"], "bob": []}[name]
    return Client(server, principal=name, claims={"groups": groups})


async def uris(client: Client) -> list[str]:
    return sorted(item["uri"] for item in await client.list_resources())


async def becomes(wanted: list[str], client: Client) -> None:
    """Waits until a client sees something else."""
    end = time.monotonic() + PATIENCE
    while await uris(client) != wanted:
        assert time.monotonic() < end, await uris(client)
        await asyncio.sleep(0.05)


@asynccontextmanager
async def native(server: ResourceServer, **options: Any) -> AsyncIterator[Lists]:
    async with serving(server, **options) as url:
        assert url.endswith(options.get("path", "/team"))

        async def lists(token: str) -> list[str]:
            status, answer = await asyncio.to_thread(post, url, "resources/list", token)
            return [str(status)] if status != 200 else sorted(item["uri"] for item in answer["result"]["resources"])

        yield lists


@asynccontextmanager
async def asgi(server: ResourceServer, **options: Any) -> AsyncIterator[Lists]:
    app = server.asgi(**options)

    async def lists(token: str) -> list[str]:
        message = {"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": {"_meta": META}}
        headers = {"mcp_protocol_version": MODERN, "mcp_method": "resources/list", "authorization": f"Bearer {token}"}
        call = asgi_post(app, message, path=options.get("path", "/team"), **headers)
        answer = await call.json()
        if call.status != 200:
            return [str(call.status)]
        return sorted(item["uri"] for item in answer["result"]["resources"])

    yield lists


both = pytest.mark.parametrize("way", [native, asgi])


@both
async def test_everybody_sees_what_the_file_says(team: Path, way: Any) -> None:
    """S-20: sources, `for`, guard, tokens and paths are those of the file."""
    server = ResourceServer.from_config(team)
    assert server.name == TEAM["name"]
    async with way(server) as lists:
        for name, wanted in TEAM["sees"].items():
            assert await lists(TEAM["tokens"][name]) == wanted
        assert await lists("mcpr_another") == ["401"]
    server.flush_audit()
    names = {json.loads(line)["principal"] for line in (team.parent / "audit.jsonl").read_text().splitlines()}
    assert names >= set(TEAM["sees"])


async def test_code_adds_to_it(team: Path) -> None:
    """S-20: resources, tools, providers and lifespan in code stand beside the sources, and under the guard."""

    @asynccontextmanager
    async def lifespan(server: ResourceServer) -> AsyncIterator[str]:
        yield server.name

    server = ResourceServer.from_config(team, lifespan=lifespan)

    @server.resource("note://{owner}/{id}")
    def note(owner: str, id: int, ctx: Context[str]) -> str:
        return f"{id} of {owner} in {ctx.lifespan}"

    note.access(lambda principal, parameters: principal == parameters["owner"])

    @server.resource("x://drafts/one")
    def draft() -> str:
        return "not for bob"

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    memory = providers.memory()
    memory.put("today.md", "Rain")
    server.mount(memory)
    async with person(server, "alice") as alice, person(server, "bob") as bob:
        assert await alice.read_text("note://alice/7") == "7 of alice in team"
        assert await alice.read_text("memory:///today.md") == "Rain"
        assert await alice.read_text("config:///app/server/port") == "8080"
        assert await alice.read_text("x://drafts/one") == "not for bob"
        for hidden in ("note://alice/7", "config:///app/server/port", "x://drafts/one"):
            with pytest.raises(ServerError, match="not found"):
                await bob.read(hidden)
        added = await bob.request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
        assert added["structuredContent"] == 3
        assert (await alice.request("server/discover"))["instructions"].startswith("Read file:///handbook")


async def test_a_change_counts_at_once(team: Path, caplog: pytest.LogCaptureFixture) -> None:
    """S-20: the file is looked at; open clients go on, and a mistake is logged once and changes nothing."""
    server = ResourceServer.from_config(team)
    server.resource("own://1")(lambda: "mine")
    with caplog.at_level(logging.WARNING):
        async with person(server, "alice") as alice, person(server, "bob") as bob:
            for client, name in ((alice, "alice"), (bob, "bob")):
                assert await uris(client) == sorted([*TEAM["sees"][name], "own://1"])
            async with bob.listen(["file:///handbook/start.md"]):
                text = team.read_text()
                changed = text.replace(TEAM["change"]["from"], TEAM["change"]["to"])
                assert changed != text
                team.write_text(changed)
                for client, name in ((alice, "alice"), (bob, "bob")):
                    await becomes(sorted([*TEAM["sees_then"][name], "own://1"]), client)
                team.write_text(changed.replace("guard:", "gard:"))
                end = time.monotonic() + PATIENCE
                while 'unexpected key "gard"' not in caplog.text:
                    assert time.monotonic() < end
                    await asyncio.sleep(0.05)
                assert await uris(bob) == sorted([*TEAM["sees_then"]["bob"], "own://1"])
    assert caplog.text.count("what was served before is still served") == 1


async def test_a_revoked_token(team: Path) -> None:
    """S-20: the file of tokens is read again, whether or not the document is watched."""
    server = ResourceServer.from_config(team, watch=False)
    tokens = team.parent / "tokens.yaml"
    async with native(server) as lists:
        assert await lists(TEAM["tokens"]["bob"]) == TEAM["sees"]["bob"]
        tokens.write_text("".join(line for line in tokens.read_text().splitlines(True) if '"bob"' not in line))
        end = time.monotonic() + PATIENCE
        while await lists(TEAM["tokens"]["bob"]) != ["401"]:
            assert time.monotonic() < end
            await asyncio.sleep(0.1)
        assert await lists(TEAM["tokens"]["alice"]) == TEAM["sees"]["alice"]


async def test_it_need_not_be_watched(team: Path) -> None:
    """S-20: without `watch` the document is read once."""
    server = ResourceServer.from_config(os.fspath(team), watch=False)
    async with person(server, "bob") as bob:
        text = team.read_text()
        team.write_text(text.replace(TEAM["change"]["from"], TEAM["change"]["to"]))
        await asyncio.sleep(1)
        assert await uris(bob) == TEAM["sees"]["bob"]


@both
async def test_options_of_a_call_replace_those_of_the_file(team: Path, way: Any) -> None:
    server = ResourceServer.from_config(team, metrics=True, limits={"page": 2})
    verify = StaticTokens({"own": Verified("bob")})
    auth = Auth("http://localhost/own", ["https://id.example.com"], verify)
    async with way(server, auth=auth, path="/own") as lists:
        assert await lists("own") == TEAM["sees"]["bob"][:2]
        assert await lists(TEAM["tokens"]["bob"]) == ["401"]
    assert "mcp_" in (server.metrics_text() or "")


def test_what_stands_in_the_file_alone(team: Path) -> None:
    given: list[dict[str, Any]] = [{"guard": {"deny": "**"}}, {"title": "x"}, {"instructions": "x"}, {"version": "2"}]
    for options in given:
        with pytest.raises(TypeError, match=f"{next(iter(options))} stands in the configuration file"):
            ResourceServer.from_config(team, **options)
    wrong: dict[str, Any] = {"limit": {}}
    with pytest.raises(TypeError, match='did you mean "limits"'):
        ResourceServer.from_config(team, **wrong)
    assert Guard({"deny": "**"}).decide("a://b") == "hidden"


@pytest.mark.parametrize("case", WRONG["files"], ids=lambda case: case["message"][:40])
def test_a_wrong_file(program: Path, tmp_path: Path, case: dict[str, Any]) -> None:
    """S-20: `serve --check` and code say the same sentence: file, key, value and remedy."""
    (tmp_path / "project").mkdir()
    (tmp_path / "tokens.yaml").write_text("- {name: alice, token: secret}\n")
    path = tmp_path / "serve.json"
    path.write_text(json.dumps({"providers": WRONG["providers"]} | case["file"]))
    message = f"{path}: {case['message'].replace('FOLDER', str(tmp_path))}"
    with pytest.raises(RegistrationError) as refused:
        ResourceServer.from_config(path)
    assert str(refused.value) == message
    words = [program, "serve", "--config", path, "--check"]
    checked = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (2, "", f"error: {message}\n")


FORKED = """
import asyncio, os, sys, time
from pathlib import Path

from mcp_resources import ResourceServer
from mcp_resources.testing import Client

path, before, after = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
server = ResourceServer.from_config(path)
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


async def main() -> int:
    async with Client(server, principal="bob") as bob:
        path.write_text(path.read_text().replace(before, after))
        for _ in range(400):
            if "file:///handbook/drafts/next.md" in [item["uri"] for item in await bob.list_resources()]:
                return 0
            await asyncio.sleep(0.05)
    return 1


os._exit(asyncio.run(main()))
"""


def test_a_forked_process_looks_at_the_file(team: Path) -> None:
    """S-20: a server that was made before a fork, as under gunicorn with `preload`, follows the file in the child."""
    words = [sys.executable, "-c", FORKED, str(team), TEAM["change"]["from"], TEAM["change"]["to"]]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(RegistrationError, match="it does not exist; create it, or name another file"):
        ResourceServer.from_config(tmp_path / "none.yaml")


async def test_a_proxy_says_who_somebody_is(team: Path) -> None:
    """S-20: `identity` needs the sockets of the server itself; an application inside another server says so."""
    text = team.read_text().replace("tokens: tokens.yaml", 'identity: {header: X-User, from: ["127.0.0.1"]}')
    team.write_text(text)
    server = ResourceServer.from_config(team)
    with pytest.raises(RegistrationError, match=r"team.yaml: auth.identity needs a server with sockets of its own"):
        server.asgi()
    async with serving(server) as url:
        status, _ = await asyncio.to_thread(post, url, "resources/list")
        assert status == 401
