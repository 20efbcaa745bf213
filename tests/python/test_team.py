"""The team's server of `examples/team` for three people: over TLS with tokens, and behind nginx, which does the login.

What a policy hides is tested with the guard; here, that each person has their world in every entry (S-20).
"""

import asyncio
import base64
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client as OfficialClient
from mcp import MCPError, types
from mcp.client.streamable_http import streamable_http_client
from mcp_resources import Client
from ports import reserved_port
from repositories import make_repository
from test_auth import KEYS, token
from test_serve import PATIENCE, Start, serve
from test_serve_team import Run, run

__all__ = ["run", "serve"]

TEAM = Path(__file__).parents[2] / "examples" / "team"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/sbin")
SYSTEMD = shutil.which("systemd-analyze")
UNSHARE = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
# A container's root may lack the permission.
MAY_CHANGE_ROOT = (
    os.geteuid() == 0
    and shutil.which("unshare") is not None
    and subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0
)
HTPASSWD = "{name}:{{PLAIN}}{name}-secret\n"
PEOPLE = {"alice": ["engineering"], "bob": ["operations"], "carol": []}
with_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the example, with a certificate and a repository."""
    folder = tmp_path / "team"
    shutil.copytree(TEAM, folder)
    shutil.copy(KEYS / "certificate.pem", folder / "server.pem")
    shutil.copy(KEYS / "tls.pem", folder / "server.key")
    monkeypatch.setenv("TEAM_DATA", str(TEAM.parent / "data"))
    monkeypatch.setenv("TEAM_REPO", str(make_repository(tmp_path)))
    return folder


@pytest.fixture
def tokens(team: Path, run: Run, program: Path) -> dict[str, str]:
    """A token for each person, made as the example says."""
    made = {}
    script = team / "tokens.sh"
    text = script.read_text().replace("mcp-resources", str(program))
    script.write_text(text)
    shown = subprocess.run(
        [script, "tokens.yaml"], cwd=team, capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    for line in shown.stdout.splitlines():
        name, _, secret = line.partition(": ")
        made[name] = secret
    assert set(made) == set(PEOPLE)
    return made


@asynccontextmanager
async def official(url: str, headers: dict[str, str], ca: Path | None = None) -> AsyncIterator[OfficialClient]:
    """The official client, with headers of its own and the certificate of the test."""
    import httpx2 as httpx

    verify: Any = ssl.create_default_context(cafile=str(ca)) if ca else True
    async with (
        httpx.AsyncClient(headers=headers, verify=verify, timeout=PATIENCE) as http,
        OfficialClient(streamable_http_client(url, http_client=http), cache=None) as client,
    ):
        yield client


async def seen(client: OfficialClient) -> set[str]:
    """The schemes of all resources and templates, and the names of the tools."""
    uris: list[str] = []
    cursor = None
    while True:
        page = await client.list_resources(cursor=cursor)
        uris += [str(resource.uri) for resource in page.resources]
        cursor = page.next_cursor
        if cursor is None:
            break
    templates = (await client.list_resource_templates()).resource_templates
    uris += [template.uri_template for template in templates]
    tools = [tool.name for tool in (await client.list_tools()).tools]
    return set(uris) | set(tools)


async def check_world(name: str, client: OfficialClient) -> None:
    """What a person sees in lists, reads, search, completion, tools and instructions."""
    groups = PEOPLE[name]
    world = await seen(client)
    engineer, operator = "engineering" in groups, "operations" in groups
    assert any(text.startswith("docs:///handbook/") for text in world)
    assert not any(text.startswith("docs:///handbook/drafts/") for text in world)
    assert any(text.startswith("git:") for text in world) == engineer, name
    assert ("git_log" in world) == engineer, world
    assert any(text.startswith("metrics:") for text in world) == operator, name
    assert "docs_search" in world
    homes = {text for text in world if text.startswith("file:///home/") and "{" not in text}
    assert homes, world
    assert all(text.startswith(f"file:///home/{name}/") for text in homes), homes
    instructions = client.instructions or ""
    assert ("Git repositories" in instructions) == engineer, instructions
    assert ("Series of numbers" in instructions) == operator, instructions
    assert "Markdown pages" in instructions

    async def is_read(uri: str) -> bool:
        try:
            return bool((await client.read_resource(uri)).contents)
        except MCPError as error:
            return "not found" not in str(error).lower()

    for other in PEOPLE:
        for spelling in (
            "file:///home/{0}/notes.md",
            "file:///home/%{1:02x}{2}/notes.md",
            "file:///home/x/../{0}/notes.md",
        ):
            uri = spelling.format(other, ord(other[0]), other[1:])
            is_opened = await is_read(uri)
            assert is_opened == (other == name) or (other == name and ".." in uri), uri
    assert await is_read("git:///shop/log") == engineer
    assert not await is_read("docs:///handbook/drafts/loyalty.md")
    assert await is_read("docs:///handbook/incidents/guide.md") == (name != "carol")

    async def found(tool: str, arguments: dict[str, str]) -> str:
        result = await client.call_tool(tool, arguments)
        return json.dumps([block.model_dump(mode="json") for block in result.content])

    search = await found("docs_search", {"site": "handbook", "q": "loyalty"})
    assert "drafts" not in search
    listed = await found("list_resources", {})
    assert ("git:///" in listed) == engineer

    async def completed(uri: str, variable: str, context: dict[str, str] | None = None) -> list[str]:
        reference = types.ResourceTemplateReference(type="ref/resource", uri=uri)
        try:
            return (await client.complete(reference, {"name": variable, "value": ""}, context)).completion.values
        except MCPError:
            return []

    assert await completed("git:///{repo}/status", "repo") == (["shop"] if engineer else [])
    pages = await completed("docs:///{site}/{+page}", "page", {"site": "handbook"})
    assert pages
    assert not any(page.startswith("drafts/") for page in pages)


async def test_three_people_over_tls(serve: Start, team: Path, tokens: dict[str, str]) -> None:
    """S-20: each token opens its person's world, and the log names who was there."""
    with serve("--config", str(team / "team.yaml"), "--http", "0", "--status", "127.0.0.1:0") as served:
        status = served.wait_for("health and metrics at ").rpartition(" ")[2]
        url = served.url()
        assert url.startswith("https://")
        for name, secret in tokens.items():
            async with official(url, {"Authorization": f"Bearer {secret}"}, team / "server.pem") as client:
                await check_world(name, client)
        with urllib.request.urlopen(f"{status}/health", timeout=PATIENCE) as answer:
            assert answer.read() == b"ok\n"
        with urllib.request.urlopen(f"{status}/metrics", timeout=PATIENCE) as answer:
            assert b"mcp_resources_requests_total" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{status}/mcp", timeout=PATIENCE)
        assert served.end() == 0
    records = [json.loads(line) for line in (team / "audit.jsonl").read_text().splitlines()]
    assert {record["principal"] for record in records} == set(PEOPLE)
    assert {record["address"] for record in records} == {"127.0.0.1"}
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record["timestamp"]) for record in records)
    hidden = {record["uri"] for record in records if record["principal"] == "bob" and record["outcome"] == "hidden"}
    assert {"git:///shop/log", "file:///home/alice/notes.md"} <= hidden
    for secret in tokens.values():
        assert secret not in (team / "audit.jsonl").read_text()


