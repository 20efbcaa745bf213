"""Tests may be coroutines: each runs on an event loop of its own, within a bound of time."""

import asyncio
import inspect

import pytest
from mcp_resources import ResourceServer
from vectors import directory

PATIENCE = 30.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: value for name, value in pyfuncitem.funcargs.items() if name in wanted}

    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE):
            await pyfuncitem.obj(**arguments)

    asyncio.run(bounded())
    return True


@pytest.fixture
def server() -> ResourceServer:
    return ResourceServer("test", version="1.0.0")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if directory("spec/schema") is None:
        terminalreporter.write_line("left out: no official schemas beside the project, messages are not validated")
