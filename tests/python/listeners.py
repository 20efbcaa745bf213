"""Hundreds of clients over HTTP at once, each a connection of its own: listens of 2026-07-28, and sessions before it.

Knows the protocol, and nothing of the servers.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from ports import HOST
from vectors import MODERN

PATIENCE = 60.0
LEGACY = "2025-11-25"
Message = dict[str, Any]


class Answer:
    """The head of a response, and its body as a stream of events or of bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.status = 0
        self.headers: dict[str, str] = {}

    async def head(self) -> None:
        line = await self._reader.readline()
        if not line:
            raise ConnectionError("the connection has ended")
        self.status = int(line.split()[1])
        while (line := (await self._reader.readline()).strip()) != b"":
            name, _, value = line.decode().partition(":")
            self.headers[name.lower()] = value.strip()

    async def body(self) -> bytes:
        if "content-length" in self.headers:
            return await self._reader.readexactly(int(self.headers["content-length"]))
        return b"".join([chunk async for chunk in self._chunks()])

    async def _chunks(self) -> AsyncIterator[bytes]:
        while (length := int(await self._reader.readline() or b"0", 16)) > 0:
            yield await self._reader.readexactly(length)
            await self._reader.readline()

    async def messages(self) -> AsyncIterator[Message]:
        """The messages of a stream of events, or that of a whole answer."""
        if "text/event-stream" not in self.headers.get("content-type", ""):
            body = await self.body()
            if body:
                yield json.loads(body)
            return
        text = b""
        async for chunk in self._chunks():
            text = (text + chunk).replace(b"\r\n", b"\n")
            while b"\n\n" in text:
                event, _, text = text.partition(b"\n\n")
                data = [line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:")]
                if data and data[0]:
                    yield json.loads(data[0])

    def close(self) -> None:
        self._writer.transport.abort()


async def post(port: int, message: Message, headers: Iterable[tuple[str, str]] = (), verb: str = "POST") -> Answer:
    """Sends one message. The answer's body is still to be read."""
    reader, writer = await asyncio.open_connection(HOST, port, limit=1 << 20)
    body = json.dumps(message).encode() if verb == "POST" else b""
    lines = [
        f"{verb} /mcp HTTP/1.1", f"Host: localhost:{port}", "Accept: application/json, text/event-stream",
        "Content-Type: application/json", f"Content-Length: {len(body)}", *(f"{n}: {v}" for n, v in headers), "", "",
    ]  # fmt: skip
    writer.write("\r\n".join(lines).encode() + body)
    answer = Answer(reader, writer)
    try:
        await answer.head()
    except BaseException:
        answer.close()
        raise
    return answer


def modern(method: str, params: Message, id: object = 1) -> Message:
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params | {"_meta": meta}}


def modern_headers(method: str, name: str | None = None, token: str | None = None) -> list[tuple[str, str]]:
    own = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)]
    own += [("Mcp-Name", name)] if name is not None else []
    return own + ([("Authorization", f"Bearer {token}")] if token is not None else [])


async def ask(
    port: int, method: str, params: Message, name: str | None = None, token: str | None = None
) -> tuple[int, Message]:
    """One modern request: its status, and its response."""
    answer = await post(port, modern(method, params), modern_headers(method, name, token))
    try:
        async for message in answer.messages():
            return answer.status, message
        return answer.status, {}
    finally:
        answer.close()


class Watcher:
    """A client that watches URIs until it is closed, and counts what it is told. It comes back when its stream ends."""

    def __init__(self, port: int, uris: Sequence[str], *, is_modern: bool, token: str | None = None) -> None:
        self.port, self.uris, self.is_modern, self.token = port, [*uris], is_modern, token
        self.told: dict[str, int] = {}
        self.begun = 0
        """How often it has begun to watch."""
        self.ended = 0
        """How many of its streams ended with a result."""
        self.refused: list[int] = []
        """The statuses of sessions and listens that were refused."""
        self.session = ""
        self.comes_back = True
        self._ids = itertools.count(1)
        self._task: asyncio.Task[None] | None = None
        self._stream: Answer | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def watching(self, times: int = 1) -> None:
        """Waits until it has begun to watch so often."""
        await eventually(lambda: self.begun >= times, f"{self.uris} began {self.begun} of {times}, {self.refused}")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._task
        if self._stream is not None:
            self._stream.close()

    async def _run(self) -> None:
        while True:
            with suppress(OSError, ConnectionError, asyncio.IncompleteReadError, ValueError):
                await (self._listen() if self.is_modern else self._hold_session())
            if not self.comes_back:
                return
            await asyncio.sleep(0.05)

    async def _listen(self) -> None:
        method = "subscriptions/listen"
        params = {"notifications": {"resourceSubscriptions": self.uris, "resourcesListChanged": True}}
        message = modern(method, params, next(self._ids))
        self._stream = await post(self.port, message, modern_headers(method, token=self.token))
        await self._take(self._stream)

    async def _hold_session(self) -> None:
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        answer = await post(self.port, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        self.session = answer.headers.get("mcp-session-id", "")
        try:
            await answer.body()
        finally:
            answer.close()
        if answer.status != 200:
            self.refused.append(answer.status)
            return
        if not await self._tell({"jsonrpc": "2.0", "method": "notifications/initialized"}):
            return
        # The stream first: with haproxy it shares no connection with the subscriptions.
        self._stream = await post(self.port, {}, self._headers(), "GET")
        for uri in self.uris:
            message = {"jsonrpc": "2.0", "id": next(self._ids), "method": "resources/subscribe", "params": {"uri": uri}}
            if not await self._tell(message):
                self._stream.close()
                return
        self.begun += 1
        await self._take(self._stream)

    def _headers(self) -> list[tuple[str, str]]:
        return [("Mcp-Session-Id", self.session), ("MCP-Protocol-Version", LEGACY)]

    async def _tell(self, message: Message) -> bool:
        answer = await post(self.port, message, self._headers())
        try:
            await answer.body()
        finally:
            answer.close()
        if answer.status not in (200, 202):
            self.refused.append(answer.status)
        return answer.status in (200, 202)

    async def _take(self, answer: Answer) -> None:
        if answer.status != 200:
            self.refused.append(answer.status)
            answer.close()
            return
        try:
            await self._count(answer)
        finally:
            answer.close()

    async def _count(self, answer: Answer) -> None:
        async for message in answer.messages():
            method = message.get("method", "")
            if method.endswith("subscriptions/acknowledged"):
                self.begun += 1
            elif "result" in message:
                self.ended += 1
            elif method.startswith("notifications/resources/"):
                of = message["params"]["uri"] if "updated" in method else "lists"
                self.told[of] = self.told.get(of, 0) + 1


async def eventually(is_so: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    """Waits until something is so."""
    end = asyncio.get_running_loop().time() + patience
    while not is_so():
        assert asyncio.get_running_loop().time() < end, what
        await asyncio.sleep(0.01)