def test_what_each_person_sees_is_printed(run: Run, team: Path, tokens: dict[str, str]) -> None:
    """S-20: `--check --as NAME --group G` knows the sources of the group, and the person's own home."""
    for name, groups in PEOPLE.items():
        words = [word for group in groups for word in ("--group", group)]
        shown = run("serve", "--config", str(team / "team.yaml"), "--check", "--as", name, *words)
        assert shown.returncode == 0, shown.stderr
        assert f"file:///home/{name}/notes.md\n" in shown.stdout
        assert ("git:///shop/log" in shown.stdout) == ("engineering" in groups)
        assert ("metrics:///" in shown.stdout) == ("operations" in groups)


async def test_a_changed_guard_counts_at_once(serve: Start, team: Path, tokens: dict[str, str]) -> None:
    """S-20: with `--watch-config` a change of the file changes what open sessions see; a wrong one is said once."""
    path = team / "team.yaml"
    before = path.read_text()
    uri = "file:///home/alice/notes.md"
    with serve("--config", str(path), "--http", "0", "--watch-config") as served:
        url = served.url()
        ca = team / "server.pem"
        headers = {name: {"Authorization": f"Bearer {secret}"} for name, secret in tokens.items()}
        async with official(url, headers["alice"], ca) as alice, official(url, headers["bob"], ca) as bob:
            assert (await alice.read_resource(uri)).contents
            with pytest.raises(MCPError):
                await bob.read_resource("git:///shop/log")
            path.write_text(
                before.replace("for: [engineering]", "for: [engineering, operations]").replace(
                    "name: team", "name: crew"
                )
            )
            served.wait_for("read again")
            assert (await bob.read_resource("git:///shop/log")).contents
            path.write_text(before.replace("for: [engineering]", "for: []"))
            served.wait_for("for is empty, so nobody would know the source")
            assert (await bob.read_resource("git:///shop/log")).contents
            path.write_text(before.replace("carol:", "alice: {deny: ['file:///home/**']}\n    carol:"))
            served.wait_for("read again")
            for client, gone in ((alice, uri), (bob, "git:///shop/log")):
                with pytest.raises(MCPError, match="not found"):
                    await client.read_resource(gone)
            assert not [line for line in served.said if "for is empty" in line]


