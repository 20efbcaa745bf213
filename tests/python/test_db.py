"""Databases, served by the command to the official client: SQLite, and a real Postgres of the test's own."""

import asyncio
import json
import os
import sqlite3
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated
from mcp_resources import providers
from postgres import ABSENT, PASSWORD, Postgres, binaries, postgres
from process import eventually, refused_at_start, running
from test_config import listening, post
from vectors import MODERN

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

HAS_POSTGRES = binaries() is not None
NEEDS_POSTGRES = pytest.mark.skipif(not HAS_POSTGRES, reason=ABSENT)
PLANTED = PASSWORD
SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, password TEXT);
INSERT INTO customers VALUES (1, 'Ada', 'London', 'hunter2-canary'), (2, 'Bo', 'Oslo', NULL), (3, 'Cy', 'Oslo', NULL);
CREATE TABLE lines (order_id INTEGER, line INTEGER, item TEXT, PRIMARY KEY (order_id, line));
INSERT INTO lines VALUES (2, 3, 'tea'), (2, 4, 'milk'), (10, 1, 'rice');
CREATE TABLE codes (code TEXT PRIMARY KEY, meaning TEXT);
INSERT INTO codes VALUES ('a/b', 'slash'), ('c,d', 'comma'), ('~2F', 'escape'), ('', 'empty'), ('検索 %?#', 'text');
CREATE TABLE hidden (id INTEGER PRIMARY KEY, secret TEXT);
"""
TABLES = ["customers", "lines", "codes"]
OPTIONS: dict[str, object] = {
    "tables": TABLES,
    "columns_deny": ["password"],
    "views": {"by_city": "SELECT id, name FROM customers WHERE city = :city ORDER BY id -- :not"},
    "rows": 2,
    "poll": "50ms",
}
Commit = Callable[[str], None]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=NEEDS_POSTGRES)])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Commit]:
    """The URL of a database, and what commits in another process or connection."""
    if request.param == "postgres":
        server: Postgres = request.getfixturevalue("server")
        server.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        server.run(SCHEMA)
        return server.url, server.run
    file = tmp_path / "shop.db"

    def commit(sql: str) -> None:
        with sqlite3.connect(file) as connection:
            connection.executescript(sql)
        connection.close()

    commit(SCHEMA)
    return f"sqlite:{file}", commit


def config(folder: Path, url: object, **more: object) -> Path:
    """A file for `serve --config`."""
    declared = [{"db": {"databases": {"shop": {"url": url} | OPTIONS}}}]
    file = folder / "resources.json"
    file.write_text(json.dumps({"name": "shop", "providers": declared} | more), "utf-8")
    return file


def triggers(program: Path, file: Path, commit: Commit) -> None:
    """Installs what the command prints, as an operator does."""
    done = subprocess.run([program, "triggers", "--config", file], capture_output=True, text=True, check=False)
    if "postgres" in file.read_text("utf-8"):
        assert done.returncode == 0, done.stderr
        assert PLANTED not in done.stdout
        commit(done.stdout)
    else:
        assert (done.returncode, "SQLite needs none" in done.stderr) == (2, True)


async def page(client: Client, uri: str) -> Any:
    (contents,) = (await client.read_resource(uri)).contents
    assert isinstance(contents, types.TextResourceContents)
    return json.loads(contents.text)


@pytest.mark.parametrize("mode", ["legacy", MODERN])
def test_the_official_client(program: Path, tmp_path: Path, shop: tuple[str, Commit], mode: str) -> None:
    """S-20: lists, reads, pages, completes and watches; rows that did not change are not reported."""
    url, commit = shop
    file = config(tmp_path, url)
    triggers(program, file, commit)
    changed: asyncio.Queue[str] = asyncio.Queue()

    async def on_message(message: types.ServerNotification | Exception) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            changed.put_nowait(message.params.uri)

    async def main() -> None:
        command = StdioServerParameters(command=str(program), args=["serve", "--config", str(file)])
        async with asyncio.timeout(60), Client(command, mode=mode, message_handler=on_message, cache=None) as client:
            uris = [item.uri for item in (await client.list_resources()).resources]
            tables = [f"db:///shop/{table}" for table in TABLES]
            assert uris == ["db:///", "db:///shop/schema", *tables]
            templates = [item.uri_template for item in (await client.list_resource_templates()).resource_templates]
            assert "db:///shop/query/by_city{?city}" in templates
            await reads(client)
            reference = types.ResourceTemplateReference(type="ref/resource", uri="db:///{name}/{table}/{key}")
            context = {"name": "shop", "table": "lines"}
            argument = {"name": "key", "value": "2,"}
            found = await client.complete(reference, argument, context_arguments=context)
            assert found.completion.values == ["2,3", "2,4"]
            await watches(client, mode, commit, changed)

    asyncio.run(main())


async def reads(client: Client) -> None:
    assert await page(client, "db:///shop/customers/1") == {"id": 1, "name": "Ada", "city": "London"}
    assert (await page(client, "db:///shop/lines/10,1"))["item"] == "rice"
    first = await page(client, "db:///shop/customers")
    assert [row["id"] for row in first["rows"]] == [1, 2]
    assert await page(client, first["next"]) == {"rows": [{"id": 3, "name": "Cy", "city": "Oslo"}]}
    first = await page(client, "db:///shop/lines?rows=1")
    assert [row["order_id"] for row in (await page(client, first["next"]))["rows"]] == [2]
    for key, meaning in {"a~2Fb": "slash", "c~2Cd": "comma", "~7E2F": "escape", "~~": "empty"}.items():
        assert (await page(client, f"db:///shop/codes/{key}"))["meaning"] == meaning
    assert (await page(client, "db:///shop/codes/%E6%A4%9C%E7%B4%A2%20%25%3F%23"))["meaning"] == "text"
    names = [row["name"] for row in (await page(client, "db:///shop/query/by_city?city=Oslo"))["rows"]]
    assert names == ["Bo", "Cy"]
    schema = await page(client, "db:///shop/schema")
    assert schema["tables"]["lines"]["key"] == ["order_id", "line"]
    assert "password" not in json.dumps(schema)
    for path in ("hidden", "hidden/1", "customers/01", "customers/9", "customers/x", "customers/1,1", "codes/none"):
        with pytest.raises(MCPError) as refused:
            await page(client, f"db:///shop/{path}")
        assert refused.value.error.code in {-32002, -32602}, path
        assert "not found" in refused.value.error.message, path
    for path, name in {"customers?rows=0": "rows", "lines?after=x": "after", "query/by_city": "city"}.items():
        with pytest.raises(MCPError, match=name):
            await page(client, f"db:///shop/{path}")


async def watches(client: Client, mode: str, commit: Commit, changed: "asyncio.Queue[str]") -> None:
    watched = [f"db:///shop/{path}" for path in ("customers/1", "customers/2", "codes", "query/by_city?city=Oslo")]

    async def both(next: Callable[[], Awaitable[str]]) -> None:
        for uri in watched:
            await page(client, uri)
        commit("UPDATE customers SET name = 'Bea' WHERE id = 2; UPDATE customers SET password = 'x' WHERE id = 1")
        assert {await next(), await next()} == {watched[1], watched[3]}
        assert (await page(client, watched[1]))["name"] == "Bea"
        commit("DELETE FROM codes WHERE code = ''")
        assert await next() == watched[2]

    if mode == MODERN:
        async with client.listen(resource_subscriptions=watched) as events:

            async def event() -> str:
                heard = await anext(aiter(events))
                assert isinstance(heard, ResourceUpdated)
                return heard.uri

            await both(event)
    else:
        for uri in watched:
            await client.subscribe_resource(uri)
        await both(changed.get)


def test_no_planted_secret_leaves(program: Path, tmp_path: Path, shop: tuple[str, Commit]) -> None:
    """S-20: no password is in an answer, the log, the metrics or the audit log, and no SQL of a client is run."""
    url, _ = shop
    os.environ["PLANTED_URL"] = url
    file = config(tmp_path, {"env": "PLANTED_URL"}, guard={"audit": "audit.jsonl", "http": {"metrics": "/metrics"}})
    log = tmp_path / "log"
    paths = [
        "",
        "shop/schema",
        "shop/customers",
        "shop/customers/1",
        "shop/customers/1'--",
        "shop/hidden",
        "shop/lines?after=';",
        "shop/query/by_city?city=';DROP TABLE customers;--",
        "shop/query/by_city",
        "other/schema",
        "shop/customers/password",
    ]
    with listening(program, file, log) as served:
        heard = [post(served, "resources/list", {})]
        heard += [post(served, "resources/read", {"uri": f"db:///{path.replace(' ', '%20')}"}) for path in paths]
        heard.append(post(served, "resources/read", {"uri": "db:///shop/customers/1"}))
    assert "Ada" in heard[-1]
    for text in (*heard, (tmp_path / "audit.jsonl").read_text("utf-8"), log.read_text("utf-8")):
        assert PLANTED not in text


@NEEDS_POSTGRES
def test_postgres_types(program: Path, tmp_path: Path, server: Postgres) -> None:
    """S-20: whole numbers are exact, JSON is JSON, bytes are marked, and all else is the database's text."""
    server.run(
        """DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TYPE mood AS ENUM ('glad');
        CREATE TABLE kinds (id uuid PRIMARY KEY, big bigint, small smallint, yes boolean, num numeric(30, 2), d date,
          t timestamp, j jsonb, b bytea, f real, nan float8, a int[], m mood, v varchar(3), n text);
        INSERT INTO kinds VALUES ('00000000-0000-0000-0000-00000000000a', 9223372036854775807, -1, true,
          12345678901234567890.10, '2026-01-02', '2026-01-02 03:04:05.6', '{"a": [1, null]}', '\\x000102', 0.1,
          'NaN', '{1,2}', 'glad', 'abc', NULL);
        CREATE TABLE days (day date, n varchar(3), PRIMARY KEY (day, n)); INSERT INTO days VALUES ('2026-01-02', 'abc');
        CREATE SCHEMA sales; CREATE TABLE sales.orders (id int PRIMARY KEY); INSERT INTO sales.orders VALUES (1);"""
    )
    views = {
        "since": "SELECT day, n FROM days WHERE day >= :day AND n <> :n ORDER BY day",
        "odd": "SELECT '::x' AS a, $$:y$$ AS b, '{}'::json AS c",
    }
    file = tmp_path / "resources.json"
    shop = {"url": server.url, "tables": ["kinds", "days", "sales.orders"], "views": views}
    file.write_text(json.dumps({"providers": [{"db": {"databases": {"shop": shop}}}]}), "utf-8")
    with running([str(program), "serve", "--config", str(file)]) as served:

        def ask(path: str) -> Any:
            answer = served.ask(path, "resources/read", {"uri": f"db:///shop/{path}"})
            if "error" in answer:
                return answer["error"]
            return json.loads(answer["result"]["contents"][0]["text"])

        row = ask("kinds/00000000-0000-0000-0000-00000000000a")
        assert row == {
            "id": "00000000-0000-0000-0000-00000000000a", "big": 9223372036854775807, "small": -1, "yes": True,
            "num": "12345678901234567890.10", "d": "2026-01-02", "t": "2026-01-02 03:04:05.6", "j": {"a": [1, None]},
            "b": {"base64": "AAEC"}, "f": 0.1, "nan": "NaN", "a": "{1,2}", "m": "glad", "v": "abc", "n": None,
        }  # fmt: skip
        assert ask("days/2026-01-02,abc") == {"day": "2026-01-02", "n": "abc"}
        assert ask("sales.orders/1") == {"id": 1}
        for path in (
            "days/2026-1-2,abc", "days/2026-01-02,abcd", "days/never,abc", "kinds/x", "orders/1",
            "kinds/~", "days/~,abc", "days/2026-01-02,~x616263", "days/2026-01-02,~u616263",
        ):  # fmt: skip
            assert "not found" in ask(path)["message"], path
        for after in ("never,abc", "~,abc", "2026-01-02,~", "2026-01-02,~x00"):
            assert "after" in ask(f"days?after={after}")["message"], after
        assert ask("query/since?day=2026-01-01&n=x") == {"rows": [{"day": "2026-01-02", "n": "abc"}]}
        assert "day" in ask("query/since?day=never&n=x")["message"]
        assert ask("query/odd") == {"rows": [{"a": "::x", "b": ":y", "c": {}}]}
        columns = ask("schema")["tables"]["kinds"]["columns"]
        assert columns[1] == {"name": "big", "type": "bigint", "nullable": True}


