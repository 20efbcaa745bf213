"""One server in Python, Node, Rust and both SDKs, two processes of each on one bus: each hears of all others.

Those of ours count the requests of a client together.
"""

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import brokers
import pytest
from brokers import NATS, NO_NATS, NO_REDIS, PATIENCE, REDIS
from listeners import Watcher, ask, eventually
from ports import reserved_port
from replicas import wait_for
from vectors import ROOT

with_redis = pytest.mark.skipif(REDIS is None, reason=NO_REDIS)
with_nats = pytest.mark.skipif(NATS is None, reason=NO_NATS)
LANGUAGES = ("python", "node", "rust")
SDKS = ("python-sdk", "typescript-sdk")
PYTHON = """
    import sys, threading
    from mcp_resources import ResourceServer
    port, bus, policy = sys.argv[1:]
    import json
    server = ResourceServer("notes", keys=[b"0f1e2d3c4b5a69788796a5b4c3d2e1f0"], bus=bus, guard=json.loads(policy))
    server.resource("note://{id}")(lambda id: id)
    def obey():
        for line in sys.stdin:
            server.notify_updated(line.strip())
    threading.Thread(target=obey, daemon=True).start()
    server.run("http", port=int(port))
"""


class Server:
    """A process of the server in one language."""

    def __init__(self, language: str, words: list[str], port: int, bus: str, policy: dict[str, Any], log: Path) -> None:
        self.language, self.port, self.log = language, port, log
        with log.open("wb") as output:
            command = [*words, f"{port}", bus, json.dumps(policy)]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=output, text=True, bufsize=1
            )

    def tell(self, uri: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(uri + "\n")
        self.process.stdin.flush()


@pytest.fixture(scope="session")
def commands() -> dict[str, list[str]]:
    """How each language starts one."""
    build = [ROOT / "tests" / "rust" / "program", "serve-bus"]
    rust = subprocess.run(build, stdout=subprocess.PIPE, text=True, check=True, timeout=900).stdout.strip()
    node = shutil.which("node")
    assert node is not None
    code = "\n".join(line.removeprefix("    ") for line in PYTHON.splitlines())
    return {
        "python": [sys.executable, "-c", code],
        "node": [node, str(ROOT / "tests" / "node" / "serve-bus.mjs")],
        "rust": [str(ROOT / rust)],
        "python-sdk": [sys.executable, str(ROOT / "tests" / "python" / "sdk_on_bus.py")],
        "typescript-sdk": [node, str(ROOT / "tests" / "node" / "sdk-on-bus.mjs")],
    }


@contextmanager
def servers(commands: dict[str, list[str]], bus: str, folder: Path, **policy: Any) -> Iterator[list[Server]]:
    with ExitStack() as stack:
        made: list[Server] = []
        for language in (LANGUAGES if policy else LANGUAGES + SDKS) * 2:
            port = stack.enter_context(reserved_port())
            log = folder / f"{language}-{len(made)}"
            made += [Server(language, commands[language], port, bus, policy, log)]
            stack.enter_context(made[-1].process)
            stack.callback(made[-1].process.kill)
        for server in made:
            wait_for(server.port, server.process, server.log)
        yield made


async def all_hear(own: list[Server]) -> None:
    uris = [f"note://{server.language}-{at}" for at, server in enumerate(own)]
    watchers = [Watcher(server.port, uris, is_modern=True) for server in own]
    for watcher in watchers:
        watcher.start()
    await asyncio.gather(*(watcher.watching() for watcher in watchers))

    async def joined() -> None:
        """Waits until each has told each: all are on the bus, and what was announced at their start is over."""
        while not all(watcher.told.get(uri) for watcher in watchers for uri in uris):
            for server, uri in zip(own, uris, strict=True):
                server.tell(uri)
            await asyncio.sleep(0.1)

    await asyncio.wait_for(joined(), 2 * PATIENCE)
    await asyncio.sleep(0.5)
    for server, uri in zip(own, uris, strict=True):
        for watcher in watchers:
            watcher.told.clear()
        server.tell(uri)
        await eventually(lambda uri=uri: all(watcher.told.get(uri) for watcher in watchers), uri)  # type: ignore[misc]
    for watcher in watchers:
        watcher.comes_back = False
        await watcher.close()


@pytest.mark.parametrize(
    "kind", [pytest.param("redis", marks=with_redis), pytest.param("nats", marks=with_nats), "unix"]
)
def test_changes_reach_the_clients_of_each_language(kind: str, commands: dict[str, list[str]], tmp_path: Path) -> None:
    with ExitStack() as stack:
        if kind == "unix":
            url = f"unix:{tmp_path / 'notes.bus'}"
        else:
            url = stack.enter_context(getattr(brokers, kind)(tmp_path / kind)).url
        own = stack.enter_context(servers(commands, url, tmp_path))
        asyncio.run(asyncio.wait_for(all_hear(own), 4 * PATIENCE))


async def accepted(own: list[Server], rounds: int) -> int:
    count = 0
    for _ in range(rounds):
        for server in own:
            _, answer = await ask(server.port, "resources/read", {"uri": "note://1"}, "note://1")
            count += "result" in answer
        await asyncio.sleep(0.02)
    return count


@with_redis
def test_all_languages_count_together(commands: dict[str, list[str]], tmp_path: Path) -> None:
    rate = {"read": {"per_second": 1, "burst": 30}, "shared": True}
    with brokers.redis(tmp_path / "redis") as bus, servers(commands, bus.url, tmp_path, rate=rate) as own:
        begun = time.monotonic()
        count = asyncio.run(asyncio.wait_for(accepted(own, 40), 4 * PATIENCE))
        # One more for each process that has not heard of the others yet.
        assert 30 <= count <= 30 + (time.monotonic() - begun) + 2 * len(own), count
