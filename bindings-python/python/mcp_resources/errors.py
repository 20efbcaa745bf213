"""The exceptions of this library, and those that a handler raises to answer a request with an error.

All are subclasses of `McpError`, most also of the builtin exception that fits.
"""

from collections.abc import Mapping
from typing import ClassVar

__all__ = [
    "AccessDeniedError",
    "AskFailedError",
    "ConfigError",
    "CustomError",
    "InputDeclinedError",
    "InvalidParameterError",
    "InvalidTemplateError",
    "InvalidUriError",
    "McpError",
    "RateLimitedError",
    "ReadFailedError",
    "ReadTimeoutError",
    "RegistrationError",
    "ResourceNotFoundError",
    "SizeExceededError",
    "TemplateConflictError",
    "ToolError",
]


class McpError(Exception):
    """The base class of all errors. `kind` is the word for the error in the data that clients get, or `None`."""

    kind: ClassVar[str | None] = None


class ResourceNotFoundError(McpError, LookupError):
    """The resource does not exist. Raised by a handler, and by `Client`.

    A handler need not name the URI: the error for the client has it. Its message is logged, not sent.
    """

    kind = "not_found"
    uri: str | None = None
    """The URI that was read; set by `Client`."""


class AccessDeniedError(McpError, PermissionError):
    """The client may not see the resource. Raised by a handler, and by `Client`.

    To the client it looks like a resource that does not exist, unless the server has `explicit_denials=True`.
    """

    kind = "access_denied"
    uri: str | None = None
    """The URI that was read; set by `Client`."""


class InvalidUriError(McpError, ValueError):
    """A text is not a URI, or a handler cannot use the URI of the request."""

    kind = "invalid_uri"
    uri: str | None = None
    """The URI that was read; set by `Client`."""


class InvalidParameterError(McpError, ValueError):
    """The value of a variable of a template is wrong. Raised by a handler.

    Args:
        parameter: the name of the variable.
        expected: a short phrase for the client, such as `a date`.
    """

    kind = "invalid_parameter"

    def __init__(self, parameter: str, expected: str) -> None:
        _check("parameter", parameter, str, "a text")
        _check("expected", expected, str, "a short phrase, such as 'a date'")
        super().__init__(f"{parameter}: expected {expected}")
        self.parameter = parameter
        self.expected = expected


class SizeExceededError(McpError):
    """The contents are too large. Raised by a handler.

    Args:
        limit: the largest size that is allowed, in bytes.
        size: the size of the contents, in bytes. Default: unknown.
    """

    kind = "size_exceeded"

    def __init__(self, limit: int, size: int | None = None) -> None:
        _check("limit", limit, int, "a whole number of bytes")
        if size is not None:
            _check("size", size, int, "a whole number of bytes")
        super().__init__(f"larger than {limit} bytes")
        self.limit = limit
        self.size = size


class ReadTimeoutError(McpError, TimeoutError):
    """The contents were not ready in time. Raised by a handler.

    Args:
        after_ms: the time that has passed, in milliseconds.
    """

    kind = "timeout"

    def __init__(self, after_ms: int) -> None:
        _check("after_ms", after_ms, int, "a whole number of milliseconds")
        super().__init__(f"no answer after {after_ms} ms")
        self.after_ms = after_ms


class RateLimitedError(McpError):
    """There are too many requests. Raised by a handler.

    Args:
        retry_after_ms: when the client may try again, in milliseconds from now.
    """

    kind = "rate_limited"

    def __init__(self, retry_after_ms: int) -> None:
        _check("retry_after_ms", retry_after_ms, int, "a whole number of milliseconds")
        super().__init__(f"retry after {retry_after_ms} ms")
        self.retry_after_ms = retry_after_ms


class InputDeclinedError(McpError):
    """The user declined to give the input that the handler asked for. Raised by a handler."""

    kind = "input_declined"


class CustomError(McpError):
    """A JSON-RPC error of your own. Raised by a handler.

    Args:
        code: a whole number outside of -32768 to -32000, or one of the standard codes of JSON-RPC.
        message: the message for the client.
        data: a JSON object with details. Default: none.
    """

    def __init__(self, code: int, message: str, data: Mapping[str, object] | None = None) -> None:
        _check("code", code, int, "a whole number")
        _check("message", message, str, "a text")
        if data is not None:
            _check("data", data, Mapping, "a dict")
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class ToolError(McpError):
    """A tool failed in a way that the model can mend. Raised by a tool; its text is the result that the model reads.

    The text of any other exception is logged, and not sent.
    """


class AskFailedError(McpError):
    """`ctx.ask` got no result: the client cannot be asked, did not answer, or refused.

    `code` is the code of its error if it refused, else `None`.
    """

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class ReadFailedError(McpError):
    """A call of `Client` failed. Missing resources, denied access and invalid URIs have classes of their own.

    Attributes:
        kind: the reason: `server` (the server answered with an error), `timeout`, `unreachable`, `unauthorized`,
            `too_large`, `bad_answer`, `unsupported`, `input_required`, `no_server`, `several_servers`, `cancelled`
            (also after `close`) or `limit_reached`.
        code: the code of the server's error, or `None`.
        data: the data of the server's error, a JSON value, or `None`.
        server: the name of the server, or `None` if several were asked.
    """

    def __init__(
        self, message: str, kind: str, *, code: int | None = None, data: object = None, server: str | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind  # type: ignore[misc]
        self.code = code
        self.data = data
        self.server = server


class ConfigError(McpError, ValueError):
    """A configuration file or an option of a client is wrong. The message names the key, agent, server or file."""


class RegistrationError(McpError, ValueError):
    """A resource, template, handler or option cannot be registered. The message says what is allowed."""


class InvalidTemplateError(RegistrationError):
    """A text is not a URI template. `template` is the text, `offset` the place of the error, in bytes."""

    def __init__(self, message: str, template: str, offset: int) -> None:
        super().__init__(message)
        self.template = template
        self.offset = offset


class TemplateConflictError(RegistrationError):
    """Two templates match the same URIs: `template`, and `other`, which is registered already."""

    def __init__(self, message: str, template: str, other: str) -> None:
        super().__init__(message)
        self.template = template
        self.other = other


def _check(name: str, given: object, of: type, expected: str) -> None:
    if not isinstance(given, of):
        raise TypeError(f"{name} is {given!r}, expected {expected}")
