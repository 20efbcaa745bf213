"""Several processes of a server on a bus: Redis, NATS and a Unix socket, behind haproxy and nginx.

The short form is a part of `make test`; `MCP_RESOURCES_BUS=long`, as in `make soak`, has 300 listeners, 100 sessions
and 1,000 changes.
"""

import asyncio
import json
import os
import random
import re
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import brokers
import pytest
from brokers import NATS, NO_NATS, NO_REDIS, PASSWORD, PATHS, PATIENCE, REDIS
from listeners import Watcher, ask, eventually, modern, modern_headers, post
from ports import HOST, reserved_port
from postgres import make_certificates
from replicas import NAMES, Replica, connected, replicas, wait_for
from vectors import ROOT

HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path=PATHS)
NGINX = shutil.which("nginx") or shutil.which("nginx", path=PATHS)
GUIDE = (ROOT / "docs" / "replicas.md").read_text("utf-8")
IS_LONG = os.environ.get("MCP_RESOURCES_BUS") == "long"
LISTENERS, SESSIONS, CHANGES = (300, 100, 1_000) if IS_LONG else (30, 10, 100)
with_redis = pytest.mark.skipif(REDIS is None, reason=NO_REDIS)
with_nats = pytest.mark.skipif(NATS is None, reason=NO_NATS)
with_haproxy = pytest.mark.skipif(HAPROXY is None, reason="haproxy is not installed")
with_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
OPENSSL = shutil.which("openssl")
with_openssl = pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed")
KINDS = [
    pytest.param("redis", marks=with_redis),
    pytest.param("nats", marks=with_nats),
]


@contextmanager
def broker(kind: str, folder: Path, *words: str) -> Iterator[Any]:
    with getattr(brokers, kind)(folder / kind, *words) as started:
        yield started


@contextmanager
def balancer(kind: str, own: list[Replica], folder: Path) -> Iterator[int]:
    """A balancer, haproxy or nginx, with the file of the guide, at a port of its own."""
    file = {"haproxy": "haproxy.cfg", "nginx": "nginx.conf"}[kind]
    found = re.search(rf"```text {re.escape(file)}\n(.*?)```", GUIDE, re.DOTALL)
    assert found
    text = found[1]
    for replica, port in zip(own, (8001, 8002, 8003), strict=True):
        assert f"127.0.0.1:{port}" in text
        text = text.replace(f"127.0.0.1:{port}", f"{HOST}:{replica.port}")
    with reserved_port() as port:
        path = folder / file
        if kind == "haproxy":
            path.write_text(text.replace("bind :8000", f"bind {HOST}:{port}"))
            command = [str(HAPROXY), "-db", "-f", str(path)]
        else:
            site = text.replace("listen 8000", f"listen {HOST}:{port}")
            user = "user root; " if os.geteuid() == 0 else ""
            temp = "".join(
                f"{of}_temp_path {folder}/{of};" for of in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
            )
            head = f"{user}pid {folder}/nginx.pid; error_log {folder}/nginx.log; daemon off;\nevents {{}}"
            path.write_text(f"{head}\nhttp {{ access_log off; {temp}\n{site}\n}}\n")
            command = [str(NGINX), "-c", str(path), "-p", str(folder)]
        log = folder / f"{kind}.err"
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            wait_for(port, process, log)
            yield port
        finally:
            process.terminate()
            process.wait(PATIENCE)


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 20 * PATIENCE))


async def tell(replica: Replica, line: str) -> str:
    return await asyncio.to_thread(replica.tell, line)


