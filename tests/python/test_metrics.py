"""Metrics: pushed from Python, measured by the command, read by Prometheus' own parser."""

import asyncio
import json
import math
import os
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from mcp import Client as OfficialClient
from mcp.client.stdio import StdioServerParameters
from mcp_resources import ResourceServer, providers
from mcp_resources.testing import Client, ServerError
from process import eventually, running, thread_names
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from vectors import MODERN

LEGACY = "2025-06-18"
ERAS = pytest.mark.parametrize("era", [MODERN, LEGACY])


def served(metrics: providers.Metrics) -> ResourceServer:
    server = ResourceServer("metrics")
    server.mount(metrics)
    return server


async def series(client: Client, uri: str) -> dict[str, Any]:
    return dict(json.loads(await client.read_text(uri)))


@ERAS
async def test_what_is_pushed_is_read(era: str) -> None:
    """S-05: before, during and after a mount, with a time as a datetime or a number, and what is not a number."""
    metrics = providers.metrics()
    now = datetime.now(UTC)
    metrics.push("a", 1, now - timedelta(seconds=30))
    server = served(metrics)
    async with Client(server, revision=era) as client:
        metrics.push("a", 2.5, now.timestamp() - 20)
        metrics.push("a", math.nan, (now - timedelta(seconds=10)).astimezone(None).replace(tzinfo=None))
        metrics.push("a", math.inf)
        metrics.push("b/c", 1)
        points = (await series(client, "metrics:///a"))["points"]
        assert [point["value"] for point in points] == [1.0, 2.5, None, None]
        times = [datetime.fromisoformat(point["time"]) for point in points]
        assert [round((now - at).total_seconds()) for at in times] == [30, 20, 10, 0]
        items = {item["uri"]: item for item in await client.list_resources()}
        assert set(items) == {"metrics:///", "metrics:///a", "metrics:///b~2Fc"}
        assert items["metrics:///a"]["annotations"]["lastModified"] == points[-1]["time"]
        assert len((await series(client, "metrics:///a?from=-25s&to=-5s"))["points"]) == 2
        with pytest.raises(ServerError, match="parameter step"):
            await client.read("metrics:///a?step=0s")
    server.unmount(metrics)
    metrics.push("a", 3)
    async with Client(served(metrics), revision=era) as client:
        assert (await series(client, "metrics:///a"))["points"][-1]["value"] == 3.0


async def test_prometheus_reads_the_text() -> None:
    """S-05: any name and any value, whole and combined; a spike of one sample is in it."""
    metrics = providers.metrics(points=20)
    name, begin = '2xx-rate/é "quoted" \\', time.time() - 3000
    for at in range(1000):
        metrics.push(name, 1e9 if at == 555 else at % 7, begin + at)
    for at, value in enumerate((math.nan, math.inf, -math.inf, 1e-300, 5)):
        metrics.push("odd_total", value, begin + at)
    async with Client(served(metrics)) as client:
        texts, uris = {}, {}
        for item in await client.list_resources():
            if item["uri"] != "metrics:///":
                result = await client.read(f"{item['uri']}?format=openmetrics")
                assert result[0].mime_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
                uris[item["name"]] = item["uri"]
                texts[item["name"]] = await client.read_text(f"{item['uri']}?format=openmetrics")
        odd = list(text_string_to_metric_families(texts["odd_total"]))
        assert [family.name for family in odd] == ["odd_total"]
        values = [sample.value for sample in odd[0].samples]
        assert math.isnan(values[0])
        assert values[1:] == [math.inf, -math.inf, 1e-300, 5.0]
        combined = {family.name: family for family in text_string_to_metric_families(texts[name])}
        safe = "_2xx_rate____quoted___"
        assert set(combined) == {safe, f"{safe}_min", f"{safe}_max"}
        assert name in combined[safe].documentation
        assert max(sample.value for sample in combined[f"{safe}_max"].samples) == 1e9
        assert len(combined[safe].samples) <= 20
        text = await client.read_text(f"{uris[name]}?format=openmetrics&step=1ms")
        (*_, greatest) = text_string_to_metric_families(text)
        assert len(greatest.samples) == 1000
        assert float(greatest.samples[0].timestamp) == pytest.approx(begin, abs=0.002)


def test_what_cannot_be_pushed_is_named() -> None:
    """S-05: with the value and the fix; series that are too many are counted."""
    metrics = providers.metrics(series=1)
    metrics.push("a", True)
    for arguments, error, said in (
        ((5, 1.0), TypeError, "name is 5, expected a text such as"),
        (("a", "x"), TypeError, "a: the value is 'x', expected a number"),
        (("a", 1.0, "now"), TypeError, "a: the time is 'now', expected a datetime or seconds since 1970"),
        (("a", 1.0, math.nan), ValueError, "years 1 to 9999"),
        (("a", 1.0, 1e300), ValueError, "years 1 to 9999"),
        (("", 1.0), ValueError, "1 to 256 bytes"),
        (("x" * 257, 1.0), ValueError, "1 to 256 bytes"),
        (("b", 1.0), ValueError, "there are 1 series already; raise the option `series`"),
    ):
        with pytest.raises(error, match=said):
            metrics.push(*arguments)  # type: ignore[arg-type]
    assert metrics.refused == 1
    assert repr(metrics) == "<provider metrics>"
    with pytest.raises(TypeError, match='did you mean "samples"'):
        providers.metrics(sample=1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match=r"interval is .1 fortnight."):
        providers.metrics(interval="1 fortnight")
    with pytest.raises(ValueError, match="points is 1, expected a whole number from 2"):
        providers.metrics(points=1)


