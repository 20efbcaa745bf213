"""Several systems at once: `mcp-resources serve --config` with files of `examples/`, asked by the official client.

`tests/node/systems.test.mjs` asks the same with the official TypeScript client.
"""

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated
from mcp_resources import providers
from test_examples import DATA, LEGACY, MODERN, Updates, call, complete, read, refused, upstream

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 30.0
GIT = ["git", "-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A copy of the examples, in a repository with one commit."""
    folder = tmp_path / "project" / "examples"
    shutil.copytree(ROOT / "examples", folder, ignore=shutil.ignore_patterns("rust", "*.db*"))
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, "The first")
    return folder


def git(folder: Path, *arguments: str) -> None:
    subprocess.run([*GIT, *arguments], cwd=folder.parent, check=True, capture_output=True)


def commit(folder: Path, subject: str) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", subject)


def served(program: Path, config: Path) -> StdioServerParameters:
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TZ": "Asia/Tokyo", "SECRET": "hunter2-canary"}
    return StdioServerParameters(command=str(program), args=["serve", "--config", str(config)], env=environment)


async def listed(client: Client) -> dict[str, types.Resource]:
    """All pages of the list."""
    found: dict[str, types.Resource] = {}
    cursor = None
    while True:
        page = await client.list_resources(cursor=cursor)
        found |= {resource.uri: resource for resource in page.resources}
        cursor = page.next_cursor
        if cursor is None:
            return found


def priority(item: types.Resource) -> float:
    """A page without a priority is in the middle."""
    given = item.annotations.priority if item.annotations else None
    return 0.5 if given is None else given


async def updated(client: Client, mode: str, updates: Updates, uris: set[str], change: Callable[[], None]) -> None:
    """Subscribes to `uris`, changes them all, and waits until each was notified."""
    missing = set(uris)
    if mode == MODERN:
        async with client.listen(resource_subscriptions=sorted(uris)) as subscription:
            change()
            while missing:
                event = await anext(subscription)
                missing.discard(event.uri if isinstance(event, ResourceUpdated) else "")
        return
    for uri in sorted(uris):
        await client.subscribe_resource(uri)
    change()
    while missing:
        missing.discard(await updates.next())


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
def test_seven_systems_at_once(program: Path, examples: Path, mode: str) -> None:
    """S-01 to S-07: every system is listed, read, searched in Japanese, and notifies an update."""
    updates = Updates()
    # The program that computes, beside the one that serves.
    results = providers.results(scheme="wallbounce", file=examples / "wallbounce.db")
    results.put("analysis-1", '{"verdict": "first"}', mime_type="application/json")

    def change() -> None:
        (examples / "data" / "project" / "src" / "main.ts").write_text("export const answer = 43;\n", "utf-8")
        commit(examples, "The second")
        page = examples / "data" / "handbook" / "ja" / "サーバー再起動.md"
        page.write_text(page.read_text("utf-8") + "\n## 追記\n\n再起動の後に確認します。\n", "utf-8")
        guide = examples / "data" / "docs" / "guide.md"
        guide.write_text(guide.read_text("utf-8") + "\nOne more line.\n", "utf-8")
        (examples / "data" / "app.json").write_text(json.dumps({"server": {"host": "::1", "port": 9090}}), "utf-8")
        results.put("analysis-1", '{"verdict": "second"}', mime_type="application/json")

    async def body(client: Client) -> None:
        items = await listed(client)
        schemes = {uri.partition(":")[0] for uri in items}
        assert schemes == {"file", "git", "rag", "config", "env", "metrics", "wallbounce", "docs"}
        assert "hunter2" not in str(items)
        pages = [priority(item) for uri, item in items.items() if uri.startswith("docs:///handbook/")]
        assert pages == sorted(pages, reverse=True)
        assert len(pages) >= 60

        texts = {uri: (await read(client, uri)).text for uri in ONE_OF_EACH}
        assert texts["file:///project/src/main.ts"] == "export const answer = 42;\n"
        assert "The first" in texts["git:///techsapo/log"]
        assert texts["config:///app/server/port"] == "8080"
        assert texts["env:///TZ"] == "Asia/Tokyo"
        assert json.loads(texts["wallbounce:///analysis-1"]) == {"verdict": "first"}
        cpu = next(uri for uri in items if uri.startswith("metrics:///cpu"))
        assert json.loads((await read(client, cpu)).text)["points"]

        found = json.loads((await read(client, "docs:///handbook/search/再起動")).text)["hits"]
        assert any(quote("サーバー再起動.md") in hit["uri"] for hit in found), found
        hits = (await client.read_resource("rag:///kb/search/用語")).contents
        assert any(hit.uri.startswith("rag:///kb/doc/") for hit in hits), hits
        completed = await complete(client, "docs:///{site}/{+page}", "page", "ja/サーバー再")
        assert completed == ["ja/" + quote("サーバー再起動.md")]

        page = next(
            uri for uri, item in items.items() if uri.startswith("docs:///") and item.title == "サーバーの再起動"
        )
        document = next(uri for uri in items if uri.startswith("rag:///kb/doc/") and "guide" in uri)
        watched = {*WATCHED, document, cpu, page}
        await updated(client, mode, updates, watched, change)
        assert (await read(client, "config:///app/server/port")).text == "9090"
        assert json.loads((await read(client, "wallbounce:///analysis-1")).text) == {"verdict": "second"}
        assert "The second" in (await read(client, "git:///techsapo/log")).text

    converse(served(program, examples / "techsapo.yaml"), mode, body, updates)


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
def test_the_context_of_a_project(program: Path, examples: Path, mode: str) -> None:
    """S-01, S-02, S-04, S-05, S-50 to S-57: files, git, configuration, environment, metrics and skills at once."""
    updates = Updates()
    data = examples / "data"
    manifest = data / "skills" / "git-workflow" / "SKILL.md"

    def change() -> None:
        (data / "project" / "src" / "main.ts").write_text("export const answer = 43;\n", "utf-8")
        commit(examples, "The second")
        (data / "app.json").write_text(json.dumps({"server": {"port": 9090}}), "utf-8")
        manifest.write_text(manifest.read_text("utf-8") + "\nOne more line.\n", "utf-8")

    async def body(client: Client) -> None:
        items = await listed(client)
        schemes = {uri.partition(":")[0] for uri in items}
        assert schemes == {"file", "git", "config", "env", "metrics", "skill"}
        assert "hunter2" not in str(items)
        texts = {uri: (await read(client, uri)).text for uri in PROJECT_READS}
        assert texts["file:///project/src/main.ts"] == "export const answer = 42;\n"
        assert texts["git:///project/blob/HEAD/examples/data/project/src/main.ts"] == "export const answer = 42;\n"
        assert "The first" in texts["git:///project/log"]
        assert json.loads(texts["git:///project/status"])["clean"] is True
        assert texts["config:///app/server/port"] == "8080"
        assert texts["env:///TZ"] == "Asia/Tokyo"
        assert texts[SKILL] == manifest.read_text("utf-8")
        cpu = next(uri for uri in items if uri.startswith("metrics:///cpu"))
        assert json.loads((await read(client, cpu)).text)["points"]

        before = await entry(client)
        await updated(client, mode, updates, {*PROJECT_READS[:4], SKILL, cpu}, change)
        assert (await read(client, "file:///project/src/main.ts")).text == "export const answer = 43;\n"
        assert (await read(client, "config:///app/server/port")).text == "9090"
        assert "The second" in (await read(client, "git:///project/log")).text
        assert "One more line." in (await read(client, SKILL)).text
        assert (await entry(client))["resources"] != before["resources"]

    async def entry(client: Client) -> dict[str, object]:
        entries = (await call(client, "skills/list"))["skills"]
        return next(skill for skill in entries if skill["uri"] == SKILL)

    converse(served(program, examples / "project.yaml"), mode, body, updates)


