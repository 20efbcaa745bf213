"""What the author hears, through `logging`; and what a handler tells the client, through `ctx.log`."""

import logging
from typing import TYPE_CHECKING, Literal, TypeAlias

from .results import to_json

if TYPE_CHECKING:
    from ._core import Context

__all__ = ["Log", "LogLevel"]

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

logger = logging.getLogger("mcp_resources")


class Log:
    """Tells the client of a request what its handler is doing. Nothing is sent that it did not ask for.

    `data` is any JSON value, `name` the logger's name.
    """

    __slots__ = ("_context",)

    def __init__(self, context: "Context") -> None:
        self._context = context

    def __call__(self, level: LogLevel, data: object, name: str | None = None) -> None:
        """Tells it at the given level."""
        self._context.send_log(level, to_json(data), name)

    def debug(self, data: object, name: str | None = None) -> None:
        """What only someone who looks for a fault wants to know."""
        self("debug", data, name)

    def info(self, data: object, name: str | None = None) -> None:
        """What happens as it should."""
        self("info", data, name)

    def notice(self, data: object, name: str | None = None) -> None:
        """What happens as it should, and is worth a look."""
        self("notice", data, name)

    def warning(self, data: object, name: str | None = None) -> None:
        """What may become a fault."""
        self("warning", data, name)

    def error(self, data: object, name: str | None = None) -> None:
        """A fault."""
        self("error", data, name)

    def critical(self, data: object, name: str | None = None) -> None:
        """A fault of a whole part."""
        self("critical", data, name)

    def alert(self, data: object, name: str | None = None) -> None:
        """Someone must act now."""
        self("alert", data, name)

    def emergency(self, data: object, name: str | None = None) -> None:
        """Nothing works."""
        self("emergency", data, name)


def failed(name: str, what: str, error: BaseException) -> None:
    """An exception of a handler's: the traceback is the author's, the client hears only that the read failed."""
    logger.error("%s failed: %s", name, what, exc_info=error)


def misused(name: str, what: str) -> None:
    """An answer that the request cannot have."""
    logger.error("%s: %s", name, what)


def held(name: str, seconds: float) -> None:
    """A handler that kept the event loop from everything else."""
    logger.warning("%s has held the event loop for %.0f ms; everything else waited", name, seconds * 1000)