async def test_threads_push_while_clients_read() -> None:
    """S-05: no sample is lost, and the interpreter's lock is no trap."""
    metrics = providers.metrics(samples=50_000, interval="20ms")
    metrics.push("a", 0)

    def push() -> None:
        for at in range(5_000):
            metrics.push("a", at)

    async with Client(served(metrics)) as client, client.listen(["metrics:///a"]) as listen:
        threads = [threading.Thread(target=push) for _ in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            await client.read("metrics:///a")
        assert (await listen.next()).params["uri"] == "metrics:///a"
        points = (await series(client, "metrics:///a"))["points"]
        assert sum(point["count"] for point in points) == 20_001


async def test_a_forked_process_serves() -> None:
    """S-05: mounted once, then forked, as servers with several processes do: each has its own series, and measures."""
    metrics = providers.metrics(host=True, interval="50ms")
    metrics.push("before", 1)
    server = served(metrics)
    reading, writing = os.pipe()
    child = await asyncio.to_thread(_fork, server, metrics, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        heard = json.loads(await asyncio.to_thread(told.read))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert heard["before"] == [1.0, 2.0]
    assert heard["updated"] == "metrics:///cpu_usage_percent"
    async with Client(server) as client:
        assert [point["value"] for point in (await series(client, "metrics:///before"))["points"]] == [1.0]


def _fork(server: ResourceServer, metrics: providers.Metrics, writing: int) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:

        async def run() -> dict[str, Any]:
            asyncio.events._set_running_loop(asyncio.get_running_loop())
            metrics.push("before", 2)
            async with Client(server) as client, client.listen(["metrics:///cpu_usage_percent"]) as listen:
                found = await series(client, "metrics:///before")
                updated = (await listen.next()).params["uri"]
                return {"before": [point["value"] for point in found["points"]], "updated": updated}

        os.write(writing, json.dumps(asyncio.run(asyncio.wait_for(run(), 20))).encode())
        code = 0
    finally:
        os._exit(code)


@pytest.mark.parametrize("mode", ["legacy", MODERN])
@pytest.mark.parametrize("way", ["word", "file"])
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_the_command_serves_this_machine(program: Path, tmp_path: Path, mode: str, way: str) -> None:
    """S-05: to the official client, in both eras, by a word and by a file."""
    words = ["metrics:"]
    if way == "file":
        file = tmp_path / "resources.json"
        file.write_text(json.dumps({"providers": [{"metrics": {"host": True, "interval": "100ms", "points": 2}}]}))
        words = ["--config", str(file)]

    async def main() -> None:
        server = StdioServerParameters(command=str(program), args=["serve", *words])
        async with asyncio.timeout(30), OfficialClient(server, mode=mode, cache=None) as client:
            uris = [str(item.uri) for item in (await client.list_resources()).resources]
            for part in ("cpu", "memory", "disk", "network"):
                assert any(uri.startswith(f"metrics:///{part}") for uri in uris), uris
            for uri in uris:
                (content,) = (await client.read_resource(uri)).contents
                found = json.loads(content.text)  # type: ignore[union-attr]
                assert found.get("points") or found.get("series"), content
            if way == "file":
                await asyncio.sleep(0.5)
                (content,) = (await client.read_resource("metrics:///memory_used_bytes")).contents
                points = json.loads(content.text)["points"]  # type: ignore[union-attr]
                assert len(points) <= 2
                assert sum(point["count"] for point in points) >= 4

    asyncio.run(main())


def test_threads_come_and_go(program: Path) -> None:
    """S-05: none before the first request; those for subscribers end with the last of them."""
    with running([str(program), "serve", "metrics:"]) as server:

        def threads(name: str) -> int:
            return thread_names(server.process.pid).count(name)

        server.ask(0, "server/discover")
        assert (threads("mcp-notify"), threads("mcp-host")) == (0, 0)
        for id in (1, 2):
            wanted = {"resourceSubscriptions": ["metrics:///cpu_usage_percent"]}
            server.modern(id, "subscriptions/listen", {"notifications": wanted})
            assert eventually(lambda: (threads("mcp-notify"), threads("mcp-host")) == (1, 1))
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
            # Nobody reads or watches: this machine is not measured any longer either.
            assert eventually(lambda: (threads("mcp-notify"), threads("mcp-host")) == (0, 0))
        server.ask(3, "resources/read", {"uri": "metrics:///"})
        assert (threads("mcp-notify"), threads("mcp-host")) == (0, 1)


def test_words_that_are_wrong(program: Path, tmp_path: Path) -> None:
    """S-05: named at the start, with the fix, though stdin is open."""
    file = tmp_path / "resources.yaml"
    for text, said in (
        ("metrics: {host: true, intervall: 1s}", 'did you mean "interval"?'),
        ("metrics: {interval: 1x}", "a time such as"),
        ("metrics: {series: 3, host: true}", "`host` needs 11 series"),
    ):
        file.write_text(f"providers:\n  - {text}\n", "utf-8")
        with running([str(program), "serve", "--config", str(file)]) as server:
            assert server.wait() == 2
        assert said in server.errors.decode(), server.errors
    with running([str(program), "serve", "metrics:host"]) as server:
        assert server.wait() == 2
    assert 'takes nothing, not "host"' in server.errors.decode()