async def test_a_subscription_ends_with_its_access(
    serve: Start, team: Path, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-20: a person who may not see a resource any more is told nothing of it, at once; others are told."""
    path = team / "team.yaml"
    text = path.read_text()
    start = text.index("tls:")
    text = text[:start] + text[text.index("providers:") :]
    path.write_text(text)
    page = team / "handbook" / "page.md"
    page.parent.mkdir()
    page.write_text("# One\n")
    monkeypatch.setenv("TEAM_DATA", str(team))
    uri = "docs:///handbook/page.md"
    with serve("--config", str(path), "--http", "0") as served:
        url = served.url()
        people = {name: {"Authorization": f"Bearer {secret}"} for name, secret in tokens.items()}
        async with Client(url, headers=people["alice"]) as alice, Client(url, headers=people["bob"]) as bob:
            hers, his = alice.watch(uri), bob.watch(uri)
            assert (await anext(hers)).contents
            assert (await anext(his)).contents
            path.write_text(text.replace("carol:", "bob: {deny: ['docs:///handbook/page.md']}\n    carol:"))
            served.process.send_signal(1)
            served.wait_for("read again")
            page.write_text("# Two\n")
            assert "Two" in str((await anext(hers)).contents)
            # It was told to her just now, and would have been told to him at the same time.
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(his), 2)
            with pytest.raises(Exception, match=r"(?i)not found"):
                await bob.read(uri)
            await hers.aclose()


@contextmanager
def nginx(team: Path, tmp_path: Path, jwt: bool = False) -> Iterator[str]:
    """Nginx with the site of the example, at a free port; its URL."""
    assert NGINX is not None
    (tmp_path / "team.htpasswd").write_text("".join(HTPASSWD.format(name=name) for name in PEOPLE))
    with reserved_port() as port:
        site = (team / "nginx.conf").read_text()
        for given, here in (
            ("/etc/ssl/mcp-resources", str(team)),
            ("/etc/nginx/team.htpasswd", str(tmp_path / "team.htpasswd")),
            ("/run/mcp-resources/team.sock", str(tmp_path / "team.sock")),
            ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
            ("server_name mcp.example.com", "server_name localhost 127.0.0.1"),
        ):
            assert given in site
            site = site.replace(given, here)
        if jwt:
            for line in ("auth_basic", "proxy_set_header X-", "proxy_set_header Authorization"):
                site = re.sub(rf"^ *{line}.*$", "", site, flags=re.MULTILINE)
        conf = tmp_path / "nginx.conf"
        # The folders of tests are those of the user who runs them.
        user = "user root; " if os.geteuid() == 0 else ""
        paths = "".join(
            f"{kind}_temp_path {tmp_path}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        conf.write_text(
            f"{user}pid {tmp_path}/nginx.pid; error_log {tmp_path}/error.log; worker_processes 1; daemon off;\n"
            f"events {{}}\nhttp {{ access_log off; {paths}\n{site}\n}}\n"
        )
        with subprocess.Popen([NGINX, "-c", str(conf), "-p", str(tmp_path)], stderr=subprocess.PIPE) as process:
            try:
                url = f"https://127.0.0.1:{port}"
                wait_for(url, team / "server.pem", process)
                yield url
            finally:
                process.terminate()


def wait_for(url: str, ca: Path, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + PATIENCE
    context = ssl.create_default_context(cafile=str(ca))
    port = int(url.rpartition(":")[2])
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), PATIENCE) as plain:
            context.wrap_socket(plain, server_hostname="127.0.0.1").close()
            return
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.05)


@with_nginx
async def test_nginx_does_the_login(serve: Start, team: Path, tmp_path: Path) -> None:
    """S-20: nginx says who a client is, and where; what a client claims itself is not believed."""
    place = tmp_path / "team.sock"
    with serve("--config", str(team / "behind-nginx.yaml"), "--http", f"unix:{place}") as served:
        served.wait_for("serving at unix:")
        place.chmod(0o777)
        with nginx(team, tmp_path) as url:
            for name in PEOPLE:
                login = base64.b64encode(f"{name}:{name}-secret".encode()).decode()
                forged = {"X-User": "alice", "X-Groups": "engineering,operations", "X-Forwarded-For": "192.0.2.9"}
                headers = {"Authorization": f"Basic {login}", **forged}
                async with official(f"{url}/team/mcp", headers, team / "server.pem") as client:
                    world = await seen(client)
                    assert any(text.startswith("git:") for text in world) == ("engineering" in PEOPLE[name]), name
                    assert (await client.read_resource(f"file:///home/{name}/notes.md")).contents
        assert served.end() == 0
    records = [json.loads(line) for line in (team / "audit.jsonl").read_text().splitlines()]
    assert {record["principal"] for record in records} == set(PEOPLE)
    assert {record["address"] for record in records} == {"127.0.0.1"}


@with_nginx
async def test_discovery_through_nginx(serve: Start, team: Path, tmp_path: Path) -> None:
    """S-20, R-199: below a path of nginx, a client learns from the refusal which server gives tokens."""
    shutil.copy(KEYS / "jwks.json", team / "jwks.json")
    path = team / "behind-nginx.yaml"
    with nginx(team, tmp_path, jwt=True) as url:
        resource = f"{url}/team/mcp"
        text = path.read_text()
        identity = next(line for line in text.splitlines() if "identity:" in line)
        jwt = '  jwt: {issuer: "https://id.example.com", audience: "http://localhost/mcp", keys: jwks.json}'
        jwt += f"\n  resource: {resource}"
        path.write_text(text.replace(identity, jwt))
        place = tmp_path / "team.sock"
        with serve("--config", str(path), "--http", f"unix:{place}") as served:
            served.wait_for("serving at unix:")
            place.chmod(0o777)
            context = ssl.create_default_context(cafile=str(team / "server.pem"))
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(
                    urllib.request.Request(resource, method="POST", data=b"{}"), context=context, timeout=PATIENCE
                )
            challenge = refused.value.headers["WWW-Authenticate"]
            found = re.search(r'resource_metadata="([^"]+)"', challenge)
            assert refused.value.code == 401
            assert found is not None, challenge
            assert found[1] == f"{url}/.well-known/oauth-protected-resource/team/mcp"
            with urllib.request.urlopen(found[1], context=context, timeout=PATIENCE) as answer:
                metadata = json.loads(answer.read())
            assert metadata["resource"] == resource
            assert metadata["authorization_servers"] == ["https://id.example.com"]
            bearer = {"Authorization": f"Bearer {token(groups=['engineering'])}"}
            async with official(resource, bearer, team / "server.pem") as client:
                assert any(text.startswith("git:") for text in await seen(client))


@pytest.mark.skipif(SYSTEMD is None, reason="systemd is not installed")
def test_the_units_are_right(team: Path, program: Path) -> None:
    """S-20: systemd finds nothing wrong with the units."""
    for unit in ("mcp-resources.service", "mcp-resources.socket"):
        path = team / unit
        path.write_text(path.read_text().replace("/usr/local/bin/mcp-resources", str(program)))
    units = [str(team / unit) for unit in ("mcp-resources.service", "mcp-resources.socket")]
    found = subprocess.run(
        ["systemd-analyze", "verify", *units], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    own = [line for line in found.stderr.splitlines() if "mcp-resources" in line]
    assert (found.returncode, own) == (0, []), found.stderr


def served_at(process: "subprocess.Popen[str]") -> str:
    """The URL that a starting server prints."""
    assert process.stderr is not None
    for line in process.stderr:
        if "serving at " in line:
            return line.split()[-1]
    raise AssertionError("it ended")


def children(process: "subprocess.Popen[str]") -> list[str]:
    """The ids of the processes that its first thread has started."""
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


@dataclass(frozen=True)
class Image:
    """What the example's Dockerfile says of its last stage."""

    user: str
    environment: dict[str, str]
    command: list[str]
    copied: list[tuple[str, str]]

    @classmethod
    def read(cls) -> "Image":
        text = (TEAM / "Dockerfile").read_text().rpartition("\nFROM ")[2].replace("\\\n", "")
        (user,) = re.findall(r"^USER (\d+)$", text, re.MULTILINE)
        (added,) = re.findall(r"^RUN useradd .*--uid (\d+) .*--shell /usr/sbin/nologin", text, re.MULTILINE)
        assert user == added
        variables = " ".join(re.findall(r"^ENV (.*)$", text, re.MULTILINE)).split()
        (entry,) = re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)
        copied = re.findall(r"^COPY (?:--from=build )?(\S+) (\S+)$", text, re.MULTILINE)
        return cls(user, dict(variable.split("=", 1) for variable in variables), json.loads(entry), copied)

    def build(self, root: Path, program: Path) -> None:
        """Makes the root file system: what is copied, and the libraries of the command, which Debian has."""
        linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        sources = [(library, library) for library in re.findall(r"(/\S+) \(0x", linked)]
        for source, target in [*self.copied, *sources]:
            found = program if source.startswith("/build/") else TEAM.parents[1] / source
            at = root / target.lstrip("/")
            at.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(found, at)
        for folder in ("proc", "tmp", *self.environment.values()):
            (root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)


