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
from .auth import Auth, InvalidTokenError, JwtVerifier, StaticTokens, Verified
from .errors import (
    EARLIER,
    AccessDeniedError,
    AskFailedError,
    ConfigError,
    CustomError,
    InputDeclinedError,
    InvalidParameterError,
    InvalidTemplateError,
    InvalidUriError,
    McpError,
    RateLimitedError,
    ReadFailedError,
    ReadTimeoutError,
    RegistrationError,
    ResourceNotFoundError,
    SizeExceededError,
    TemplateConflictError,
    earlier,
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
    from .auth import InvalidToken as InvalidToken
    from .client import Client, Progress, Question, ServerAbout
    from .errors import AccessDenied as AccessDenied
    from .errors import AskFailed as AskFailed
    from .errors import InputDeclined as InputDeclined
    from .errors import InvalidParameter as InvalidParameter
    from .errors import InvalidTemplate as InvalidTemplate
    from .errors import InvalidUri as InvalidUri
    from .errors import RateLimited as RateLimited
    from .errors import ReadTimeout as ReadTimeout
    from .errors import ResourceNotFound as ResourceNotFound
    from .errors import SizeExceeded as SizeExceeded
    from .errors import TemplateConflict as TemplateConflict
    from .listed import Change, ListedResource, ListedTemplate

__all__ = [
    "AccessDeniedError",
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
    "InputDeclinedError",
    "InputRequired",
    "InputResponse",
    "InvalidParameterError",
    "InvalidTemplateError",
    "InvalidTokenError",
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
    "RateLimitedError",
    "ReadFailedError",
    "ReadResult",
    "ReadTimeoutError",
    "RegistrationError",
    "Rejected",
    "Resource",
    "ResourceHandler",
    "ResourceNotFoundError",
    "ResourceServer",
    "Sample",
    "ServerAbout",
    "SizeExceededError",
    "StaticTokens",
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
_EARLIER = {**EARLIER, "InvalidToken": "InvalidTokenError"}


def __getattr__(name: str) -> Any:
    """Loads the client when it is first used, since a server starts faster without it; and finds earlier names."""
    if name in _CLIENT:
        from . import client as module
    elif name in _LISTED:
        from . import listed as module  # type: ignore[no-redef]
    else:
        return globals()[earlier(name, _EARLIER, __name__)]
    value = globals()[name] = getattr(module, name)
    return value
