"""What this library raises, and what a handler raises to answer a request with an error.

One tree under `McpError`; each class beside the builtin that it is a kind of.
"""

from collections.abc import Mapping
from typing import ClassVar

__all__ = [
    "AccessDenied",
    "AccessDeniedError",
    "AskFailed",
    "AskFailedError",
    "ConfigError",
    "CustomError",
    "InputDeclined",
    "InputDeclinedError",
    "InvalidParameter",
    "InvalidParameterError",
    "InvalidTemplate",
    "InvalidTemplateError",
    "InvalidUri",
    "InvalidUriError",
    "McpError",
    "RateLimited",
    "RateLimitedError",
    "ReadFailedError",
    "ReadTimeout",
    "ReadTimeoutError",
    "RegistrationError",
    "ResourceNotFound",
    "ResourceNotFoundError",
    "SizeExceeded",
    "SizeExceededError",
    "TemplateConflict",
    "TemplateConflictError",
]


class McpError(Exception):
    """The base of all. `kind` is the word that clients find in the error's data; `None` where there is none."""

    kind: ClassVar[str | None] = None


class ResourceNotFoundError(McpError, LookupError):
    """There is no such resource. Raised by a handler; the client's URI goes into the error by itself."""

    kind = "not_found"
    uri: str | None = None
    """What a client asked for."""


class AccessDeniedError(McpError, PermissionError):
    """The client may not see it. Told as not found, unless the server was made with `explicit_denials=True`."""

    kind = "access_denied"
    uri: str | None = None
    """What a client asked for."""


class InvalidUriError(McpError, ValueError):
    """A text is not a URI, or a handler finds the URI that it was asked for unusable."""

    kind = "invalid_uri"
    uri: str | None = None
    """What a client asked for."""


class InvalidParameterError(McpError, ValueError):
    """A value has the wrong type or form. `expected` is one short phrase, sent to the client."""

    kind = "invalid_parameter"

    def __init__(self, parameter: str, expected: str) -> None:
        super().__init__(f"{parameter}: expected {expected}")
        self.parameter = parameter
        self.expected = expected


class SizeExceededError(McpError):
    """The contents are larger than allowed: `limit` and, if known, `size` in bytes."""

    kind = "size_exceeded"

    def __init__(self, limit: int, size: int | None = None) -> None:
        super().__init__(f"larger than {limit} bytes")
        self.limit = limit
        self.size = size


class ReadTimeoutError(McpError, TimeoutError):
    """The handler did not answer in time: `after_ms` milliseconds."""

    kind = "timeout"

    def __init__(self, after_ms: int) -> None:
        super().__init__(f"no answer after {after_ms} ms")
        self.after_ms = after_ms


class RateLimitedError(McpError):
    """Too many requests: come back in `retry_after_ms` milliseconds."""

    kind = "rate_limited"

    def __init__(self, retry_after_ms: int) -> None:
        super().__init__(f"retry after {retry_after_ms} ms")
        self.retry_after_ms = retry_after_ms


class InputDeclinedError(McpError):
    """The user declined to give the input that the handler asked for."""

    kind = "input_declined"


class CustomError(McpError):
    """An error of the server's own, with a code that it documents: outside -32768 to -32000, or a standard one.

    `data` is a JSON object.
    """

    def __init__(self, code: int, message: str, data: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class AskFailedError(McpError):
    """A client gave no result to `ctx.ask`: it could not be asked, did not answer, or refused with this `code`."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class ReadFailedError(McpError):
    """A client could not do what it was asked, for a reason that has no class of its own.

    `kind` says which: `server` (it answered with an error: its `code` and `data`), `timeout`, `unreachable`,
    `unauthorized`, `too_large`, `bad_answer`, `unsupported`, `input_required`, `no_server`, `several_servers`,
    `cancelled` (also after `close`) or `limit_reached`.
    `server` is the name of the server, if only one was asked.
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
    """A configuration or an option of a client is wrong. The message names the key, agent, server or file."""


class RegistrationError(McpError, ValueError):
    """A resource, template or handler that cannot be registered. The message says what is allowed."""


class InvalidTemplateError(RegistrationError):
    """A text is not a URI template: `template` is wrong at `offset`, in bytes from its beginning."""

    def __init__(self, message: str, template: str, offset: int) -> None:
        super().__init__(message)
        self.template = template
        self.offset = offset


class TemplateConflictError(RegistrationError):
    """`template` matches the same URIs as `other`, so that neither could be preferred."""

    def __init__(self, message: str, template: str, other: str) -> None:
        super().__init__(message)
        self.template = template
        self.other = other


# The earlier names: the same classes.

AccessDenied = AccessDeniedError
AskFailed = AskFailedError
InputDeclined = InputDeclinedError
InvalidParameter = InvalidParameterError
InvalidTemplate = InvalidTemplateError
InvalidUri = InvalidUriError
RateLimited = RateLimitedError
ReadTimeout = ReadTimeoutError
ResourceNotFound = ResourceNotFoundError
SizeExceeded = SizeExceededError
TemplateConflict = TemplateConflictError
