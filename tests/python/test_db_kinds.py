"""Tables of every kind: whole tables, page by page and row by row, against sqlite3 and psql."""

import asyncio
import base64
import json
import math
import os
import random
import sqlite3
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from mcp_resources import ResourceServer, providers
from mcp_resources.testing import Client
from postgres import ABSENT, Postgres, binaries, postgres
from process import running

CASES = int(os.environ.get("MCP_RESOURCES_TABLES", "40"))
"""How many random tables of SQLite are compared."""
HAS_POSTGRES = binaries() is not None
NEEDS_POSTGRES = pytest.mark.skipif(not HAS_POSTGRES, reason=ABSENT)
NAMES = ["t", "T U", 'a"b', "Odd.Table", "x~2Fy", "50%", "a,b", "日本🎌", "rowid", "order", "c/d", "[x]", "it's", "..x"]
KINDS = ["", "INTEGER", "INT", "TEXT", "BLOB", "REAL", "NUMERIC", "VARCHAR(9)", "DATETIME", "TEXT COLLATE NOCASE"]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


def spelled(table: str) -> str:
    """The table in a URI: what a segment cannot have is escaped with a tilde, the rest percent-encoded."""
    escaped = table.replace("~2F", "~7E2F").replace("/", "~2F")
    return quote(escaped, safe="~,'")


async def contents(client: Client, uri: str) -> Any:
    return json.loads(await client.read_text(uri))


async def whole(client: Client, uri: str, rows: int) -> tuple[list[Any], list[str]]:
    """All rows of a table by its pages, and the keys in their `next`."""
    all_rows, keys = [], []
    page = f"{uri}?rows={rows}"
    for _ in range(10_000):
        read = await contents(client, page)
        assert len(read["rows"]) <= rows
        all_rows += read["rows"]
        if "next" not in read:
            return all_rows, keys
        page = read["next"]
        keys.append(unquote(page.partition("after=")[2].partition("&")[0]))
    raise AssertionError("the pages have no end")


def db(**database: object) -> ResourceServer:
    server = ResourceServer("x")
    server.mount(providers.db({"shop": database}))
    return server


def random_value(chance: random.Random) -> object:
    return chance.choice(
        [
            lambda: None,
            lambda: chance.randint(-3, 3),
            lambda: chance.choice([2**53 + 1, 2**63 - 1, -(2**63), 10**15]),
            lambda: chance.choice([0.5, -1.5, 1e300, 3.0, math.inf, -math.inf, 1e-9]),
            lambda: chance.choice(
                ["", "a", "A", "b ", "3", "03", "3.0", "~", "~~", "~2F", "a/b", "c,d", "..", "C:", "%41"]
            ),
            lambda: chance.choice(["検索 🎌", "a\nb", "\t", "e\u0301", "\x7f", "inf", "NaN", "1e300", "~t3", "x:y"]),
            lambda: chance.choice([b"", b"\x00", b"a", b"\xff\xfe"]),
        ]
    )()


def random_table(chance: random.Random, file: sqlite3.Connection, name: str) -> None:
    """Makes a table with a random key and random rows; what breaks a rule of the table is not in it."""
    quoted = '"' + name.replace('"', '""') + '"'
    names = chance.sample(["id", "K", "rowid", "oid", "v w", 'q"', "select", "é"], chance.randint(1, 4))
    columns = ['"' + column.replace('"', '""') + '"' for column in names]
    declared = [f"{column} {chance.choice(KINDS)}" for column in columns]
    key = chance.choice(["none", "none", "rowid", "desc", "one", "one", "many", "many", "without"])
    end = ""
    if key == "rowid":
        declared[0] = f"{columns[0]} INTEGER PRIMARY KEY"
    elif key == "desc":
        declared[0] = f"{columns[0]} INTEGER PRIMARY KEY DESC"
    elif key == "one":
        declared[0] += f" PRIMARY KEY {chance.choice(['', 'DESC'])}"
    elif key != "none":
        declared.append(f"PRIMARY KEY ({', '.join(chance.sample(columns, chance.randint(1, len(columns))))})")
        end = "WITHOUT ROWID" if key == "without" else ""
    if chance.random() < 0.3:
        declared.insert(0, '"twice" AS (1 + 1)')
    file.execute(f"CREATE TABLE {quoted} ({', '.join(declared)}) {end}")
    for _ in range(chance.randint(0, 25)):
        values = [random_value(chance) for _ in columns]
        marks = ", ".join("?" for _ in columns)
        try:
            file.execute(f"INSERT INTO {quoted} ({', '.join(columns)}) VALUES ({marks})", values)
            if chance.random() < 0.05:
                file.execute(f"INSERT INTO {quoted} ({columns[-1]}) VALUES (CAST(x'4DFC' AS TEXT))")
        except sqlite3.Error:
            continue


