"""Tests may be coroutines: each runs on an event loop of its own.

It must end within a limit of real time; a test may move the clock of its loop.

With `MCP_RESOURCES_RECORD` the run writes to that file which tests passed, with their docstrings, and which were left
out; `tests/checks/ran.py` reads it.
"""

import asyncio
import inspect
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from gateway import Start, configured
from mcp_resources import ResourceServer
from peering import Served, ensure
from process import Server, running
from vectors import directory
from wire import Case

# The most seconds of a test, which then hangs: a machine with other work needs several times those of an idle one.
PATIENCE = 180.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: value for name, value in pyfuncitem.funcargs.items() if name in wanted}

    late = threading.Event()

    async def bounded() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def end() -> None:
            late.set()
            loop.call_soon_threadsafe(task.cancel)

        watchdog = threading.Timer(PATIENCE, end)
        watchdog.start()
        try:
            await pyfuncitem.obj(**arguments)
        finally:
            watchdog.cancel()

    try:
        asyncio.run(bounded())
    except asyncio.CancelledError:
        assert not late.is_set(), f"the test did not end within {PATIENCE} s"
        raise
    return True


@pytest.fixture(scope="session")
def programs() -> None:
    """Builds the Rust program of `tests/fixtures/serve-http`: the patience of a test is not meant for a compiler."""
    program = Path(__file__).parents[1] / "rust" / "program"
    subprocess.run([program, "serve-http"], stdout=subprocess.DEVNULL, timeout=900, check=True)


@pytest.fixture(scope="session")
def program() -> Path:
    """The command `mcp-resources`, built."""
    command = [Path(__file__).parents[1] / "rust" / "program", "mcp-resources"]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=1800)
    return Path(__file__).parents[2] / found.stdout.strip()


@pytest.fixture
def gateway(program: Path, tmp_path: Path) -> Start:
    """A gateway over stdio; every line that it writes is checked against the schema."""

    @contextmanager
    def start(
        servers: dict[str, Any], agents: dict[str, Any] | None = None, *words: str, **more: Any
    ) -> Iterator[Server]:
        file = configured(tmp_path, servers, agents, **more)
        with running([str(program), "gateway", "--config", str(file), *words]) as server:
            yield server

    return start


@pytest.fixture(scope="session")
def reached() -> Iterator[dict[str, str]]:
    """The URL of each peer; one HTTP server serves all tests of a peer."""
    ensure()
    with ExitStack() as stack:
        yield Served(stack)


@pytest.fixture
def server() -> ResourceServer:
    return ResourceServer("test", version="1.0.0")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if directory("spec/schema") is None:
        terminalreporter.write_line(f"left out: {NO_SCHEMAS}")


NO_SCHEMAS = "no schemas of the protocol, messages are not validated: make setup"
RECORD = os.environ.get("MCP_RESOURCES_RECORD")
entries: list[dict[str, object]] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Adds what the test cites to its report: of several processes of tests, only reports reach the first."""
    report: pytest.TestReport = yield  # type: ignore[assignment, misc]
    if RECORD is not None and report.when == "call":
        report.user_properties.append(("cites", _cites(item)))
    return report  # type: ignore[return-value]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Notes a test that passed, with what it cites, or was left out, with the reason."""
    if hasattr(report, "wasxfail"):
        entries.append({"of": report.nodeid, "left_out": f"expected to fail: {report.wasxfail}"})
    elif report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple | list) else str(report.longrepr)
        entries.append({"of": report.nodeid, "left_out": reason.removeprefix("Skipped: ")})
    elif report.passed and report.when == "call":
        entries.append({"of": report.nodeid, "cites": dict(report.user_properties).get("cites", "")})


def _cites(item: pytest.Item) -> str:
    """The docstring of the test, and what the fixture's case covers."""
    assert isinstance(item, pytest.Function)
    given = item.callspec.params.values() if hasattr(item, "callspec") else ()
    covers = [str(value.members.get("covers", "")) for value in given if isinstance(value, Case)]
    return " ".join([item.function.__doc__ or "", *covers])


def pytest_sessionfinish(exitstatus: int) -> None:
    if RECORD is None or "PYTEST_XDIST_WORKER" in os.environ:
        return
    if directory("spec/schema") is None:
        entries.append({"left_out": NO_SCHEMAS})
    if exitstatus == pytest.ExitCode.OK:
        entries.append({"ended": True})
    file = Path(RECORD)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf-8")