async def ping(port: int, headers: list[tuple[str, str]]) -> int:
    """The status of a request in a session."""
    answer = await post(port, {"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers)
    answer.close()
    return answer.status


def told(watcher: Watcher, uri: str) -> bool:
    return uri in watcher.told


async def close_all(watchers: list[Watcher]) -> None:
    for watcher in watchers:
        watcher.comes_back = False
    await asyncio.gather(*(watcher.close() for watcher in watchers))


async def started(watchers: list[Watcher]) -> None:
    for watcher in watchers:
        watcher.start()
    await asyncio.gather(*(watcher.watching() for watcher in watchers))


@with_haproxy
@pytest.mark.parametrize("kind", KINDS)
def test_every_listener_hears_of_each_uri_after_its_last_change(kind: str, tmp_path: Path) -> None:
    """Listens and sessions, spread by haproxy over three processes; changes in any; nobody hears of hidden ones."""
    uris = [f"note://{number}" for number in range(20)]

    async def work() -> None:
        chosen = random.Random(1)
        watchers = [
            Watcher(port, [*chosen.sample(uris, 5), "note://hidden"], is_modern=at < LISTENERS)
            for at in range(LISTENERS + SESSIONS)
        ]
        await started(watchers)
        try:
            instances = {watcher.session.partition(".")[0] for watcher in watchers if not watcher.is_modern}
            assert instances == set(NAMES), "haproxy spreads sessions"
            assert not any(watcher.refused for watcher in watchers)
            # Each client is told until all of its URIs have changed for the last time.
            for _ in range(CHANGES):
                await tell(chosen.choice(own), f"updated {chosen.choice([*uris, 'note://hidden'])}")
            await asyncio.sleep(0.5)
            for watcher in watchers:
                watcher.told.clear()
            for uri in uris:
                await tell(chosen.choice(own), f"updated {uri}")
            await tell(own[0], "updated note://hidden")

            def told_all() -> bool:
                return all(set(watcher.uris) - {"note://hidden"} <= set(watcher.told) for watcher in watchers)

            await eventually(told_all, "somebody has missed a change")
            assert not any("note://hidden" in watcher.told for watcher in watchers)
            assert not any(watcher.refused for watcher in watchers)
        finally:
            await close_all(watchers)

    with broker(kind, tmp_path) as bus, replicas(bus.url, tmp_path) as own, balancer("haproxy", own, tmp_path) as port:
        run(work)
        assert all(replica.metric("lost_total") == 0 for replica in own)
        assert all(replica.metric("received_total") > 0 for replica in own)


@with_haproxy
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_process_ends_its_own_sessions_alone(kind: str, tmp_path: Path) -> None:
    """`kill -9`: its listeners are served elsewhere, its sessions get 404 and begin anew, the others miss nothing."""

    async def work() -> None:
        watchers = [Watcher(port, ["note://1", "note://2"], is_modern=at % 2 == 0) for at in range(12)]
        await started(watchers)
        try:
            sessions = {watcher: watcher.session for watcher in watchers if not watcher.is_modern}
            lost = [watcher for watcher, session in sessions.items() if session.startswith("a.")]
            kept = [watcher for watcher, session in sessions.items() if not session.startswith("a.")]
            assert lost
            assert kept
            await asyncio.to_thread(own[0].kill)
            first = lost[0]
            # A request in the old session, before the client knows: as the protocol says.
            headers = [("Mcp-Session-Id", sessions[first]), ("MCP-Protocol-Version", "2025-11-25")]
            deadline = time.monotonic() + PATIENCE
            while (status := await ping(port, headers)) == 503 and time.monotonic() < deadline:
                await asyncio.sleep(0.05)
            assert status == 404
            await asyncio.gather(*(watcher.watching(2) for watcher in lost))
            assert all(not watcher.session.startswith("a.") for watcher in lost)
            await eventually(lambda: all(w.begun >= 1 for w in watchers if w.is_modern), "a listener is left")
            await asyncio.sleep(0.5)
            for watcher in watchers:
                watcher.told.clear()
            await tell(own[1], "updated note://1")
            await tell(own[2], "updated note://2")
            await eventually(lambda: all({"note://1", "note://2"} <= set(w.told) for w in watchers), "missed")
            assert all(watcher.begun == 1 and watcher.session == sessions[watcher] for watcher in kept)
        finally:
            await close_all(watchers)

    with broker(kind, tmp_path) as bus, replicas(bus.url, tmp_path) as own, balancer("haproxy", own, tmp_path) as port:
        run(work)


@with_nginx
def test_nginx_finds_the_process_of_a_session(tmp_path: Path) -> None:
    """The file of the guide: sessions stay where they began, and one whose process is gone gets 404."""

    async def work() -> None:
        watchers = [Watcher(port, ["note://1"], is_modern=False) for _ in range(9)]
        await started(watchers)
        try:
            by_name = {watcher.session.partition(".")[0]: watcher for watcher in watchers}
            assert set(by_name) == set(NAMES)
            by_name["a"].comes_back = False
            await asyncio.to_thread(own[0].kill)
            headers = [("Mcp-Session-Id", by_name["a"].session), ("MCP-Protocol-Version", "2025-11-25")]
            assert await ping(port, headers) == 404
            await tell(own[1], "updated note://1")
            await tell(own[2], "updated note://1")
            await eventually(lambda: all(by_name[name].told.get("note://1") for name in "bc"), "missed")
        finally:
            await close_all(watchers)

    with replicas("none", tmp_path) as own, balancer("nginx", own, tmp_path) as port:
        run(work)


def trim(bus: Any) -> None:
    """Removes every message from the log of a broker that is down: nobody can read one before."""
    stored = [bus.folder / "appendonlydir", bus.folder / "store"]
    assert any(folder.exists() for folder in stored)
    for folder in stored:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("how", ["killed", "cut", "trimmed"])
@pytest.mark.parametrize("kind", KINDS)
def test_after_the_bus_is_back_every_watched_uri_was_told(kind: str, how: str, tmp_path: Path) -> None:
    """`kill -9` and a restart, 5 s without it, a log that was trimmed meanwhile: every change is told at least once."""
    uris = [f"note://{number}" for number in range(6)]

    async def work() -> None:
        watchers = [Watcher(replica.port, uris, is_modern=at % 2 == 0) for at, replica in enumerate(own)]
        await started(watchers)
        try:
            # Something is on the bus already.
            await tell(own[0], "updated note://0")
            await eventually(lambda: all(watcher.told.get("note://0") for watcher in watchers), "told before")
            await asyncio.sleep(0.3)
            for watcher in watchers:
                watcher.told.clear()
            await asyncio.to_thread(bus.kill)
            for replica in own:
                await asyncio.to_thread(connected, replica, False)
            for at, uri in enumerate(uris):
                await tell(own[at % 3], f"updated {uri}")
            await asyncio.sleep(5 if how == "cut" else 0.2)
            if how == "trimmed":
                trim(bus)
            await asyncio.to_thread(bus.start)
            for replica in own:
                await asyncio.to_thread(connected, replica)
            await eventually(lambda: all(set(uris) <= set(watcher.told) for watcher in watchers), "missed")
        finally:
            await close_all(watchers)

    with broker(kind, tmp_path) as bus, replicas(bus.url, tmp_path) as own:
        run(work)
        for replica in own:
            assert len(replica.lines("cannot be used")) == 1, replica.lines("bus")
            assert len(replica.lines("is back")) == 1, replica.lines("bus")
            assert (replica.metric("lost_total") > 0) is (how == "trimmed")


@pytest.mark.parametrize("kind", KINDS)
def test_a_revocation_ends_the_listens_of_all_within_a_second(kind: str, tmp_path: Path) -> None:
    """Those of the revoked person end in each process, and are refused; those of another one go on."""

    async def work() -> None:
        watchers = [Watcher(r.port, ["note://1"], is_modern=True, token=name) for r in own for name in ("ada", "eve")]
        await started(watchers)
        try:
            start = time.monotonic()
            await tell(own[0], "revoke eve")
            eves = [watcher for watcher in watchers if watcher.token == "eve"]
            await eventually(lambda: all(watcher.ended == 1 for watcher in eves), "still listening")
            assert time.monotonic() - start < 1
            await eventually(lambda: all(401 in watcher.refused for watcher in eves), "not refused")
            assert all(watcher.ended == 0 and watcher.begun == 1 for watcher in watchers if watcher not in eves)
        finally:
            await close_all(watchers)

    with broker(kind, tmp_path) as bus, replicas(bus.url, tmp_path, "tokens") as own:
        run(work)


@with_redis
def test_cursors_and_states_open_in_each_process(tmp_path: Path) -> None:
    """A page of one, the next page of another; a question of one, the answer to another."""

    async def work() -> None:
        first = own[0].port
        for other in (replica.port for replica in own):
            _, page = await ask(first, "resources/list", {})
            cursor = page["result"]["nextCursor"]
            status, page = await ask(other, "resources/list", {"cursor": cursor})
            assert status == 200
            assert page["result"]["resources"]
            _, asked = await ask(first, "resources/read", {"uri": "ask://name"}, "ask://name")
            answers = {"name": {"action": "accept", "content": {"name": "Ada"}}}
            params = {"uri": "ask://name", "inputResponses": answers, "requestState": asked["result"]["requestState"]}
            _, answer = await ask(other, "resources/read", params, "ask://name")
            name = next(replica.name for replica in own if replica.port == other)
            assert answer["result"]["contents"][0]["text"] == f"a asked, {name} answers"

    with broker("redis", tmp_path) as bus, replicas(bus.url, tmp_path) as own:
        run(work)


def refuses(kind: str, folder: Path) -> Iterator[tuple[str, str]]:
    """A bus that cannot be used, and what the log says about it."""
    if kind == "nobody":
        with reserved_port() as port:
            yield f"redis://{HOST}:{port}/0", "refused"
    elif kind == "redis password":
        with brokers.redis(folder / "redis", "--requirepass", PASSWORD) as bus:
            yield f"redis://:wrong-canary@{HOST}:{bus.port}", "AuthenticationFailed"
    elif kind == "nats password":
        with brokers.nats(folder / "nats", "--user", "me", "--pass", PASSWORD) as bus:
            yield f"nats://me:wrong-canary@{HOST}:{bus.port}", "authorization"
    elif kind == "no streams":
        # As of a Redis before 5.0: the commands do not exist.
        words = [w for name in ("XADD", "XREAD", "XRANGE", "XREVRANGE") for w in ("--rename-command", name, "")]
        with brokers.redis(folder / "redis", *words) as bus:
            yield bus.url, "unknown command"
    elif kind == "no JetStream":
        with brokers.nats(folder / "nats", jetstream=False) as bus:
            yield bus.url, "it says"
    else:
        with brokers.redis(folder / "redis") as bus:
            bus.pause(True)
            yield bus.url, "timed out"


@with_redis
@with_nats
@pytest.mark.parametrize(
    "kind", ["nobody", "redis password", "nats password", "no streams", "no JetStream", "never answers"]
)
def test_without_its_bus_a_server_serves_on(kind: str, tmp_path: Path) -> None:
    """It answers, its own listeners hear of its changes, and the log has one line, without a credential."""

    async def work() -> None:
        status, answer = await ask(own.port, "resources/read", {"uri": "note://1"}, "note://1")
        assert (status, answer["result"]["contents"][0]["text"]) == (200, "1 of a")
        watcher = Watcher(own.port, ["note://1"], is_modern=True)
        await started([watcher])
        for _ in range(50):
            await tell(own, "updated note://1")
        await eventually(lambda: bool(watcher.told.get("note://1")), "not told")
        await eventually(lambda: bool(own.lines("cannot be used")), "nothing in the log", 30)
        await close_all([watcher])

    with contextmanager(refuses)(kind, tmp_path) as (url, said), reserved_port() as port:
        own = Replica("a", port, url, tmp_path)
        try:
            run(work)
            time.sleep(1)
            lines = own.lines("cannot be used")
            assert len(lines) == 1, lines
            assert said in lines[0]
            assert "canary" not in own.log.read_text("utf-8")
            assert own.metric("connected") == 0
        finally:
            own.kill()


@with_redis
def test_entries_of_strangers_are_ignored(tmp_path: Path) -> None:
    """Foreign entries, and a message that is appended again, change nothing; neither stops what comes after them."""

    async def work() -> None:
        watcher = Watcher(own[1].port, ["note://1", "note://2"], is_modern=True)
        await started([watcher])
        await tell(own[0], "updated note://1")
        await eventually(lambda: bool(watcher.told.get("note://1")), "not told")
        key = "mcp-resources:notes"
        message = bus.run("XREVRANGE", key, "+", "-", "COUNT", "1").splitlines()[-1]
        for field, value in [("message", message), ("message", "v1.AAAA"), ("other", "x"), ("message", "x" * 200_000)]:
            bus.run("XADD", key, "*", field, value)
        await asyncio.sleep(0.2)
        before = dict(watcher.told)
        await tell(own[0], "updated note://2")
        await eventually(lambda: bool(watcher.told.get("note://2")), "not told")
        assert watcher.told == before | {"note://2": watcher.told["note://2"]}
        assert await asyncio.to_thread(own[1].metric, "ignored_total") == 4
        await close_all([watcher])

    with broker("redis", tmp_path) as bus, replicas(bus.url, tmp_path, names="ab") as own:
        run(work)


@with_redis
def test_a_password_may_be_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUS_PASSWORD", PASSWORD)
    with brokers.redis(tmp_path / "redis", "--requirepass", PASSWORD) as bus:
        url = f"redis://:${{BUS_PASSWORD}}@{HOST}:{bus.port}/0"
        with replicas(url, tmp_path, names="ab") as own:
            assert all(PASSWORD not in replica.log.read_text("utf-8") for replica in own)


@with_redis
@with_openssl
def test_redis_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rediss`: with an authority that the system trusts the processes connect, with another one they do not."""
    certificates = tmp_path / "certificates"
    certificates.mkdir()
    make_certificates(certificates)
    with reserved_port() as port:
        words = ["--tls-port", f"{port}", "--tls-auth-clients", "no"]
        for option, name in [("cert-file", "server.crt"), ("key-file", "server.key"), ("ca-cert-file", "ca.crt")]:
            words += [f"--tls-{option}", str(certificates / name)]
        with brokers.redis(tmp_path / "redis", *words), reserved_port() as own:
            url = f"rediss://localhost:{port}/0"
            monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "ca.crt"))
            with replicas(url, tmp_path, names="ab") as both:
                assert all(replica.metric("connected") == 1 for replica in both)
            monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "other.crt"))
            stranger = Replica("c", own, url, tmp_path)
            try:
                connected(stranger, False)
                time.sleep(1)
                assert stranger.metric("connected") == 0
            finally:
                stranger.kill()


def test_a_unix_socket_outlives_the_process_that_carries_it(tmp_path: Path) -> None:
    """Three processes of one machine; the one that carries the messages is killed, and another one goes on."""

    async def work() -> None:
        watchers = {r.name: Watcher(r.port, ["note://1"], is_modern=True) for r in own}
        await started([*watchers.values()])
        try:
            await tell(own[2], "updated note://1")
            await eventually(lambda: all(w.told.get("note://1") for w in watchers.values()), "not told")
            watchers["a"].comes_back = False
            await asyncio.to_thread(own[0].kill)
            for replica in own[1:]:
                await asyncio.to_thread(connected, replica)
            await asyncio.sleep(0.3)
            for watcher in watchers.values():
                watcher.told.clear()
            for teller, hearer in (("b", "c"), ("c", "b")):
                await tell(next(r for r in own if r.name == teller), "updated note://1")
                other = watchers[hearer]
                await eventually(partial(told, other, "note://1"), "not told")
        finally:
            await close_all([*watchers.values()])

    with replicas(f"unix:{tmp_path / 'notes.bus'}", tmp_path) as own:
        run(work)


def test_a_bus_needs_keys_and_a_url_of_its_form() -> None:
    from mcp_resources import RegistrationError, ResourceServer

    wrong: list[tuple[dict[str, Any], str]] = [
        ({"bus": "redis://localhost"}, "keys"),
        (
            {"bus": "kafka://me:hunter2@localhost", "keys": [b"0f1e2d3c4b5a69788796a5b4c3d2e1f0"]},
            "redis://HOST:PORT/DB",
        ),
        ({"bus": "redis://:${MCP_NONE_OF_THESE}@h", "keys": [b"0f1e2d3c4b5a69788796a5b4c3d2e1f0"]}, "is not set"),
    ]
    for options, said in wrong:
        with pytest.raises(RegistrationError) as error:
            ResourceServer("notes", **options)
        assert said in str(error.value)
        assert "hunter2" not in str(error.value)
    with pytest.raises(TypeError, match="bus is of type `int`"):
        ResourceServer("notes", bus=7, keys=[b"0f1e2d3c4b5a69788796a5b4c3d2e1f0"])  # type: ignore[arg-type]


@with_redis
def test_serve_joins_the_bus(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`serve --bus` with keys from the environment, and `notify` at one process: the listener of the other is told."""
    monkeypatch.setenv("MCP_RESOURCES_KEYS", "0f1e2d3c4b5a69788796a5b4c3d2e1f0")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A")
    # Reports of sources stay in their process, so nothing is edited here.
    uri = "file:///docs/a.md"

    async def work(ports: list[int]) -> None:
        watcher = Watcher(ports[1], [uri], is_modern=True)
        await started([watcher])
        await asyncio.sleep(0.3)
        watcher.told.clear()
        server = f"http://{HOST}:{ports[0]}/mcp"
        for words in ([uri], ["--list-changed"]):
            done = await asyncio.to_thread(
                subprocess.run, [str(program), "notify", *words, "--server", server], capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
        await eventually(lambda: {uri, "lists"} <= set(watcher.told), f"told of {watcher.told}")
        await close_all([watcher])
        method = "io.github.mcp-resources/notify"
        for unknown in ("file:///docs/none.md", "nothing://x", uri):
            answer = await post(ports[0], modern(method, {"uri": unknown}), modern_headers(method))
            found = [message async for message in answer.messages()]
            answer.close()
            assert found[0]["result"].get("resultType", "complete") == "complete"
            assert found[0]["result"].keys() <= {"resultType", "_meta"}

    with broker("redis", tmp_path) as bus, ExitStack() as stack:
        ports = []
        for at in range(2):
            port = stack.enter_context(reserved_port())
            words = [str(program), "serve", str(tmp_path / "docs"), "--http", f"{port}", "--bus", f"{bus.url}/0"]
            log = tmp_path / f"serve-{at}"
            with log.open("wb") as output:
                process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=output)
            stack.callback(process.wait, PATIENCE)
            stack.callback(process.kill)
            wait_for(port, process, log)
            ports.append(port)
        asyncio.run(asyncio.wait_for(work(ports), 4 * PATIENCE))
    monkeypatch.delenv("MCP_RESOURCES_KEYS")
    words = [str(program), "serve", str(tmp_path / "docs"), "--http", "0", "--bus", "redis://me:hunter2@localhost/0"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert "MCP_RESOURCES_KEYS" in done.stderr
    assert "hunter2" not in done.stderr


def test_notify_is_for_tokens_that_may(program: Path, tmp_path: Path) -> None:
    """With `auth` the scope `notify`; with `--public` nobody."""
    (tmp_path / "docs").mkdir()
    made = {}
    for name, scope in (("ci", ["--scope", "notify"]), ("ada", [])):
        words = [str(program), "token", "new", name, *scope, "--file", str(tmp_path / "tokens.yaml")]
        made[name] = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    (tmp_path / "serve.json").write_text(
        json.dumps({"providers": [{"files": {"roots": "docs"}}], "auth": {"tokens": "tokens.yaml"}})
    )

    def notify(port: int, *words: str) -> "subprocess.CompletedProcess[str]":
        command = [str(program), "notify", "file:///docs/a", "--server", f"http://{HOST}:{port}/mcp", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)

    for extra, words, status in [
        (["--config", str(tmp_path / "serve.json")], ["--header", f"Authorization: Bearer {made['ci']}"], 0),
        (["--config", str(tmp_path / "serve.json")], ["--header", f"Authorization: Bearer {made['ada']}"], 1),
        ([str(tmp_path / "docs"), "--public"], [], 1),
    ]:
        with reserved_port() as port:
            log = tmp_path / "log"
            with log.open("wb") as output:
                command = [str(program), "serve", *extra, "--http", f"{port}"]
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=output)
            try:
                wait_for(port, process, log)
                done = notify(port, *words)
                assert done.returncode == status, done.stderr
                assert status == 0 or "scope notify" in done.stderr
            finally:
                process.kill()
                process.wait(PATIENCE)


FORK = """
    import asyncio, os, re, sys, time
    from mcp_resources import ResourceServer
    from mcp_resources.testing import Client

    server = ResourceServer("notes", keys=[b"0f1e2d3c4b5a69788796a5b4c3d2e1f0"], bus=sys.argv[1], metrics=True)

    @server.resource("note://{id}")
    def note(id: str) -> str:
        return id

    def joined() -> None:
        while not re.search("^mcp_resources_bus_connected 1$", server.metrics_text(), re.MULTILINE):
            time.sleep(0.01)

    async def main() -> None:
        async with Client(server) as client, client.listen(["note://1"]) as updates:
            print(await updates.next())

    joined()
    if os.fork() == 0:
        joined()
        for _ in range(100):
            server.notify_updated("note://1")
            time.sleep(0.05)
        os._exit(0)
    asyncio.run(main())
"""


def test_a_forked_process_joins_the_bus_by_itself(tmp_path: Path) -> None:
    """As with gunicorn and `preload`: the server is made first. A change of the child reaches the parent's client."""
    words = [sys.executable, "-c", textwrap.dedent(FORK), f"unix:{tmp_path / 'notes.bus'}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert "note://1" in done.stdout, done.stderr