WRITES = [
    "INSERT INTO t VALUES (2) RETURNING id",
    "DELETE FROM t RETURNING id",
    "WITH x AS (DELETE FROM t RETURNING id) SELECT * FROM x",
    "SELECT id INTO u FROM t",
    "SELECT 1; DELETE FROM t",
    "CREATE TABLE u (a int)",
    "COPY t TO '/tmp/mcp-never'",
    "VACUUM",
    "LISTEN x",
    "DO $$ BEGIN DELETE FROM t; END $$",
    "SELECT 1) AS v; DELETE FROM t; --",
    "EXPLAIN DELETE FROM t",
]
RUN_WRITES = [
    "SELECT wipe() AS n",
    "SELECT nextval('s') AS n",
    "SELECT id FROM t FOR UPDATE",
    "SELECT set_config('transaction_read_only', 'off', false) AS a, wipe() AS n",
]


@NEEDS_POSTGRES
def test_postgres_writes_nothing(program: Path, tmp_path: Path, server: Postgres) -> None:
    """S-20: a statement that is no SELECT does not start, and a function that writes fails as it runs."""
    server.run(
        """DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE t (id int PRIMARY KEY);
        INSERT INTO t VALUES (1); CREATE SEQUENCE s; CREATE TABLE keyless (a int);
        CREATE FUNCTION wipe() RETURNS int LANGUAGE plpgsql AS $$ BEGIN DELETE FROM t; RETURN 1; END $$"""
    )

    def serve(shop: dict[str, object]) -> "subprocess.CompletedProcess[str]":
        file = tmp_path / "resources.json"
        declared = {"db": {"databases": {"shop": {"url": server.url} | shop}}}
        file.write_text(json.dumps({"providers": [declared]}), "utf-8")
        command = [program, "read", "db:///shop/query/v", "--", program, "serve", "--config", file]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    for sql in WRITES:
        done = serve({"views": {"v": sql}})
        assert done.returncode != 0
        assert 'the view "v"' in done.stderr, (sql, done.stderr)
    for sql in RUN_WRITES:
        done = serve({"views": {"v": sql}})
        assert done.returncode != 0, sql
        assert "read-only" in done.stderr or "read-write mode" in done.stderr, (sql, done.stderr)
    assert serve({"views": {"v": "SELECT count(*) AS n FROM t"}}).stdout == '{"rows":[{"n":1}]}'
    # Before version 16 this is allowed in a READ ONLY transaction: it is rolled back.
    serve({"views": {"v": "SELECT lo_create(0) AS n"}})
    server.run("DO $$ BEGIN ASSERT (SELECT count(*) FROM pg_largeobject_metadata) = 0; END $$")
    assert "has no primary key" in serve({"tables": ["keyless"]}).stderr
    assert 'did you mean "keyless"' in serve({"tables": ["keylss"]}).stderr
    assert "it has keyless, t" in serve({}).stderr
    assert PLANTED not in serve({}).stderr


