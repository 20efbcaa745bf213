"""Log messages: those for you, through `logging`, and those for clients, through `ctx.log`."""

import logging
import time
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from ._core import unexpected
from .encoding import to_json

if TYPE_CHECKING:
    import asyncio

    from ._core import Context

__all__ = ["Log", "LogLevel"]

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

_LEVELS = get_args(LogLevel)
_logger = logging.getLogger("mcp_resources")
_threadless: float | None = None
_HERE = __file__.removesuffix("log.py")


class Log:
    """Sends log messages to the client of a request: `ctx.log("info", data)` or `ctx.log.info(data)`.

    A client gets only messages of the levels that it asked for. `data` is any JSON value. `logger` is the name of the
    part of your program that logs.
    """

    __slots__ = ("_context",)

    def __init__(self, context: "Context") -> None:
        self._context = context

    def __call__(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        """Sends a message.

        Raises:
            ValueError: there is no such level.
            TypeError: `data` has no JSON form.
        """
        if level not in _LEVELS:
            raise ValueError(unexpected("level", str(level), _LEVELS))
        self._context.send_log(level, to_json(data), logger)

    def debug(self, data: object, logger: str | None = None) -> None:
        """Sends details that help to find a fault."""
        self("debug", data, logger)

    def info(self, data: object, logger: str | None = None) -> None:
        """Sends a message about normal operation."""
        self("info", data, logger)

    def notice(self, data: object, logger: str | None = None) -> None:
        """Sends a message about a normal but significant event."""
        self("notice", data, logger)

    def warning(self, data: object, logger: str | None = None) -> None:
        """Sends a message about something that may become an error."""
        self("warning", data, logger)

    def error(self, data: object, logger: str | None = None) -> None:
        """Sends a message about an error."""
        self("error", data, logger)

    def critical(self, data: object, logger: str | None = None) -> None:
        """Sends a message about the failure of a component."""
        self("critical", data, logger)

    def alert(self, data: object, logger: str | None = None) -> None:
        """Sends a message about a fault that needs immediate action."""
        self("alert", data, logger)

    def emergency(self, data: object, logger: str | None = None) -> None:
        """Sends a message that the system is unusable."""
        self("emergency", data, logger)


def failed(name: str, what: str, error: BaseException) -> None:
    """Logs an exception of a handler, with its traceback. The client learns only that the request failed."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(_HERE):
        traceback = traceback.tb_next
    _logger.error("%s failed: %s", name, what, exc_info=(type(error), error, traceback))


def cancelled(name: str, what: str, task: "asyncio.Task[object]") -> None:
    """Logs a handler that ended with `CancelledError` although its own task was not cancelled."""
    if task.cancelled() and not task.cancelling():
        try:
            task.result()
        except BaseException as error:
            failed(name, what, error)


def misused(name: str, what: str) -> None:
    """Logs an answer that does not fit the request, or that did not come in time."""
    _logger.error("%s%s", f"{name}: " if name else "", what)


def absent(name: str, what: str, error: BaseException) -> None:
    """Logs why a handler raised `ResourceNotFoundError`. The client does not get the text."""
    text = str(error)
    if text:
        _logger.info("%s: %s: not found: %s", name, what, text)


def threadless(error: BaseException) -> None:
    """Logs that no further thread can be started, once a minute at most."""
    global _threadless
    now = time.monotonic()
    if _threadless is None or now - _threadless > 60:
        _threadless = now
        _logger.warning(
            "a worker thread cannot be started (%s); handlers wait for the threads that run, or run on the event loop",
            error,
        )


def refused(what: str) -> None:
    """Logs a request that was refused but that an option would allow."""
    _logger.warning("%s", what)


def held(name: str, seconds: float) -> None:
    """Logs a handler that blocked the event loop."""
    _logger.warning(
        "%s blocked the event loop for %.0f ms; use await, or write the handler as `def`", name, seconds * 1000
    )


def warned(server: str, warning: str) -> None:
    """Logs a registration that is probably a mistake."""
    _logger.warning("%s: %s", server, warning)


def unverified(error: Exception) -> None:
    """Logs an exception of `Auth.verify` other than `InvalidTokenError`."""
    _logger.error("a token could not be verified; the client got status 503: %s", error, exc_info=error)


def unrecorded(error: BaseException) -> None:
    """Logs an exception of the audit function."""
    _logger.error("the audit function failed, so a record may be lost: %s", error, exc_info=error)


def broken(error: BaseException) -> None:
    """Logs that the lifespan of the server could not be entered."""
    _logger.error("the lifespan of the server failed, so nothing is served: %s", error, exc_info=error)
