"""One request to an ASGI application, driven as a server drives it."""

import asyncio
import json
from typing import Any

PATIENCE = 10.0


class Call:
    """The ASGI server of an application: passes on a request, and takes the response."""

    def __init__(self, app: Any, verb: str, target: str, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        path, _, query = target.partition("?")
        self.scope = {"type": "http", "method": verb, "path": path, "headers": headers, "root_path": ""}
        self.scope["query_string"] = query.encode()
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.done = False
        self._requests: asyncio.Queue[Any] = asyncio.Queue()
        self._requests.put_nowait({"type": "http.request", "body": body, "more_body": False})
        self._changed = asyncio.Event()
        self.task = asyncio.ensure_future(app(self.scope, self._requests.get, self._send))

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.body += message["body"]
            self.done = not message.get("more_body", False)
        self._changed.set()

    @property
    def over(self) -> bool:
        """Whether the application has returned."""
        return self.task.done()

    def leave(self) -> None:
        """The client is gone."""
        self._requests.put_nowait({"type": "http.disconnect"})

    async def until(self, holds: Any) -> None:
        """Waits until it holds."""
        async with asyncio.timeout(PATIENCE):
            while not holds():
                await self._changed.wait()
                self._changed.clear()

    async def json(self) -> Any:
        """The answer, in either form."""
        await self.until(lambda: self.done)
        if self.headers.get("content-type") == "text/event-stream":
            return self.messages()[-1]
        return json.loads(self.body) if self.body else None

    def messages(self) -> list[Any]:
        """The events of the stream so far."""
        data = [line[6:] for line in self.body.split(b"\n") if line.startswith(b"data: ")]
        return [json.loads(line) for line in data if line]