SKILL = "skill://git-workflow/SKILL.md"
PROJECT_READS = [
    "file:///project/src/main.ts",
    "git:///project/log",
    "git:///project/status",
    "config:///app/server/port",
    "git:///project/blob/HEAD/examples/data/project/src/main.ts",
    "env:///TZ",
    "metrics:///",
    SKILL,
]
ONE_OF_EACH = [
    "file:///project/src/main.ts",
    "git:///techsapo/log",
    "rag:///",
    "config:///app/server/port",
    "env:///TZ",
    "metrics:///",
    "wallbounce:///analysis-1",
    "docs:///handbook/README.md",
]
WATCHED = {
    "file:///project/src/main.ts",
    "git:///techsapo/log",
    "config:///app/server/port",
    "wallbounce:///analysis-1",
}


def test_the_common_patterns(program: Path, examples: Path) -> None:
    """S-20: configuration, live metrics, a database view and the answer of an API, each from a file of its own."""
    database = sqlite3.connect(examples / "data" / "analytics.db")
    database.executescript((DATA / "analytics.sql").read_text("utf-8"))
    database.close()
    patterns = examples / "patterns"

    async def configuration(client: Client) -> None:
        assert (await read(client, "config:///app/theme/name")).text == "dark"
        await refused(client, "config:///app/features")

    async def live_metrics(client: Client) -> None:
        uris = await listed(client)
        assert any(uri.startswith("metrics:///memory") for uri in uris)

    async def database_view(client: Client) -> None:
        rows = json.loads((await read(client, "db:///analytics/query/daily_summary")).text)["rows"]
        assert [row["day"] for row in rows] == ["2026-07-01", "2026-07-02", "2026-07-03"]
        day = json.loads((await read(client, "db:///analytics/query/day?day=2026-07-02")).text)["rows"]
        assert len(day) == 2

    async def api_response(client: Client) -> None:
        assert json.loads((await read(client, "api:///users/user/2")).text)["name"] == "花子"
        await refused(client, "api:///users/user/3")

    for check in (configuration, live_metrics, database_view):
        converse(served(program, patterns / f"{check.__name__}.yaml"), MODERN, check)
    with upstream() as base:
        file = patterns / "api_response.yaml"
        file.write_text(file.read_text("utf-8").replace("http://127.0.0.1:9000", base), "utf-8")
        converse(served(program, file), MODERN, api_response)


def converse(
    server: StdioServerParameters, mode: str, body: Callable[[Client], object], updates: Updates | None = None
) -> None:
    async def main() -> None:
        on_message = updates.on_message if updates else None
        async with (
            asyncio.timeout(PATIENCE),
            Client(server, mode=mode, message_handler=on_message, cache=None) as client,
        ):
            await body(client)  # type: ignore[misc]

    asyncio.run(main())