def as_json(kind: bytes, value: Any) -> object:
    if kind == b"text":
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if kind == b"blob":
        return {"base64": base64.b64encode(value or b"").decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def known_rows(file: sqlite3.Connection, name: str) -> list[dict[str, object]]:
    quoted = '"' + name.replace('"', '""') + '"'
    columns = [row[1].decode() for row in file.execute(f"PRAGMA table_xinfo({quoted})")]
    parts = ", ".join(f"typeof({c}), {c}" for c in ('r."' + column.replace('"', '""') + '"' for column in columns))
    rows = file.execute(f"SELECT {parts} FROM {quoted} AS r").fetchall()
    return [{c: as_json(row[2 * at], row[2 * at + 1]) for at, c in enumerate(columns)} for row in rows]


def sorted_rows(rows: list[Any]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


async def compare_table(client: Client, table: str, expected: list[dict[str, object]], many: int) -> None:
    """Reads all pages, in two sizes, and each row whose key has no NULL."""
    uri = f"db:///shop/{spelled(table)}"
    found, keys = await whole(client, uri, 1)
    assert sorted_rows(found) == sorted_rows(expected)
    for row, key in zip(found, keys, strict=False):
        if "~" not in key.split(","):
            assert await contents(client, f"{uri}/{quote(key, safe='~,')}") == row, key
    assert sorted_rows((await whole(client, uri, many))[0]) == sorted_rows(expected)


def has_key(path: Path, table: str) -> bool:
    """Whether a table can be served: one whose columns have all names of the rowid needs a primary key."""
    try:
        providers.db({"shop": {"url": f"sqlite:{path}", "tables": [table]}})
    except ValueError as error:
        if "has no key" not in str(error):
            raise
        return False
    return True


def test_random_tables_of_sqlite(tmp_path: Path) -> None:
    """S-20: the pages of a table have each row once, whatever its names, types and keys are; keys read their rows."""

    async def compare(seed: int) -> None:
        chance = random.Random(seed)
        path = tmp_path / f"{seed}.db"
        names = chance.sample(NAMES, 3)
        with sqlite3.connect(path) as file:
            for name in names:
                random_table(chance, file, name)
        file.text_factory = bytes
        expected = {name: known_rows(file, name) for name in names if has_key(path, name)}
        file.close()
        if not expected:
            return
        async with Client(db(url=f"sqlite:{path}", tables=list(expected))) as client:
            for name, rows in expected.items():
                await compare_table(client, name, rows, chance.randint(2, 7))

    for seed in range(CASES):
        try:
            asyncio.run(compare(seed))
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


TYPES: dict[str, list[str]] = {
    "int": ["1", "-2147483648", "2147483647"],
    "bigint": ["9223372036854775807", "-9223372036854775808", "0"],
    "text": ["''", "'a/b'", "'c,d'", "'~'", "'~2F'", "'検索 🎌 %'", "'x:y'", "E'a\\nb'", "'03'", "'..'"],
    "varchar(9)": ["'a'", "'A'", "' '"],
    "char(5)": ["'ab'", "'c d'"],
    '"char"': ["'a'", "'/'"],
    "name": ["'n'", "'m.'"],
    "numeric": ["'NaN'", "'Infinity'", "'-Infinity'", "1.50", "12345678901234567890.123", "-0.1"],
    "float8": ["'NaN'", "'Infinity'", "'-Infinity'", "0.1", "1e300", "-3"],
    "float4": ["0.1", "'NaN'", "16777216"],
    "bool": ["true", "false"],
    "uuid": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"],
    "date": ["'infinity'", "'-infinity'", "'0044-03-15 BC'", "'2024-02-29'"],
    "timestamp": ["'infinity'", "'0044-03-15 12:00:00 BC'", "'2024-02-29 23:59:59.999999'"],
    "timestamptz": ["'-infinity'", "'2024-02-29 12:00:00+05:30'"],
    "time": ["'24:00:00'", "'00:00:00.5'"],
    "interval": ["'1 year 2 days'", "'-1 hour'"],
    "bytea": ["'\\x'", "'\\x00ff'", "'\\x61'"],
    "inet": ["'10.0.0.0/8'", "'::1'"],
    "cidr": ["'10.0.0.0/8'"],
    "macaddr": ["'08:00:2b:01:02:03'"],
    "money": ["12.34", "-5"],
    "bit(3)": ["B'101'", "B'000'"],
    "varbit": ["B'1'", "B''"],
    "int4range": ["'[1,5)'", "'empty'", "'(,3)'"],
    "int[]": ["'{1,NULL,3}'", "'{}'", "'{{1,2},{3,4}}'"],
    "text[]": ['\'{"a,b","c\\"d"}\''],
    "jsonb": ["'{\"a\": [1.50, null]}'", "'\"x\"'", "'3'"],
    "tsvector": ["'a:1 b:2'"],
    "oid": ["4294967295"],
    "pg_lsn": ["'16/B374D848'"],
    "mood": ["'happy'", "'s a/d'"],
    "positive": ["7"],
    "pair": ["'(1,\"a b\")'"],
}
NO_KEY = {"json": ['\'{"b": 1,  "a": 12345678901234567890}\''], "xml": ["'<a>b</a>'"], "point": ["'(1,2)'"]}


def psql_rows(server: Postgres, reference: str, columns: list[str]) -> list[list[str | None]]:
    """What psql says: the rows in the order of the first column, each value as a text."""
    parts = ", ".join(f'"{column}"::text' for column in columns)
    sql = f'SELECT json_build_array({parts}) FROM {reference} ORDER BY "{columns[0]}"'
    done = subprocess.run(
        ["psql", "-X", "-At", "-d", server.url, "-c", sql], capture_output=True, text=True, check=True, timeout=60
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def same(kind: str, value: Any, text: str | None) -> bool:
    """Whether a value of JSON is what psql writes as a text."""
    if text is None or value is None:
        return value is text
    if kind == "bool":
        return value is (text == "true")
    if kind in ("int", "bigint"):
        return value == int(text)
    if kind in ("float8", "float4"):
        if text in ("NaN", "Infinity", "-Infinity"):
            return bool(value == text)
        narrow = struct.Struct("f")
        return value == float(text) or narrow.pack(value) == narrow.pack(float(text))
    if kind == "bytea":
        return bool(value == {"base64": base64.b64encode(bytes.fromhex(text[2:])).decode()})
    if kind in ("json", "jsonb"):
        return bool(value == json.loads(text))
    return bool(value == text)


@NEEDS_POSTGRES
def test_every_type_of_postgres(server: Postgres) -> None:
    """S-20: a key may have any type; the pages have the rows and the order of psql, and each key reads its row."""
    made, tables = [], {}
    for at, (kind, values) in enumerate(TYPES.items()):
        name = f'T{at} ~2F, 50% 🎌.""'
        quoted = [value if value.endswith("'") else f"'{value}'" for value in values]
        rows = ", ".join(f"({value}::{kind}, {value}::{kind}, {n})" for n, value in enumerate(quoted))
        made.append(f'CREATE TABLE "Odd.Schema"."{name}" (k {kind} PRIMARY KEY, "V v" {kind}, n int)')
        made.append(f'INSERT INTO "Odd.Schema"."{name}" VALUES {rows}')
        tables[f"Odd.Schema.{name.replace(chr(34) * 2, chr(34))}"] = (f'"Odd.Schema"."{name}"', kind)
    for kind, values in NO_KEY.items():
        made.append(f"CREATE TABLE of_{kind} (k int PRIMARY KEY, v {kind}, n int)")
        made.append(
            f"INSERT INTO of_{kind} VALUES {', '.join(f'({n}, {value}, {n})' for n, value in enumerate(values))}"
        )
        tables[f"of_{kind}"] = (f"of_{kind}", kind)
    server.run(
        """DROP SCHEMA public CASCADE; CREATE SCHEMA public; DROP SCHEMA IF EXISTS "Odd.Schema" CASCADE;
        CREATE SCHEMA "Odd.Schema"; CREATE TYPE mood AS ENUM ('happy', 's a/d');
        CREATE DOMAIN positive AS int CHECK (VALUE > 0); CREATE TYPE pair AS (a int, b text);"""
        + "; ".join(made)
    )

    async def main() -> None:
        async with Client(db(url=server.url, tables=list(tables))) as client:
            for table, (reference, kind) in tables.items():
                uri = f"db:///shop/{spelled(table)}"
                first = "k" if table.startswith("of_") else None
                columns = ["k", "v" if first else "V v", "n"]
                expected = psql_rows(server, reference, columns)
                kinds = ["int" if first else kind, kind, "int"]
                for rows in (1, 2):
                    found, keys = await whole(client, uri, rows)
                    assert len(found) == len(expected), (kind, rows, found)
                    for row, texts in zip(found, expected, strict=True):
                        for column, of, text in zip(columns, kinds, texts, strict=True):
                            assert same(of, row[column], text), (kind, column, row, text)
                    for row, key in zip(found[rows - 1 :: rows], keys, strict=False):
                        assert await contents(client, f"{uri}/{quote(key, safe='~,')}") == row, (kind, key)

    asyncio.run(main())


@NEEDS_POSTGRES
def test_inheritance_and_partitions(program: Path, server: Postgres) -> None:
    """S-20: rows of inheriting tables are not their parent's; partitions are their table's, and watched."""
    server.run(
        """DROP SCHEMA public CASCADE; CREATE SCHEMA public; DROP SCHEMA IF EXISTS "a.b" CASCADE; CREATE SCHEMA "a.b";
        CREATE TABLE parent(id int PRIMARY KEY, v text); CREATE TABLE child() INHERITS (parent);
        INSERT INTO parent VALUES (1, 'p1'), (3, 'p3'); INSERT INTO child VALUES (1, 'c1'), (2, 'c2');
        CREATE TABLE "a.b"."p.q" (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
        CREATE TABLE "$$ '\\" PARTITION OF "a.b"."p.q" FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (id);
        CREATE TABLE leaf PARTITION OF "$$ '\\" FOR VALUES FROM (0) TO (5);
        CREATE TABLE other PARTITION OF "a.b"."p.q" FOR VALUES FROM (10) TO (20);
        INSERT INTO "a.b"."p.q" VALUES (1, 'x'), (11, 'y')"""
    )
    tables = ["parent", "a.b.p.q", "leaf"]

    async def reads() -> None:
        async with Client(db(url=server.url, tables=tables)) as client:
            rows, _ = await whole(client, "db:///shop/parent", 1)
            assert rows == [{"id": 1, "v": "p1"}, {"id": 3, "v": "p3"}]
            assert await contents(client, "db:///shop/parent/1") == {"id": 1, "v": "p1"}
            rows, _ = await whole(client, "db:///shop/a.b.p.q", 1)
            assert rows == [{"id": 1, "v": "x"}, {"id": 11, "v": "y"}]

    asyncio.run(reads())
    words = f"db:shop={server.url},{','.join(tables)}"
    sql = subprocess.run([program, "triggers", words], capture_output=True, text=True, check=True).stdout
    server.run(sql)
    server.run(sql)
    with running([str(program), "serve", words]) as served:
        uri = "db:///shop/a.b.p.q"
        assert "result" in served.ask(1, "resources/read", {"uri": uri})
        served.modern(2, "subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}})
        assert (served.next() or {})["method"] == "notifications/subscriptions/acknowledged"
        for write in (
            "INSERT INTO leaf VALUES (2, 'z')",
            "UPDATE other SET v = 'w'",
            "DELETE FROM leaf WHERE id = 1",
            """UPDATE "a.b"."p.q" SET v = 'all'""",
            "TRUNCATE other",
        ):
            server.run(write)
            assert (served.next() or {})["params"]["uri"] == uri, write


@NEEDS_POSTGRES
def test_messages_of_postgres(program: Path, tmp_path: Path, server: Postgres) -> None:
    """S-20: a message says what is wrong: a value of a client's only if there is one, a parameter by its name."""
    server.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE gen AS SELECT 1 AS id")
    views = {
        "zero": "SELECT 10 / (id - 1) AS q FROM gen",
        "by": "SELECT id FROM gen WHERE id = :n",
        "div": "SELECT 1 / (id - :n) AS q FROM gen",
    }
    file = tmp_path / "resources.json"
    declared = {"providers": [{"db": {"databases": {"shop": {"url": server.url, "views": views}}}}]}
    file.write_text(json.dumps(declared), "utf-8")
    for uri, code, said, is_logged in (
        ("zero", -32603, "division by zero", True),
        ("by?n=x", -32602, "n", False),
        ("by?n=99999999999", -32602, "n", False),
        ("div?n=1", -32603, "with the values of a client: division by zero", True),
    ):
        with running([str(program), "serve", "--config", str(file)]) as served:
            error = served.ask(1, "resources/read", {"uri": f"db:///shop/query/{uri}"})["error"]
            assert error["code"] == code, uri
            assert is_logged or said in error["message"], error
        assert not is_logged or said.encode() in served.errors, (uri, served.errors)
        assert (b"client" in served.errors) is uri.startswith("div"), served.errors
    for shop, said in (
        ({"views": {"v": "SELECT id FROM gen WHERE :x IS NULL OR :y = id"}}, "parameter :x; write its type behind it"),
        (
            {"url": f"{server.url}?schema=sales", "tables": ["gen"]},
            'parameter "schema" in its URL: leave it out, and name',
        ),
        (
            {"url": f"{server.url}?sslmode=verify-full&sslrootcert=x", "tables": ["gen"]},
            "sslrootcert x: expected certificates",
        ),
        ({"url": f"{server.url}?pgbouncer=true", "tables": ["gen"]}, 'the parameter "pgbouncer"'),
        ({"url": f"{server.url}?gssencmode=require", "tables": ["gen"]}, "write gssencmode=disable"),
    ):
        with pytest.raises(ValueError, match="db: ") as refused:
            providers.db({"shop": {"url": server.url} | shop})
        assert said in str(refused.value)
        assert "hunter2" not in str(refused.value)
    url = f"{server.url}?client_encoding=utf8&gssencmode=prefer&sslmode=prefer&application_name=x"
    providers.db({"shop": {"url": url, "views": views}})