@pytest.mark.skipif(not MAY_CHANGE_ROOT, reason="only root may start a process with another root directory")
async def test_the_image_serves_the_team(tmp_path: Path, team: Path, program: Path, tokens: dict[str, str]) -> None:
    """S-20: the root file system of the image, without a shell, serves the team as its user."""
    image, root = Image.read(), tmp_path / "image"
    image.build(root, program)

    def inside(variable: str) -> Path:
        return root / image.environment[variable].lstrip("/")

    for name in ("server.pem", "server.key"):
        shutil.copy(team / name, inside("CREDENTIALS_DIRECTORY"))
    shutil.copy(team / "tokens.yaml", inside("STATE_DIRECTORY"))
    shutil.copytree(os.environ["TEAM_DATA"], inside("TEAM_DATA"), dirs_exist_ok=True)
    shutil.copytree(team / "home", inside("TEAM_HOME"), dirs_exist_ok=True)
    shutil.copytree(os.environ["TEAM_REPO"], inside("TEAM_REPO"), dirs_exist_ok=True)
    subprocess.run(["chown", "-R", image.user, root], check=True)
    alone = [*UNSHARE, f"--mount-proc={root / 'proc'}"]
    changed = ["chroot", f"--userspec={image.user}:{image.user}", root, *image.command, "--http", "0.0.0.0:0"]
    environment = {"PATH": "/usr/local/bin:/usr/bin:/usr/sbin:/bin", **image.environment}
    with subprocess.Popen([*alone, *changed], env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            url = served_at(process).replace("0.0.0.0", "127.0.0.1")
            (child,) = children(process)
            owners = re.search(r"^Uid:\s+(.*)$", Path(f"/proc/{child}/status").read_text(), re.MULTILINE)
            assert owners is not None
            assert set(owners[1].split()) == {image.user}
            for name, secret in tokens.items():
                async with official(url, {"Authorization": f"Bearer {secret}"}, team / "server.pem") as client:
                    await check_world(name, client)
        finally:
            # Its signal at the end of `unshare` was cleared when it became another user.
            for child in children(process):
                os.kill(int(child), signal.SIGKILL)
            process.kill()


async def test_systemd_passes_the_socket(program: Path, run: Run, team: Path, tokens: dict[str, str]) -> None:
    """S-20: `--http systemd` takes the listening socket of the service manager."""
    with reserved_port() as port:
        started = (
            "import os, socket, sys\n"
            f"s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
            f"s.bind(('127.0.0.1', {port})); s.listen()\n"
            "os.dup2(s.fileno(), 3); os.set_inheritable(3, True)\n"
            "os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()))\n"
            "os.execv(sys.argv[1], sys.argv[1:])"
        )
        words = [
            sys.executable,
            "-c",
            started,
            str(program),
            "serve",
            "--config",
            str(team / "team.yaml"),
            "--http",
            "systemd",
        ]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
            try:
                url = served_at(process)
                assert url.startswith(f"https://127.0.0.1:{port}/")
                bearer = {"Authorization": f"Bearer {tokens['alice']}"}
                async with official(url, bearer, team / "server.pem") as client:
                    assert (await client.read_resource("file:///home/alice/notes.md")).contents
            finally:
                process.kill()
    refused = run("serve", "--config", str(team / "team.yaml"), "--http", "systemd")
    assert refused.returncode == 2
    assert "no socket was passed" in refused.stderr
