"""Serve the *Resources* feature of the Model Context Protocol.

from mcp_resources import ResourceServer

server = ResourceServer("weather", version="1.0.0")

@server.resource("weather://{city}/forecast{?days}")
async def forecast(city: str, days: int = 3) -> str:
    return await fetch(city, days)

server.run()
"""

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
from .auth import Auth, InvalidToken, JwtVerifier, StaticTokens, Verified
from .errors import (
    AccessDenied,
    AskFailed,
    CustomError,
    InputDeclined,
    InvalidParameter,
    InvalidTemplate,
    InvalidUri,
    McpError,
    RateLimited,
    ReadTimeout,
    RegistrationError,
    ResourceNotFound,
    SizeExceeded,
    TemplateConflict,
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
    "AskFailed",
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
    "InputRequired",
    "InputResponse",
    "InvalidParameter",
    "InvalidTemplate",
    "InvalidToken",
    "InvalidUri",
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
    "ReadResult",
    "ReadTimeout",
    "RegistrationError",
    "Rejected",
    "Resource",
    "ResourceHandler",
    "ResourceNotFound",
    "ResourceServer",
    "Sample",
    "SizeExceeded",
    "StaticTokens",
    "TemplateConflict",
    "TemplateSet",
    "Tls",
    "UriTemplate",
    "Variable",
    "Verified",
]
