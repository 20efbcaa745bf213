"""Serve the *Resources* feature of the Model Context Protocol.

from mcp_resources import ResourceServer

server = ResourceServer("weather", version="1.0.0")

@server.resource("weather://{city}/forecast{?days}")
async def forecast(city: str, days: int = 3) -> str:
    return await fetch(city, days)

server.run()
"""

from . import providers
from ._core import (
    Context,
    Icon,
    Match,
    NoMatch,
    Rejected,
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

__all__ = [
    "AccessDenied",
    "AccessDeniedError",
    "AskFailed",
    "AskFailedError",
    "Auth",
    "CacheHint",
    "Completion",
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
    "Match",
    "McpError",
    "MethodResult",
    "NoMatch",
    "Param",
    "Policy",
    "RateLimited",
    "RateLimitedError",
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
