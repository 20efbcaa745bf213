"""The wire fixtures through servers of the official SDK and of FastMCP, to which our server is attached.

`tests/fixtures/attached.json` lists the cases that cannot apply, with the reasons. Adoption is off: a server that may
have more resources answers differently for those that ours does not have.
"""

import asyncio
import json
import time
from typing import Any

import pytest
from attached_app import KINDS, Kind
from mcp.client._memory import InMemoryTransport
from mcp.shared.message import SessionMessage
from mcp_resources.testing import Connection
from mcp_types.jsonrpc import jsonrpc_message_adapter
from test_fixtures import Host, Json, unobservable
from wire import META, Case, cases, compare, read, resolve

LEFT_OUT = read("attached.json")
ROUNDS = 60
"""Turns of the event loop after which nothing more happens."""
PATIENCE = 100
"""How often this is tried again while a message is missing."""


class AttachedConnection:
    """One client of the SDK's server, in memory, with the interface of `testing.Connection`."""

    def __init__(self, app: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self._app = app
        self._out: list[bytes] = []
        self._changes: list[bytes] = []
        self._write: Any = None
        self._left = asyncio.Event()
        self._task = self.loop.create_task(self._serve())
        self.settle()

    async def _serve(self) -> None:
        async with InMemoryTransport(self._app) as (read, write):
            self._write = write
            takes = asyncio.ensure_future(self._take(read))
            await self._left.wait()
            takes.cancel()

    async def _take(self, read: Any) -> None:
        async for message in read:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            self._out.append(text.encode() + b"\n")

    def receive(self, data: bytes) -> bytes:
        for line in data.splitlines():
            self.loop.run_until_complete(self._send(line))
        return self.settle()

    async def _send(self, line: bytes) -> None:
        await self._write.send(SessionMessage(jsonrpc_message_adapter.validate_json(line)))

    def settle(self) -> bytes:
        async def turns() -> None:
            for _ in range(ROUNDS):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turns())
        out, self._out = self._out, []
        self._changes += filter(_is_change, out)
        return b"".join(line for line in out if not _is_change(line))

    def deliver(self) -> bytes:
        """The changes that the client was told of. Nothing holds them back here."""
        out = self.settle()
        changes, self._changes = self._changes, []
        return out + b"".join(changes)

    def close(self) -> None:
        self._left.set()
        self.loop.run_until_complete(self._task)
        self.loop.close()


def _is_change(line: bytes) -> bool:
    method = json.loads(line).get("method", "")
    return bool(method == "notifications/resources/updated" or method.endswith("/list_changed"))


def _unnamed(value: Any) -> Any:
    """A message without the name of the server: another server sends ours."""
    if isinstance(value, list):
        return [_unnamed(item) for item in value]
    if not isinstance(value, dict):
        return value
    items = {name: _unnamed(item) for name, item in value.items() if name != META + "serverInfo"}
    return {name: item for name, item in items.items() if name != "_meta" or item or not value["_meta"]}


class AttachedHost(Host):
    def __init__(self, case: Case, kind: Kind) -> None:
        super().__init__(case)
        if kind == "mcp":
            from mcp.server.mcpserver import MCPServer

            self.app: Any = MCPServer("theirs")
        else:
            from fastmcp import FastMCP

            self.app = FastMCP("theirs")._mcp_server
        self.server.attach(self.app, adopt=False)

    def opened(self) -> Connection:
        return AttachedConnection(self.app)  # type: ignore[return-value]

    def settled(self, on: str, out: bytes = b"") -> bytes:
        """Waits longer for what must come: the machine may be busy."""
        out = super().settled(on, out)
        for _ in range(PATIENCE):
            if out or not self.step.get("sends"):
                break
            time.sleep(0.01)
            out = super().settled(on)
        return out

    def check_sent(self, step: Json, out: bytes) -> str | None:
        sent = [json.loads(line) for line in out.splitlines()]
        texts = step.get("sends_text")
        expected = step.get("sends", []) if texts is None else [json.loads(text) for text in texts]
        wanted = self.terms.message(resolve(expected, self.bound))
        return compare(_unnamed(wanted), _unnamed(sent), self.bound, "sends")


def left_out(case: Case) -> str | None:
    """Why a case cannot be run through another server, if so."""
    steps = list(case.steps())
    if any("tick" in step for step in steps):
        return str(LEFT_OUT["reasons"]["clock"])
    if any(step.get("deliver") is not None for step in steps):
        return str(LEFT_OUT["reasons"]["delivery"])
    why = LEFT_OUT["files"].get(case.file) or LEFT_OUT["cases"].get(case.file, {}).get(case.members["name"])
    return unobservable(case) if why is None else str(LEFT_OUT["reasons"][why])


CASES = [case for case in cases() if left_out(case) is None]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case, kind: Kind) -> None:
    host = AttachedHost(case, kind)
    try:
        host.run()
    finally:
        host.end()


def test_what_is_left_out_exists() -> None:
    """A case that was renamed is not left out by its old name; and most cases are run."""
    names = {(case.file, case.members["name"]) for case in cases()}
    assert {file for file, _ in names} >= set(LEFT_OUT["files"])
    for file, entries in LEFT_OUT["cases"].items():
        assert {(file, name) for name in entries} <= names
    assert len(CASES) > 800
