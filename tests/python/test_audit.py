"""Audit records and counters of requests (S-18, S-19, R-208, R-215)."""

import asyncio
import http.client
import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema  # type: ignore[import-untyped]
import pytest
from asgi_call import Call
from mcp_resources import (
    AccessDeniedError,
    Auth,
    Context,
    InvalidTokenError,
    RegistrationError,
    Resource,
    ResourceNotFoundError,
    ResourceServer,
    Verified,
)
from mcp_resources.testing import Client, ServerError
from prometheus_client.parser import text_string_to_metric_families
from test_http import post, serving
from vectors import ROOT

FIXTURES = ROOT / "tests" / "fixtures" / "audit"
CASES: list[dict[str, Any]] = json.loads((FIXTURES / "cases.json").read_text("utf-8"))
SCHEMA = json.loads((FIXTURES / "line.schema.json").read_text("utf-8"))
VOLATILE = {"time", "timestamp", "address", "connection", "bytes", "duration", "principal"}

Audit = Callable[[dict[str, Any]], object] | str | os.PathLike[str]


def audited(audit: Audit, **options: Any) -> ResourceServer:
    """The server of the cases: see `tests/fixtures/README.md`."""
    server = ResourceServer("test", audit=audit, **options)
    server.add_resource(Resource("audit://text"), text="secret contents")

    @server.resource("audit://item/{id}")
    async def item(id: str) -> str:
        if id == "missing":
            raise ResourceNotFoundError()
        if id == "secret":
            raise AccessDeniedError()
        if id == "broken":
            raise ValueError("secret reason")
        return "secret contents"

    @item.complete("id")
    def ids(value: str) -> list[str]:
        return ["7"]

    return server


def checked(lines: str) -> list[dict[str, Any]]:
    entries = [json.loads(line) for line in lines.splitlines()]
    for entry in entries:
        jsonschema.validate(entry, SCHEMA)
    return entries


async def ask(server: ResourceServer, case: dict[str, Any]) -> None:
    async with Client(server, revision=case.get("revision", "2026-07-28")) as client:
        with suppress(ServerError):
            await client.request(case["request"], case["params"], meta=case.get("meta"))


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
async def test_the_same_entry_in_a_file_and_a_function(case: dict[str, Any], tmp_path: Path) -> None:
    """S-19, R-215: the fixture that every language runs."""
    path, seen = tmp_path / "audit.jsonl", list[dict[str, Any]]()
    for audit in (path, seen.append):
        server = audited(audit)
        await ask(server, case)
        end = time.monotonic() + 20
        while case["entry"]["method"] not in (path.read_text("utf-8") if audit is path else str(seen)):
            assert time.monotonic() < end, "nothing is recorded"
            server.flush_audit()  # it waits a second at most
        server.flush_audit()
    text = path.read_text("utf-8")
    assert "secret contents" not in text
    assert "secret reason" not in text
    for entries in (checked(text), seen):
        kept = [entry for entry in entries if entry["method"] not in ("initialize", "server/discover")]
        assert [{key: value for key, value in entry.items() if key not in VOLATILE} for entry in kept] == [
            case["entry"]
        ]