@NEEDS_POSTGRES
def test_postgres_denies_columns(program: Path, tmp_path: Path, server: Postgres) -> None:
    """S-20: a denied column is in no table and no view, however its table is named; a misspelled one is an error."""
    server.run(
        """DROP SCHEMA public CASCADE; CREATE SCHEMA public; DROP SCHEMA IF EXISTS sales CASCADE; CREATE SCHEMA sales;
        CREATE TABLE people (id int PRIMARY KEY, name text, pin text); INSERT INTO people VALUES (1, 'Ada', 'canary');
        CREATE TABLE sales.orders (id int PRIMARY KEY, pin text); INSERT INTO sales.orders VALUES (1, 'canary')"""
    )

    def read(uri: str, **shop: object) -> str:
        file = tmp_path / "resources.json"
        declared = {"db": {"databases": {"shop": {"url": server.url} | shop}}}
        file.write_text(json.dumps({"providers": [declared]}), "utf-8")
        command = [program, "read", uri, "--", program, "serve", "--config", file]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return done.stdout + done.stderr

    for denied in ("pin", "people.pin", "public.people.pin", "PIN"):
        row = read("db:///shop/people/1", tables=["people"], columns_deny=[denied])
        assert row == '{"id":1,"name":"Ada"}', denied
    for denied in ("pin", "orders.pin", "sales.orders.pin"):
        assert read("db:///shop/sales.orders/1", tables=["sales.orders"], columns_deny=[denied]) == '{"id":1}'
        for select in (
            "pin AS a FROM",
            "* FROM",
            "upper(pin) AS a FROM",
            "id FROM sales.orders ORDER BY pin) UNION (SELECT id FROM",
        ):
            said = read("db:///shop/query/v", views={"v": f"(SELECT {select} sales.orders)"}, columns_deny=[denied])
            assert "denied" in said, (denied, select, said)
            assert "canary" not in said
    said = read("db:///shop/people/1", tables=["people"], columns_deny=["people.pim"])
    assert 'did you mean "people.pin"?' in said
    said = read("db:///shop/query/v", views={"v": "SELECT id FROM people WHERE id = $1"})
    assert "a parameter that is not written as :name" in said
    assert 'did you mean "sales.orders"?' in read("db:///shop/orders", tables=["orders"])


