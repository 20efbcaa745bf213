"""Serve resources, tools and prompts of the Model Context Protocol.

```python
from mcp_resources import ResourceServer

server = ResourceServer("weather", version="1.0.0")

@server.resource("weather://{city}/forecast{?days}")
async def forecast(city: str, days: int = 3) -> str:
    return await fetch(city, days)

server.run()
```
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
    ToolError,
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
    from .blocks import Audio, Embedded, Image, PromptMessage, PromptResult, ResourceLink, Text, ToolResult
    from .client import Client, Progress, Question, ServerAbout
    from .listed import Change, ListedResource, ListedTemplate
    from .subscription_bus import SubscriptionBus

__all__ = [
    "AccessDeniedError",
    "AskFailedError",
    "Audio",
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
    "Embedded",
    "Guard",
    "Icon",
    "Image",
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
    "PromptMessage",
    "PromptResult",
    "Question",
    "RateLimitedError",
    "ReadFailedError",
    "ReadResult",
    "ReadTimeoutError",
    "RegistrationError",
    "Rejected",
    "Resource",
    "ResourceHandler",
    "ResourceLink",
    "ResourceNotFoundError",
    "ResourceServer",
    "Sample",
    "ServerAbout",
    "SizeExceededError",
    "StaticTokens",
    "SubscriptionBus",
    "TemplateConflictError",
    "TemplateSet",
    "Text",
    "Tls",
    "ToolError",
    "ToolResult",
    "UriTemplate",
    "Variable",
    "Verified",
    "providers",
]

_CLIENT = {"Client", "Progress", "Question", "ServerAbout"}
_LISTED = {"Change", "ListedResource", "ListedTemplate"}
_BLOCKS = {"Audio", "Embedded", "Image", "PromptMessage", "PromptResult", "ResourceLink", "Text", "ToolResult"}


def __dir__() -> list[str]:
    """What an editor or a notebook offers: the public names, also those that are loaded when they are used."""
    return __all__


def __getattr__(name: str) -> Any:
    """Loads the client and the blocks of tools when they are first used, since a server starts faster without them."""
    if name in _CLIENT:
        from . import client as module
    elif name in _LISTED:
        from . import listed as module  # type: ignore[no-redef]
    elif name in _BLOCKS:
        from . import blocks as module  # type: ignore[no-redef]
    elif name == "SubscriptionBus":
        from . import subscription_bus as module  # type: ignore[no-redef]
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(module, name)
    return value
