"""The examples do what their first lines say, asked by the official client over stdio.

One text for all languages: an example has the same name, the same URIs and the same data in each.
"""

import asyncio
import hashlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import mcp_types as types
import pytest
from http_aside import serving_aside
from loopback_drive import CREDENTIALS, listening
from mcp import Client, MCPError
from mcp.client.session import MessageHandlerFnT
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from pydantic import TypeAdapter
from repositories import make_repository
from test_guides import newer_node

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "examples" / "data"
LEGACY, MODERN = "legacy", "2026-07-28"
LANGUAGES = [name for name in ("python", "rust", "node") if (ROOT / "examples" / name).is_dir()]
NOT_FOUND = {LEGACY: -32002, MODERN: -32602}
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
PATIENCE = 20.0

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

Body = Callable[[Client], Awaitable[None]]


@pytest.fixture(params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[LEGACY, MODERN])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def command(language: str, example: str, *args: str) -> StdioServerParameters:
    if language == "python":
        script = ROOT / "examples" / "python" / f"{example}.py"
        return StdioServerParameters(command=sys.executable, args=[str(script), *args])
    if language == "node":
        script = ROOT / "examples" / "node" / f"{example}.mjs"
        return StdioServerParameters(command=node(example), args=[str(script), *args], env=dict(os.environ))
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return StdioServerParameters(command=str(target / "debug" / "examples" / example), args=list(args))


def node(example: str) -> str:
    """The Node at hand; a newer one for the example that needs SQLite."""
    given = os.environ.get("NODE", "node")
    if (
        example != "database_view"
        or not subprocess.run([given, "-e", "require('node:sqlite')"], capture_output=True).returncode
    ):
        return given
    newer = subprocess.run([ROOT / "tests" / "node" / "newer-node"], capture_output=True, text=True, check=False)
    assert newer.returncode == 0, f"this Node has no SQLite, and there is no newer one: {newer.stderr}"
    return newer.stdout.strip()


def converse(server: StdioServerParameters, mode: str, body: Body, on_message: MessageHandlerFnT | None = None) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(PATIENCE),
            Client(server, mode=mode, message_handler=on_message, cache=None) as client,
        ):
            await body(client)

    asyncio.run(main())


async def read(client: Client, uri: str) -> types.TextResourceContents:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    return content


async def call(client: Client, method: str, **params: object) -> dict[str, Any]:
    """Calls a method that the client does not know."""
    request = types.Request[dict[str, object], str](method=method, params=params)
    return await client.session.send_request(request, TypeAdapter(dict[str, Any]))


async def refused(client: Client, uri: str) -> types.ErrorData:
    with pytest.raises(MCPError) as caught:
        await client.read_resource(uri)
    return caught.value.error


class Updates:
    """The updates that a client is notified of."""

    def __init__(self) -> None:
        self._uris: asyncio.Queue[str] = asyncio.Queue()

    async def on_message(self, message: types.ServerNotification | Exception) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            self._uris.put_nowait(message.params.uri)

    async def next(self) -> str:
        """The URI of the next update."""
        return await self._uris.get()

    async def of(self, client: Client, mode: str, uri: str) -> None:
        """Subscribes to `uri`, and waits for an update of it."""
        if mode == MODERN:
            async with client.listen(resource_subscriptions=[uri]) as subscription:
                assert await anext(subscription) == ResourceUpdated(uri)
        else:
            await client.subscribe_resource(uri)
            assert await self.next() == uri


async def complete(client: Client, template: str, name: str, value: str) -> list[str]:
    reference = types.ResourceTemplateReference(uri=template)
    return (await client.complete(reference, {"name": name, "value": value})).completion.values


async def listed(client: Client) -> dict[str, types.Resource]:
    return {resource.uri: resource for resource in (await client.list_resources()).resources}