@NEEDS_POSTGRES
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            (PASSWORD, "other-canary"),
            'password authentication failed for user "shop"; write the right user and password',
        ),
        (("/postgres", "/nothing"), 'database "nothing" does not exist; write the name of a database'),
        (("/postgres", ""), 'database "shop" does not exist; write the name of a database'),
    ],
)
def test_postgres_refuses_at_once(
    program: Path, tmp_path: Path, server: Postgres, change: tuple[str, str], said: str
) -> None:
    """S-20: what the server refuses for good is an error at the start, without the password."""
    url = server.url.replace(*change) if change[0] == PASSWORD else server.url.removesuffix(change[0]) + change[1]
    command = [program, "serve", f"db:shop={url},customers"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert said in done.stderr
    assert "canary" not in done.stderr


@NEEDS_POSTGRES
def test_large_rows_are_taken_one_at_a_time(program: Path, tmp_path: Path, server: Postgres) -> None:
    """S-20: a page of large rows is cut without all of them in memory."""
    server.run(
        """DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE large (id int PRIMARY KEY, x text);
        INSERT INTO large SELECT i, repeat('x', 10000000) FROM generate_series(1, 40) i"""
    )
    with running([str(program), "serve", f"db:shop={server.url},large"]) as served:
        answer = served.ask(1, "resources/read", {"uri": "db:///shop/large"})
        page = json.loads(answer["result"]["contents"][0]["text"])
        assert [row["id"] for row in page["rows"]] == [1]
        assert page["next"] == "db:///shop/large?after=1"
        status = Path(f"/proc/{served.process.pid}/status").read_text("utf-8")
        peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        assert peak < 200_000, f"{peak} kB"


@NEEDS_POSTGRES
@pytest.mark.parametrize("way", ["cancelled", "timed out"])
def test_postgres_ends_what_nobody_waits_for(program: Path, tmp_path: Path, server: Postgres, way: str) -> None:
    """S-32: a query that its client has cancelled, or that runs out of time, ends on the server soon."""
    server.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    server.run(SCHEMA)
    slow = {"slow": "SELECT id, pg_sleep(1000)::text AS slept FROM customers WHERE city = :city"}
    file = config(tmp_path, server.url, guard={"limits": {"read_timeout": 500}} if way == "timed out" else {})
    declared = json.loads(file.read_text("utf-8"))
    declared["providers"][0]["db"]["databases"]["shop"]["views"] = slow
    file.write_text(json.dumps(declared), "utf-8")

    def running_queries() -> int:
        own = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND state = 'active'"
        return int(server.value(f"{own} AND pid <> pg_backend_pid()"))

    with running([str(program), "serve", "--config", str(file)]) as served:
        served.modern(1, "resources/read", {"uri": "db:///shop/query/slow?city=Oslo"})
        if way == "cancelled":
            assert eventually(lambda: running_queries() == 1)
            served.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        else:
            assert served.response(1)["error"]["code"] == -31008
        # The server's own limit is ten seconds.
        assert eventually(lambda: running_queries() == 0, 5)


@NEEDS_POSTGRES
def test_postgres_comes_back(program: Path, tmp_path: Path) -> None:
    """S-20: reads fail while the server is down, without its text; afterwards all that is watched is marked."""
    with postgres() as server:
        server.run(SCHEMA)
        file = config(tmp_path, server.url)
        triggers(program, file, server.run)
        with running([str(program), "serve", "--config", str(file)]) as served:
            uri = "db:///shop/customers/1"
            assert "result" in served.ask(1, "resources/read", {"uri": uri})
            served.modern(2, "subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}})
            assert (served.next() or {})["method"] == "notifications/subscriptions/acknowledged"
            server.run("UPDATE customers SET name = 'Eve' WHERE id = 1")
            assert (served.next() or {})["params"]["uri"] == uri
            server.stop()
            failed = served.ask(3, "resources/read", {"uri": uri})["error"]
            assert failed["code"] == -32603
            assert str(server.port) not in json.dumps(failed)
            server.start()
            told = served.next()
            assert told is not None
            assert told["params"]["uri"] == uri
            assert eventually(lambda: "result" in served.ask(4, "resources/read", {"uri": uri}))
        assert PLANTED.encode() not in served.errors
        assert b"cannot be connected to" in served.errors


def test_the_database_is_closed_with_the_last_watcher(program: Path, tmp_path: Path) -> None:
    """S-20: the database is open while a row is watched, and no longer; it is not opened for the lists."""
    file = tmp_path / "shop.db"
    with sqlite3.connect(file) as connection:
        connection.executescript(SCHEMA)
    with running([str(program), "serve", f"db:{file.stem}=sqlite:{file},customers"]) as server:
        for round in range(2):
            wanted = {"resourceSubscriptions": ["db:///shop/customers/1"], "resourcesListChanged": True}
            server.modern(round, "subscriptions/listen", {"notifications": wanted})
            assert eventually(lambda: f"{file}" in open_files(server.process.pid))
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": round}})
            assert eventually(lambda: f"{file}" not in open_files(server.process.pid))


def open_files(process: int) -> list[str]:
    links = Path(f"/proc/{process}/fd")
    return [os.readlink(link) for link in links.iterdir() if link.is_symlink()]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["db:shop.db"], "has a URL that is neither sqlite:PATH nor postgres:"),
        (["db:"], "names no database; write db:NAME=sqlite:PATH,TABLE"),
        (["db:sqlite:shop.db"], "nothing of it is served; name tables: `tables: [NAME]`, or db:NAME=URL,TABLE"),
        (["db:sqlite:none.db,customers"], "none.db does not exist"),
        (["db:shop=sqlite:shop.db,customer"], 'the table "customer" does not exist; did you mean "customers"?'),
        (["db:a=sqlite:shop.db,lines", "db:a=sqlite:shop.db,codes"], 'two databases have the name "a"'),
        (["db:a=postgres://me:hunter2-canary@h:x/y,t"], "write `@`, `/`, `:` and `%` in a password as %40"),
        (
            ["db:a=postgres://me:hunter2-canary@h/y?sslmode=verify-ca,t"],
            "has sslmode=verify-ca without a file of authorities",
        ),
    ],
)
def test_what_cannot_be_served_is_said_at_once(program: Path, tmp_path: Path, words: list[str], said: str) -> None:
    """S-20: with the fix, without the URL, and though stdin is open."""
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.executescript(SCHEMA)
    error = refused_at_start(program, *words, at=tmp_path)
    assert said in error
    assert PLANTED not in error