async def test_a_file_is_appended_to_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    for _ in range(2):
        server = audited(str(path))
        await ask(server, CASES[0])
        server.flush_audit()
    lines = checked(path.read_text("utf-8"))
    assert [entry["method"] for entry in lines].count("resources/read") == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_where_records_cannot_go(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        audited(tmp_path / "none" / "audit.jsonl")
    with pytest.raises(TypeError, match="audit is 7, expected a path or a function"):
        audited(7)  # type: ignore[arg-type]


async def test_a_function_that_fails_or_is_slow_holds_nobody_up(caplog: pytest.LogCaptureFixture) -> None:
    """S-19: what it misses is counted, and told in its place."""
    going, seen = threading.Event(), list[dict[str, Any]]()

    def slow(entry: dict[str, Any]) -> None:
        going.wait(20)
        seen.append(entry)
        if len(seen) == 1:
            raise ValueError("the disk is full")

    server = audited(slow, limits={"audit_queue": 5}, metrics=True)
    async with Client(server) as client:
        for _ in range(50):
            await client.read("audit://text")
        going.set()
        server.flush_audit()
    dropped = sum(entry.get("dropped", 0) for entry in seen)
    assert dropped > 0
    assert len([entry for entry in seen if "dropped" not in entry]) + dropped >= 50
    assert "the audit function failed, so a record may be lost" in caplog.text
    assert sample(server, "mcp_resources_audit_dropped_total") == dropped


def test_nothing_is_lost_when_a_program_ends(tmp_path: Path) -> None:
    """Neither from a file nor from a function, without a word at the end."""
    program = f"""
import asyncio
from mcp_resources import Resource, ResourceServer
from mcp_resources.testing import Client

async def main() -> None:
    for audit in ({str(tmp_path / "audit.jsonl")!r}, lambda entry: print(entry["method"], flush=True)):
        server = ResourceServer("test", audit=audit)
        server.add_resource(Resource("a://b"), text="c")
        async with Client(server) as client:
            for _ in range(100):
                await client.read("a://b")
        kept.append(server)

kept = []
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.count("resources/read") == 100, done.stderr
    assert (tmp_path / "audit.jsonl").read_text().count("resources/read") == 100


async def test_the_trace_of_a_request(server: ResourceServer) -> None:
    """R-022: what is well-formed, and nothing else."""
    seen: list[dict[str, str]] = []

    @server.resource("a://b")
    async def handler(ctx: Context) -> str:
        seen.append(ctx.trace)
        return ""

    good = {
        "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "tracestate": "rojo=00f067aa0ba902b7",
        "baggage": "userId=alice",
    }
    async with Client(server) as client:
        for meta in (good, {**good, "traceparent": "00-0-0-01"}, {}):
            await client.request("read", {"uri": "a://b"}, meta=meta)
    assert seen == [good, {"baggage": "userId=alice"}, {}]


def sample(server: ResourceServer, name: str, **labels: str) -> float:
    text = server.metrics_text()
    assert text is not None
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    (found,) = (sample.value for sample in samples if sample.name == name and labels.items() <= sample.labels.items())
    return float(found)


async def test_metrics_are_what_prometheus_reads() -> None:
    """S-19: counters by method, era and kind; no label is a client's text."""
    server = audited(lambda entry: None, metrics=True)
    for case in CASES:
        await ask(server, case)
    text = server.metrics_text()
    assert text is not None
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["mcp_resources_requests"].type == "counter"
    assert families["mcp_server_operation_duration_seconds"].type == "histogram"
    assert families["mcp_resources_connections"].type == "gauge"
    assert "audit://" not in text
    reads = [case for case in CASES if case["request"] == "resources/read"]
    modern = [case for case in reads if "revision" not in case]
    requests = {"method": "resources/read", "era": "modern"}
    assert sample(server, "mcp_resources_requests_total", **requests) == len(modern)
    assert sample(server, "mcp_resources_errors_total", kind="hidden") == 1
    assert sample(server, "mcp_resources_errors_total", kind="rate_limited") == 0
    name = "mcp_server_operation_duration_seconds"
    for part in ("_count", "_bucket"):
        labels = {"mcp_method_name": "resources/read"} | ({"le": "+Inf"} if part == "_bucket" else {})
        assert sample(server, name + part, **labels) == len(reads)
    buckets = [s.value for s in families[name].samples if s.name == f"{name}_bucket"]
    assert len(buckets) == 15 * len({s.labels["mcp_method_name"] for s in families[name].samples})


def test_nothing_is_counted_unless_it_is_wanted(server: ResourceServer) -> None:
    server.add_resource(Resource("a://b"), text="c")
    assert server.metrics_text() is None


async def get(url: str, path: str, **headers: str) -> tuple[int, str, str]:
    def fetch() -> tuple[int, str, str]:
        at = urlsplit(url)
        connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=30)
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, response.getheader("content-type", ""), response.read().decode()
        finally:
            connection.close()

    return await asyncio.to_thread(fetch)


async def test_metrics_over_http(server: ResourceServer) -> None:
    """A switch of its own, off by default; `Host` and `Origin` as for the endpoint (R-156, R-157)."""
    server.add_resource(Resource("a://b"), text="c")
    async with serving(server) as url:
        assert (await get(url, "/metrics"))[0] == 404
    async with serving(server, metrics=True) as url:
        await asyncio.to_thread(post, url, "resources/read", uri="a://b")
        status, content_type, text = await get(url, "/metrics")
        assert (status, content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
        names = {family.name for family in text_string_to_metric_families(text)}
        assert {"mcp_resources_requests", "mcp_resources_connections"} <= names
        assert (await get(url, "/metrics", Host="evil.example"))[0] == 403
        assert (await get(url, "/metrics", Origin="https://evil.example"))[0] == 403
    async with serving(server, metrics="/internal/metrics") as url:
        assert (await get(url, "/metrics"))[0] == 404
        assert (await get(url, "/internal/metrics"))[0] == 200


async def test_metrics_ask_for_the_token_of_the_endpoint(server: ResourceServer) -> None:
    """R-201."""

    async def verify(token: str) -> Verified:
        if token != "good":
            raise InvalidTokenError
        return Verified("alice")

    auth = Auth("http://localhost/mcp", ["https://login.example"], verify=verify)
    async with serving(server, metrics=True, auth=auth) as url:
        assert (await get(url, "/metrics"))[0] == 401
        assert (await get(url, "/metrics", Authorization="Bearer bad"))[0] == 401
        assert (await get(url, "/metrics", Authorization="Bearer good"))[0] == 200


async def test_metrics_of_an_asgi_application(server: ResourceServer) -> None:
    app = server.asgi(metrics=True)
    call = Call(app, "GET", "/metrics", [(b"host", b"localhost")], b"")
    await call.until(lambda: call.done)
    assert call.status == 200
    with pytest.raises(RegistrationError, match="metrics"):
        server.asgi(metrics="/mcp")


async def test_the_principal_is_recorded_and_no_token() -> None:
    """S-19, R-208."""
    seen: list[dict[str, Any]] = []

    async def verify(token: str) -> Verified:
        return Verified("alice\r\nx")

    server = audited(seen.append)
    auth = Auth("http://localhost/mcp", ["https://login.example"], verify=verify)
    async with serving(server, auth=auth) as url:
        await asyncio.to_thread(post, url, "resources/read", "s3cret-token", uri="audit://text")
        server.flush_audit()
    assert [entry["principal"] for entry in seen] == ["alice\r\nx"]
    assert "s3cret-token" not in json.dumps(seen)
