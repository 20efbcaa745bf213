"""What the author hears, through `logging`; and what a handler tells the client, through `ctx.log`."""

import logging
import time
from typing import TYPE_CHECKING, Literal, TypeAlias

from .encoding import to_json

if TYPE_CHECKING:
    import asyncio

    from ._core import Context

__all__ = ["Log", "LogLevel"]

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

_logger = logging.getLogger("mcp_resources")
_threadless: float | None = None
_HERE = __file__.removesuffix("log.py")


class Log:
    """Tells the client of a request what its handler is doing. Nothing is sent that it did not ask for.

    `data` is any JSON value, `logger` the name of what logs.
    """

    __slots__ = ("_context",)

    def __init__(self, context: "Context") -> None:
        self._context = context

    def __call__(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        """Tells it at the given level."""
        self._context.send_log(level, to_json(data), logger)

    def debug(self, data: object, logger: str | None = None) -> None:
        """What only someone who looks for a fault wants to know."""
        self("debug", data, logger)

    def info(self, data: object, logger: str | None = None) -> None:
        """What happens as it should."""
        self("info", data, logger)

    def notice(self, data: object, logger: str | None = None) -> None:
        """What happens as it should, and is worth a look."""
        self("notice", data, logger)

    def warning(self, data: object, logger: str | None = None) -> None:
        """What may become a fault."""
        self("warning", data, logger)

    def error(self, data: object, logger: str | None = None) -> None:
        """A fault."""
        self("error", data, logger)

    def critical(self, data: object, logger: str | None = None) -> None:
        """A fault of a whole part."""
        self("critical", data, logger)

    def alert(self, data: object, logger: str | None = None) -> None:
        """Someone must act now."""
        self("alert", data, logger)

    def emergency(self, data: object, logger: str | None = None) -> None:
        """Nothing works."""
        self("emergency", data, logger)


def failed(name: str, what: str, error: BaseException) -> None:
    """An exception of a handler's: the traceback is the author's, the client hears only that the read failed."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(_HERE):
        traceback = traceback.tb_next
    _logger.error("%s failed: %s", name, what, exc_info=(type(error), error, traceback))


def cancelled(name: str, what: str, task: "asyncio.Task[object]") -> None:
    """A handler that ended with `CancelledError` that was not meant for it: it waited for what was cancelled."""
    if task.cancelled() and not task.cancelling():
        try:
            task.result()
        except BaseException as error:
            failed(name, what, error)


def misused(name: str, what: str) -> None:
    """An answer that the request cannot have, or none in time."""
    _logger.error("%s%s", f"{name}: " if name else "", what)


def absent(name: str, what: str, error: BaseException) -> None:
    """A handler says why there is no such resource. The client hears only that there is none."""
    text = str(error)
    if text:
        _logger.info("%s: %s: not found: %s", name, what, text)


def threadless(error: BaseException) -> None:
    """The system has no further thread: those that there are do the work, or the event loop."""
    global _threadless
    now = time.monotonic()
    if _threadless is None or now - _threadless > 60:
        _threadless = now
        _logger.warning(
            "a worker thread cannot start (%s): handlers wait for those that run, or run on the loop", error
        )


def refused(what: str) -> None:
    """A request was refused that an option would let in."""
    _logger.warning("%s", what)


def held(name: str, seconds: float) -> None:
    """A handler that kept the event loop from everything else."""
    _logger.warning("%s has held the event loop for %.0f ms; everything else waited", name, seconds * 1000)


def warned(server: str, warning: str) -> None:
    """What may not be what the author meant."""
    _logger.warning("%s: %s", server, warning)


def unverified(error: Exception) -> None:
    """A token could not be verified, and not because of the token."""
    _logger.error("a token could not be verified", exc_info=error)


def unrecorded(error: BaseException) -> None:
    """The function that takes what is recorded has failed: an entry may be lost."""
    _logger.error("a record of a request could not be kept", exc_info=error)


def broken(error: BaseException) -> None:
    """The server's lifespan could not be opened: nothing is served."""
    _logger.error("the lifespan of the server failed: %s", error, exc_info=error)