def test_what_python_gives_wrong_is_named(tmp_path: Path) -> None:
    """S-20: the options have types, and wrong ones say what would be right, without a password."""
    file = tmp_path / "shop.db"
    with sqlite3.connect(file) as connection:
        connection.executescript(SCHEMA)
    url = f"sqlite:{file}"
    assert repr(providers.db({"shop": {"url": url, "tables": "customers"}})) == "<provider db>"
    with pytest.raises(TypeError, match="tabels"):
        providers.db({"shop": {"url": url, "tabels": ["customers"]}})  # type: ignore[typeddict-unknown-key]
    with pytest.raises(ValueError, match='did you mean "customers"'):
        providers.db({"shop": {"url": url, "tables": ["customer"]}})
    with pytest.raises(ValueError, match="rows is 0, expected a whole number from 1 to 1000"):
        providers.db({"shop": {"url": url, "tables": ["customers"], "rows": 0}})
    with pytest.raises(ValueError, match="not set"):
        providers.db({"shop": {"url": {"env": "NEVER_SET"}}})
    with pytest.raises(ValueError, match='sslmode is "tls", expected disable, allow, prefer, require, verify-ca or'):
        providers.db({"shop": {"url": url, "sslmode": "tls"}})  # type: ignore[typeddict-item]
    remote = f"postgres://me:{PLANTED}@127.0.0.1:1/x"
    with pytest.raises(ValueError, match=r"sslrootcert .*none\.pem: expected certificates in PEM"):
        providers.db({"shop": {"url": remote, "sslmode": "require", "sslrootcert": tmp_path / "none.pem"}})
    for wrong in ({"url": 5}, {"url": url, "password": [PLANTED]}, {"url": f"mysql://{PLANTED}"}):
        with pytest.raises(ValueError, match="db: ") as refused:
            providers.db({"shop": wrong})  # type: ignore[dict-item]
        assert PLANTED not in str(refused.value)
