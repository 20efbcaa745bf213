"""Serve the *Resources* feature of the Model Context Protocol.

from mcp_resources import ResourceServer

server = ResourceServer("weather", version="1.0.0")

@server.resource("weather://{city}/forecast{?days}")
async def forecast(city: str, days: int = 3) -> str:
    return await fetch(city, days)

server.run()
"""

from typing import TYPE_CHECKING, Any

from . import providers
from ._core import (
    Context,
    Icon,
    Resource,
    TemplateSet,
    UriTemplate,
    Variable,
)
from .auth import Auth, InvalidToken, InvalidTokenError, JwtVerifier, StaticTokens, Verified
from .errors import (
    AccessDenied,
    AccessDeniedError,
    AskFailed,
    AskFailedError,
    ConfigError,
    CustomError,
    InputDeclined,
    InputDeclinedError,
    InvalidParameter,
    InvalidParameterError,
    InvalidTemplate,
    InvalidTemplateError,
    InvalidUri,
    InvalidUriError,
    McpError,
    RateLimited,
    RateLimitedError,
    ReadFailedError,
    ReadTimeout,
    ReadTimeoutError,
    RegistrationError,
    ResourceNotFound,
    ResourceNotFoundError,
    SizeExceeded,
    SizeExceededError,
    TemplateConflict,
    TemplateConflictError,
)
from .guard import Guard, Policy
from .handler import ResourceHandler
from .matches import Match, NoMatch, Rejected
from .options import Limits, Tls
from .parameters import Param
from .results import (
    CacheHint,
    Completion,
    Contents,
    Elicit,
    ElicitUrl,
    InputRequired,
    InputResponse,
    ListPage,
    ListRoots,
    MethodResult,
    ReadResult,
    Sample,
)
from .server import ResourceServer

if TYPE_CHECKING:
    from .client import Client, Progress, Question, ServerAbout
    from .listed import Change, ListedResource, ListedTemplate

__all__ = [
    "AccessDenied",
    "AccessDeniedError",
    "AskFailed",
    "AskFailedError",
    "Auth",
    "CacheHint",
    "Change",
    "Client",
    "Completion",
    "ConfigError",
    "Contents",
    "Context",
    "CustomError",
    "Elicit",
    "ElicitUrl",
    "Guard",
    "Icon",
    "InputDeclined",
    "InputDeclinedError",
    "InputRequired",
    "InputResponse",
    "InvalidParameter",
    "InvalidParameterError",
    "InvalidTemplate",
    "InvalidTemplateError",
    "InvalidToken",
    "InvalidTokenError",
    "InvalidUri",
    "InvalidUriError",
    "JwtVerifier",
    "Limits",
    "ListPage",
    "ListRoots",
    "ListedResource",
    "ListedTemplate",
    "Match",
    "McpError",
    "MethodResult",
    "NoMatch",
    "Param",
    "Policy",
    "Progress",
    "Question",
    "RateLimited",
    "RateLimitedError",
    "ReadFailedError",
    "ReadResult",
    "ReadTimeout",
    "ReadTimeoutError",
    "RegistrationError",
    "Rejected",
    "Resource",
    "ResourceHandler",
    "ResourceNotFound",
    "ResourceNotFoundError",
    "ResourceServer",
    "Sample",
    "ServerAbout",
    "SizeExceeded",
    "SizeExceededError",
    "StaticTokens",
    "TemplateConflict",
    "TemplateConflictError",
    "TemplateSet",
    "Tls",
    "UriTemplate",
    "Variable",
    "Verified",
    "providers",
]

_CLIENT = {"Client", "Progress", "Question", "ServerAbout"}
_LISTED = {"Change", "ListedResource", "ListedTemplate"}


def __getattr__(name: str) -> Any:
    """The client's half, loaded when it is first asked for: a server starts quicker without."""
    if name in _CLIENT:
        from . import client as module
    elif name in _LISTED:
        from . import listed as module  # type: ignore[no-redef]
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(module, name)
    return value
