"""Runs the rows of `tests/fixtures/mistakes/python.json`: mistakes in code, and the messages about them."""

import ast
import inspect
import logging
from collections.abc import Callable
from types import CodeType
from typing import Any

import mcp_resources
from mcp_resources import ResourceServer
from mcp_resources.testing import Client, ServerError


class Heard(logging.Handler):
    """The log messages, without the warnings that a busy machine causes: those are no mistakes of an author."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps the line, and what its exception says."""
        if "blocked the event loop" in record.getMessage():
            return
        raised = record.exc_info[1] if record.exc_info else None
        self.lines.append(record.getMessage() if raised is None or str(raised) in record.getMessage() else str(raised))


async def said(code: list[str]) -> str | None:
    """The message that is raised, else logged, else sent to the client."""
    heard, told = Heard(), list[str]()

    def ask(body: Callable[..., Any]) -> Callable[..., Any]:
        async def asked(server: ResourceServer, *given: Any) -> Any:
            async with Client(server) as client:
                try:
                    return await body(client, *given)
                except ServerError as error:
                    told.append(error.message)

        return asked

    async def called(client: Client, name: str, arguments: object) -> None:
        result = await client.request("tools/call", {"name": name, "arguments": arguments})
        if result.get("isError"):
            told.append(result["content"][0]["text"])

    scope = {name: getattr(mcp_resources, name) for name in mcp_resources.__all__} | {
        "__name__": "mistakes",
        "server": ResourceServer("mistakes"),
        "read": ask(lambda client, uri="a://b": client.read(uri)),
        "list_all": ask(lambda client: client.list_resources()),
        "call": ask(lambda client, method: client.request(method)),
        "call_tool": ask(lambda client, name, arguments: called(client, name, arguments)),
        "get_prompt": ask(lambda client, name: client.request("prompts/get", {"name": name})),
        "complete": ask(lambda client, template, variable: client.complete(template, variable, "")),
    }
    logger = logging.getLogger("mcp_resources")
    level = logger.level
    logger.addHandler(heard)
    logger.setLevel(logging.DEBUG)
    try:
        await _run("\n".join(code), scope)
    except Exception as error:
        return str(error)
    finally:
        logger.setLevel(level)
        logger.removeHandler(heard)
    return "\n".join(heard.lines) or (told[-1] if told else None)


async def _run(code: str, scope: dict[str, Any]) -> None:
    compiled: CodeType = compile(code, "mistakes", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(compiled, scope)
    if inspect.isawaitable(result):
        await result