def test_config_file(language: str, mode: str) -> None:
    """S-20, S-31: a media type, a template, a clear error."""

    async def body(client: Client) -> None:
        whole = await read(client, "config://app")
        assert json.loads(whole.text) == json.loads((DATA / "app.json").read_text("utf-8"))
        assert whole.mime_type == "application/json"
        assert json.loads((await read(client, "config://app/theme")).text)["name"] == "dark"
        assert await complete(client, "config://app/{section}", "section", "s") == ["server"]
        error = await refused(client, "config://app/none")
        assert (error.code, error.data["uri"]) == (NOT_FOUND[mode], "config://app/none")
        assert "config://app" in await listed(client)

    converse(command(language, "config_file"), mode, body)


def test_database_tables(language: str, mode: str, tmp_path: Path) -> None:
    """S-20: lists, pages, reads, completes and watches; a denied column is nowhere."""
    file = tmp_path / "shop.db"
    shutil.copy(DATA / "shop.db", file)
    server = command(language, "database_tables", str(file))
    changed: asyncio.Queue[str] = asyncio.Queue()
    bo = "db:///shop/customers/2"

    async def on_message(message: types.ServerNotification | Exception) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            changed.put_nowait(message.params.uri)

    async def at(client: Client, uri: str) -> Any:
        return json.loads((await read(client, uri)).text)

    async def body(client: Client) -> None:
        items = await listed(client)
        tables = ["db:///shop/customers", "db:///shop/order_lines"]
        assert set(items) == {"db:///", "db:///shop/schema", *tables}
        texts = {uri: (await read(client, uri)).text for uri in items}
        assert "hunter2" not in f"{texts}"
        assert "password" not in f"{texts}"
        assert await at(client, bo) == {"id": 2, "name": "Bo", "city": "Oslo"}
        assert (await at(client, "db:///shop/order_lines/2,2"))["item"] == "抹茶"
        page = await at(client, f"{tables[0]}?rows=2")
        assert [row["id"] for row in page["rows"]] == [1, 2]
        assert [row["id"] for row in (await at(client, page["next"]))["rows"]] == [3]
        found = await at(client, "db:///shop/query/by_city?city=Oslo")
        assert [row["name"] for row in found["rows"]] == ["Bo", "Cy"]
        assert (await refused(client, "db:///shop/customers/9")).code == NOT_FOUND[mode]
        assert await complete(client, "db:///{name}/{table}/{key}", "table", "o") == ["order_lines"]

        async def change() -> None:
            with sqlite3.connect(file) as connection:
                connection.execute("UPDATE customers SET name = 'Bea' WHERE id = 2")
            connection.close()

        if mode == MODERN:
            async with client.listen(resource_subscriptions=[bo]) as events:
                await change()
                heard = await anext(aiter(events))
                assert isinstance(heard, ResourceUpdated)
                assert heard.uri == bo
        else:
            await client.subscribe_resource(bo)
            await change()
            assert await changed.get() == bo
        assert (await at(client, bo))["name"] == "Bea"

    converse(server, mode, body, on_message)


def test_results(language: str, mode: str) -> None:
    """S-06: an analysis is computed once for those who ask at the same time, listed, read and completed."""

    async def body(client: Client) -> None:
        found = await asyncio.gather(*(read(client, "analyze:///risk") for _ in range(8)))
        assert {content.text for content in found} == {"wallbounce:///risk"}
        assert (await read(client, "wallbounce:///risk")).text == "4 letters"
        assert "wallbounce:///risk" in await listed(client)
        assert "wallbounce:///risk" in (await read(client, "wallbounce:///")).text
        assert await complete(client, "wallbounce:///{analysisId}", "analysisId", "r") == ["risk"]
        error = await refused(client, "wallbounce:///none")
        assert error.code == NOT_FOUND[mode]

    converse(command(language, "results"), mode, body)


