"""Bearer tokens: what an HTTP endpoint asks for, and what it says of it (RFC 6750, RFC 9728)."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import McpError
from .results import to_json

__all__ = ["Auth", "InvalidToken", "Verified"]


class InvalidToken(McpError):
    """The token is not valid, has expired, or was made for another audience. Raised by `Auth.verify`."""

    kind = "invalid_token"


@dataclass(frozen=True, slots=True)
class Verified:
    """A token that was verified: signature, expiry, issuer and audience."""

    subject: str
    """Who it stands for: what sessions, cursors and request states are bound to."""
    scopes: Sequence[str] = ()
    """What it may be used for."""
    expires: float | None = None
    """When it expires, in seconds since 1970: until then it need not be verified again. Default: each time."""


@dataclass(frozen=True, slots=True)
class Auth:
    """What bearer tokens must be."""

    resource: str
    """The URL of the endpoint as clients know it: the audience of tokens."""
    authorization_servers: Sequence[str]
    """The servers that give tokens for it; at least one."""
    verify: Callable[[str], Awaitable[Verified]]
    """Verifies a token. Raises `InvalidToken`; anything else means that it could not be found out now."""
    required_scopes: Sequence[str] = ()
    """What every request needs."""
    scopes_supported: Sequence[str] = ()
    """What a client may ask for."""
    implied_scopes: Iterable[tuple[str, str]] = ()
    """Which narrower scopes a broader one includes, as (broader, narrower)."""
    authorization_server_document: Mapping[str, object] | None = None
    """The authorization server's metadata, for clients of 2025-03-26, which look for it here."""


def fields(auth: Auth) -> dict[str, Any]:
    """What the core takes of it."""
    document = auth.authorization_server_document
    return {
        "resource": auth.resource,
        "authorization_servers": [*auth.authorization_servers],
        "required_scopes": [*auth.required_scopes],
        "scopes_supported": [*auth.scopes_supported],
        "implied_scopes": [*auth.implied_scopes],
        "authorization_server_document": None if document is None else to_json(document),
    }