def test_settings(language: str, mode: str, tmp_path: Path) -> None:
    """S-04: lists, reads, completes and watches; what is not allowed is not there, and secrets are masked."""
    file = tmp_path / "app.json"

    def write(port: int) -> None:
        section = {"port": port, "host": "here", "api_key": "hunter2-canary"}
        file.write_text(json.dumps({"server": section, "theme": {"name": "dark"}, "features": {"x": 1}}), "utf-8")

    write(8080)
    server = command(language, "settings", str(file))
    server.env = dict(os.environ) | {"TZ": "Asia/Tokyo", "APP_TOKEN": "hunter2-canary", "OTHER": "hunter2-canary"}
    changed: asyncio.Queue[str] = asyncio.Queue()
    port = "config:///app/server/port"

    async def on_message(message: types.ServerNotification | Exception) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            changed.put_nowait(message.params.uri)

    async def body(client: Client) -> None:
        keys = [f"server{key}" for key in ("", "/api_key", "/host", "/port")] + ["theme/name"]
        uris = ["config:///", "env:///", "config:///app", *(f"config:///app/{key}" for key in keys)]
        items = await listed(client)
        assert set(items) == {*uris, "env:///APP_TOKEN", "env:///TZ"}
        assert items[port].size == 4
        assert (await read(client, port)).text == "8080"
        texts = {uri: (await read(client, uri)).text for uri in items}
        assert "hunter2" not in f"{texts}{items}"
        assert texts["env:///TZ"] == "Asia/Tokyo"
        assert json.loads(texts["config:///app"])["server"]["api_key"] == "[redacted:key-name]"
        assert await complete(client, "config:///{app}/{+key}", "key", "server/") == keys[1:4]
        assert await complete(client, "env:///{name}", "name", "app") == ["APP_TOKEN"]
        errors = [
            await refused(client, f"{uri}") for uri in ("config:///app/features", "config:///app/none", "env:///OTHER")
        ]
        assert {error.code for error in errors} == {NOT_FOUND[mode]}
        assert len({error.message for error in errors}) == 1
        if mode == MODERN:
            async with client.listen(resource_subscriptions=[port, "config:///app/server/host"]) as subscription:
                write(9090)
                assert await anext(subscription) == ResourceUpdated(port)
        else:
            await client.subscribe_resource("config:///app/server/host")
            await client.subscribe_resource(port)
            write(9090)
            assert await changed.get() == port
        assert (await read(client, port)).text == "9090"

    converse(server, mode, body, on_message)


def test_skills(language: str, mode: str) -> None:
    """S-20, S-50 to S-53: the extension's methods, and the same skills as resources."""
    folder = DATA / "skills"

    async def body(client: Client) -> None:
        items = await listed(client)
        assert items["skill://acme/billing/refunds/SKILL.md"].name == "refunds"
        assert "Use when" in (items["skill://git-workflow/SKILL.md"].description or "")
        result = await call(client, "skills/list")
        skills = {skill["uri"]: skill for skill in result["skills"]}
        assert list(skills) == ["skill://acme/billing/refunds/SKILL.md", "skill://git-workflow/SKILL.md"]
        for skill in skills.values():
            for file in skill["resources"]:
                data = (folder / file["uri"].removeprefix("skill://")).read_bytes()
                assert file["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
                assert (await read(client, file["uri"])).text.encode() == data
        names = await complete(client, "skill://{+path}", "path", "acme/billing/refunds/t")
        assert names == [f"acme/billing/refunds/templates/{name}" for name in ("default.md", "regional/ja.md")]
        assert (await refused(client, "skill://none/SKILL.md")).code == NOT_FOUND[mode]

    converse(command(language, "skills"), mode, body)


def test_access_rules(language: str, mode: str) -> None:
    """R-075, S-10."""

    async def body(client: Client) -> None:
        assert (await read(client, "team://blue/plan")).text == "The plan of blue."
        assert (await read(client, "team://blue/notes/launch")).text == "blue: On Tuesday."
        for uri in ("team://blue/notes/salaries", "team://board/plan", "team://blue/notes/none"):
            error = await refused(client, uri)
            assert (error.code, error.data) == (NOT_FOUND[mode], {"uri": uri, "kind": "not_found"})
        assert await complete(client, "team://{team}/notes/{name}", "name", "") == ["launch", "retrospective"]

    converse(command(language, "access_rules"), mode, body)


def test_live_feed(language: str, mode: str) -> None:
    """S-20."""
    uri = "metrics://cpu/usage"
    updates = Updates()

    async def body(client: Client) -> None:
        first = json.loads((await read(client, uri)).text)
        await updates.of(client, mode, uri)
        second = json.loads((await read(client, uri)).text)
        assert second["usage"] >= 0
        assert second["sampled_at"] > first["sampled_at"]

    converse(command(language, "live_feed"), mode, body, updates.on_message)


def test_database_view(language: str, mode: str) -> None:
    """S-20."""
    uri = "db://analytics/daily_summary"
    database = sqlite3.connect(":memory:")
    database.executescript((DATA / "analytics.sql").read_text("utf-8"))
    expected = database.execute("SELECT day, count(*), sum(revenue) FROM orders GROUP BY day ORDER BY day").fetchall()

    async def body(client: Client) -> None:
        rows = json.loads((await read(client, uri)).text)
        assert [(row["day"], row["orders"]) for row in rows] == [row[:2] for row in expected]
        assert [row["revenue"] for row in rows] == pytest.approx([row[2] for row in expected])
        assert json.loads((await read(client, f"{uri}/2026-07-02")).text)["orders"] == 2
        assert (await refused(client, f"{uri}/1999-01-01")).code == NOT_FOUND[mode]
        assert f"{uri}/2026-07-03" in await listed(client)
        assert await complete(client, uri + "/{day}", "day", "2026-07-01") == ["2026-07-01"]

    converse(command(language, "database_view"), mode, body)


class Upstream(BaseHTTPRequestHandler):
    """The API behind the example: two users, and a fault."""

    def do_GET(self) -> None:  # the name that http.server calls
        users = {"/users/1": b'{"id":1,"name":"Ada"}', "/users/2": '{"id":2,"name":"花子"}'.encode()}
        status = 200 if self.path in users else 500 if self.path == "/users/500" else 404
        body = users.get(self.path, b"secret-detail")
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def upstream() -> Iterator[str]:
    with serving_aside(ThreadingHTTPServer(("127.0.0.1", 0), Upstream)) as api:
        yield f"http://127.0.0.1:{api.server_port}"


def test_http_api(language: str, mode: str) -> None:
    """S-20."""

    async def body(client: Client) -> None:
        content = await read(client, "api://users/2")
        assert (json.loads(content.text)["name"], content.mime_type) == ("花子", "application/json")
        assert (await refused(client, "api://users/3")).code == NOT_FOUND[mode]
        assert (await refused(client, "api://users/ada")).code == INVALID_PARAMS
        fault = await refused(client, "api://users/500")
        assert fault.code == INTERNAL_ERROR
        assert "secret" not in f"{fault.message}{fault.data}"

    with upstream() as base:
        converse(command(language, "http_api", base), mode, body)


def test_api_endpoints(language: str, mode: str) -> None:
    """S-20: the same API as declared endpoints; what the server says of a fault stays there."""

    async def body(client: Client) -> None:
        content = await read(client, "api:///directory/user/2")
        assert (json.loads(content.text)["name"], content.mime_type) == ("花子", "application/json")
        assert (await refused(client, "api:///directory/user/3")).code == NOT_FOUND[mode]
        fault = await refused(client, "api:///directory/user/500")
        assert fault.code == INTERNAL_ERROR
        assert "secret" not in f"{fault.message}{fault.data}"
        assert "api:///directory/user" in await listed(client)

    with upstream() as base:
        converse(command(language, "api_endpoints", base), mode, body)


def test_documents(language: str, mode: str) -> None:
    async def body(client: Client) -> None:
        resources = await listed(client)
        assert {resource.name for resource in resources.values()} == {path.name for path in (DATA / "docs").iterdir()}
        for path in (DATA / "docs").iterdir():
            uri = f"docs:///{quote(path.name)}"
            assert (await read(client, uri)).text == path.read_text("utf-8")
            assert resources[uri].size == path.stat().st_size
        assert resources[f"docs:///{quote('設計.md')}"].title == "設計の要点"
        assert (await read(client, "docs:///用語集.md")).text.startswith("# 用語集")  # DEC-29: an IRI is accepted
        assert await complete(client, "docs:///{name}", "name", "は") == ["はじめに.md"]
        assert (await refused(client, "docs:///..%2Fapp.json")).code in {NOT_FOUND[mode], INVALID_PARAMS}

    converse(command(language, "documents"), mode, body)


def test_providers(language: str, mode: str) -> None:
    """S-20; `test_providers.py` compares the languages."""
    ticker = "memory:///ticker.txt"
    updates = Updates()

    async def body(client: Client) -> None:
        assert (await read(client, "clock:///Asia/Tokyo")).text.endswith("+09:00[Asia/Tokyo]")
        assert (await read(client, "memory:///notes/00042.txt")).text == "note 42\n"
        for uri in ("memory:///notes/none", "memory:///secret/plan.txt", "clock:///Nowhere"):
            assert (await refused(client, uri)).code == NOT_FOUND[mode]
        assert (await complete(client, "memory:///{+path}", "path", "notes/0004"))[0] == "notes/00040.txt"
        assert "Asia/Tokyo" in await complete(client, "clock:///{+zone}", "zone", "tok")
        await updates.of(client, mode, ticker)

    converse(command(language, "providers"), mode, body, updates.on_message)


def test_host_metrics(language: str, mode: str) -> None:
    """S-05: lists, reads, completes and watches; three forms; Prometheus' own parser reads one of them."""
    changed: asyncio.Queue[str] = asyncio.Queue()
    jobs, ranges = "metrics:///jobs_done", "metrics:///{name}{?from,to,step,format}"

    async def on_message(message: types.ServerNotification | Exception) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            changed.put_nowait(message.params.uri)

    async def body(client: Client) -> None:
        items = await listed(client)
        assert {"metrics:///", jobs, "metrics:///cpu_usage_percent"} < set(items)
        index = {one["name"]: one for one in json.loads((await read(client, "metrics:///")).text)["series"]}
        assert {name.partition("_")[0] for name in index} == {"cpu", "memory", "disk", "network", "jobs"}
        assert index["memory_total_bytes"]["value"] > 1e6
        first = json.loads((await read(client, jobs)).text)["points"]
        if mode == MODERN:
            async with client.listen(resource_subscriptions=[jobs]) as subscription:
                assert await anext(subscription) == ResourceUpdated(jobs)
        else:
            await client.subscribe_resource(jobs)
            assert await changed.get() == jobs
        then = json.loads((await read(client, f"{jobs}?from=-1h")).text)["points"]
        assert then[0]["value"] == first[0]["value"] == 0
        assert then[-1]["value"] > first[-1]["value"]
        rows = (await read(client, f"{jobs}?format=csv")).text.splitlines()
        assert rows[0] == "time,value,min,max,count"
        assert len(rows) > len(then)
        (family,) = text_string_to_metric_families((await read(client, f"{jobs}?format=openmetrics")).text)
        assert (family.name, family.type, family.samples[0].value) == ("jobs_done", "gauge", 0)
        assert await complete(client, ranges, "name", "jobs") == ["jobs_done"]
        assert await complete(client, ranges, "format", "o") == ["openmetrics"]
        error = await refused(client, f"{jobs}?step=soon")
        assert (error.code, "step" in error.message) == (INVALID_PARAMS, True)
        assert (await refused(client, "metrics:///none")).code == NOT_FOUND[mode]

    converse(command(language, "host_metrics"), mode, body, on_message)


def test_project_files(language: str, mode: str) -> None:
    """R-058, R-061: the server of the agents' example; nothing outside its folder is read."""

    async def body(client: Client) -> None:
        listed = {str(item.uri) for item in (await client.list_resources()).resources}
        assert "file:///project/src/main.ts" in listed
        assert (await read(client, "file:///project/src/main.ts")).text == "export const answer = 42;\n"
        for uri in ("file:///project/none", "file:///project/..%2Fapp.json", "file:///data/app.json"):
            assert (await refused(client, uri)).code == NOT_FOUND[mode]

    converse(command(language, "project_files", "--root", str(DATA / "project")), mode, body)


def test_handbook(language: str, mode: str) -> None:
    """S-07: a table of queries in two languages, each with the pages that it must find, and those that it must not."""
    table = json.loads((ROOT / "tests" / "fixtures" / "search.json").read_text("utf-8"))

    async def body(client: Client) -> None:
        found = await listed(client)
        first = found["docs:///handbook/README.md"]
        assert first.annotations is not None
        assert first.annotations.priority == 1.0
        assert found["docs:///handbook/" + quote("ja/決済.md")].meta == {"lang": "ja"}
        for row in table["queries"]:
            wanted = f"q={quote(row['query'], safe='')}&k=100" + (f"&lang={row['lang']}" if "lang" in row else "")
            answer = json.loads((await read(client, f"docs:///handbook/search?{wanted}")).text)
            pages = {unquote(hit["uri"].partition("#")[0]).removeprefix("docs:///handbook/") for hit in answer["hits"]}
            must = {page for page in row["must"] if not page.startswith("drafts/")}
            assert must <= pages, (row, pages)
            assert not pages & {*row["must_not"], "drafts/loyalty.md"}, (row, pages)
        (hit,) = json.loads((await read(client, "docs:///handbook/search/issue化")).text)["hits"]
        assert "**issue化**" in hit["snippet"] or "**issue化**" in hit["section"], hit
        assert (await read(client, hit["uri"])).text.startswith("## issue化のしかた\n")
        template = "docs:///{site}/{+page}"
        assert await complete(client, template, "page", "services/c") == ["services/cart.md", "services/catalogue.md"]
        assert (await refused(client, "docs:///handbook/drafts/loyalty.md")).code == NOT_FOUND[mode]

    converse(command(language, "handbook"), mode, body)


def test_retrieval(language: str, mode: str, tmp_path: Path) -> None:
    """S-03: questions in two languages, with passages of the document that answers; Drive beside a folder."""
    with listening() as drive:
        (tmp_path / "credentials.json").write_text(json.dumps(CREDENTIALS), "utf-8")
        config = tmp_path / "drive.json"
        config.write_text(json.dumps({"credentials": "credentials.json", "base_url": drive.url}), "utf-8")

        async def best(client: Client, collection: str, question: str) -> types.TextResourceContents:
            uri = f"rag:///{collection}/search/{quote(question, safe='')}"
            contents = (await client.read_resource(uri)).contents
            assert 1 <= len(contents) <= 3
            first = contents[0]
            assert isinstance(first, types.TextResourceContents)
            assert first.meta is not None
            assert first.meta["score"] > 0
            assert first.meta["ranking"] == "bm25"
            return first

        async def body(client: Client) -> None:
            found = await best(client, "handbook", "How often do we make a full backup?")
            assert found.uri == "rag:///handbook/doc/runbooks/backup-restore.md"
            assert "A full backup every Sunday" in found.text
            found = await best(client, "handbook", "サーバーを再起動する手順は？")
            assert unquote(found.uri) == "rag:///handbook/doc/ja/サーバー再起動.md"
            assert (await read(client, found.uri)).text.startswith("---\ntitle: サーバーの再起動")
            found = await best(client, "drive", "Where is the espresso?")
            assert (found.uri, (found.meta or {})["source"]) == ("rag:///drive/doc/txt2", "gdrive:///txt2")
            assert (await read(client, "gdrive:///txt2")).text == "Espresso is in the kitchen."
            template = "rag:///{collection}/doc/{+id}"
            assert await complete(client, template, "collection", "h") == ["handbook"]
            error = await refused(client, "rag:///handbook/doc/drafts/loyalty.md")
            assert error.code == NOT_FOUND[mode]

        converse(command(language, "retrieval", str(config)), mode, body)


def test_repository(language: str, mode: str, tmp_path: Path) -> None:
    """S-02: a repository that this test makes with the git program."""
    project = make_repository(tmp_path)
    updates = Updates()

    async def body(client: Client) -> None:
        assert {"git:///project/status", "git:///project/log/feature~2Fx"} <= set(await listed(client))
        log = json.loads((await read(client, "git:///project/log")).text)
        assert [commit["subject"] for commit in log["commits"]] == ["Second", "First"]
        assert (await read(client, "git:///project/blob/HEAD~1/a.txt")).text == "one\n"
        diff = (await read(client, "git:///project/diff/feature~2Fx/main")).text
        assert "-one\n+two\n" in diff
        assert "secret" not in diff
        for uri in ("git:///project/blob/main/secret", "git:///project/blob/main/none", "git:///project/log/none"):
            assert (await refused(client, uri)).code == NOT_FOUND[mode]
        assert (await refused(client, "git:///project/log/--output=x")).code == INVALID_PARAMS
        assert await complete(client, "git:///{repo}/blob/{ref}/{+path}", "path", "") == ["a.txt"]
        assert json.loads((await read(client, "git:///project/status")).text)["clean"]
        (project / "a.txt").write_text("three\n")
        await updates.of(client, mode, "git:///project/status")

    converse(command(language, "repository", str(project)), mode, body, updates.on_message)


def test_agent(language: str) -> None:
    """S-10, S-12, S-13: the seed's configuration: an allowed read, a refused one, a wildcard, a file that changes."""
    example = command(language, "agent")
    done = subprocess.run(
        [example.command, *example.args], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in done.stdout.splitlines() if line] == [
        "listed: file:///project/package.json file:///project/src/main.ts file:///project/src/lib/util.ts",
        "allowed: export const answer = 42;",
        "refused: Access denied: file:///project/config.json",
        "watched: export const answer = 42;",
        "watched: export const answer = 43;",
        'wildcard: { "database": "postgres://localhost/myapp", "port": 3000 }',
    ]


def test_csv_folder(mode: str) -> None:
    """S-20: a provider of an author's own, in Rust."""

    async def body(client: Client) -> None:
        assert "Ada" in (await read(client, "csv:///people.csv")).text
        assert json.loads((await read(client, "csv:///people.csv?row=1")).text)["city"] == "London"
        assert (await refused(client, "csv:///people.csv?row=9")).code == NOT_FOUND[mode]
        assert await complete(client, "csv:///{file}{?row}", "file", "pe") == ["people.csv"]

    converse(command("rust", "csv_folder"), mode, body)


def test_every_example_is_tested_and_listed(language: str) -> None:
    names = {path.stem for path in (ROOT / "examples" / language).iterdir() if path.suffix in {".py", ".rs", ".mjs"}}
    readme = (ROOT / "examples" / "README.md").read_text("utf-8")
    for name in names:
        assert f"test_{name}" in globals(), name
        assert name in readme, name


@pytest.fixture(params=["python notes.py", "ts notes.ts"])
def quickstart(request: pytest.FixtureRequest, tmp_path: Path) -> StdioServerParameters:
    """A program of the README, as it is printed."""
    (block,) = re.findall(rf"```{request.param}\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    script = tmp_path / str(request.param).split(" ")[1]
    script.write_text(block, "utf-8")
    if script.suffix == ".py":
        return StdioServerParameters(command=sys.executable, args=[str(script)])
    # Node looks for packages beside the script.
    (tmp_path / "node_modules").mkdir()
    for package, place in (("mcp-resources", ROOT), ("zod", ROOT / "node_modules" / "zod")):
        (tmp_path / "node_modules" / package).symlink_to(place)
    command = str(newer_node() / "node")
    return StdioServerParameters(command=command, args=[str(script)], env=dict(os.environ))


def test_readme(quickstart: StdioServerParameters, mode: str) -> None:
    """S-31: the first server that a reader writes, asked by the official client."""

    async def body(client: Client) -> None:
        assert json.loads((await read(client, "notes://all")).text)["monday"] == "Buy milk"
        assert (await read(client, "notes://day/monday")).text == "Buy milk"
        assert (await refused(client, "notes://day/friday")).code == NOT_FOUND[mode]
        assert set(await listed(client)) == {"notes://all", "notes://day/monday", "notes://day/tuesday"}

    converse(quickstart, mode, body)


def test_the_demo() -> None:
    """What `make demo` runs: it ends with an error where something is not as it says."""
    demo = [sys.executable, ROOT / "examples" / "demo" / "drive.py"]
    done = subprocess.run(demo, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
