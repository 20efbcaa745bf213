"""Bearer tokens: what an HTTP endpoint asks for, and what it says of it (RFC 6750, RFC 9728)."""

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from ._core import TokenVerifier
from .encoding import to_json
from .errors import McpError

__all__ = ["Auth", "InvalidToken", "InvalidTokenError", "JwtVerifier", "StaticTokens", "Verified"]


class InvalidTokenError(McpError):
    """The token is not valid, has expired, or was made for another audience. Raised by `Auth.verify`."""

    kind = "invalid_token"


InvalidToken = InvalidTokenError
"""The earlier name: the same class."""


@dataclass(frozen=True, slots=True)
class Verified:
    """A token that was verified: signature, expiry, issuer and audience."""

    subject: str
    """Who it stands for: what sessions, cursors and request states are bound to."""
    scopes: Sequence[str] = ()
    """What it may be used for; a text holds scopes with spaces between them, as OAuth writes them."""
    expires: float | None = None
    """When it expires, in seconds since 1970: until then it need not be verified again. Default: each time."""
    claims: Mapping[str, Any] | None = None
    """What handlers are given as `ctx.claims`. Default: nothing."""


Parts: TypeAlias = tuple[str, list[str], int | None, str | None]
"""A verified token as the compiled part takes it: subject, scopes, expiry in milliseconds, and claims as JSON text."""


class _Compiled:
    """A verifier of the compiled part. The native server asks it without the interpreter."""

    __slots__ = ("_compiled",)

    def __init__(self, compiled: TokenVerifier) -> None:
        self._compiled = compiled

    async def verify(self, token: str) -> Verified:
        """Verifies a token.

        Raises:
            InvalidToken: it is not good.
            OSError: the keys cannot be had at the moment.
        """
        loop, rung = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(rung.set)

        check = self._compiled.check(token)
        while True:
            is_over, found, is_unavailable = check.poll(wake)
            if is_over:
                break
            await rung.wait()
            rung.clear()
        if found is None:
            raise OSError("the keys cannot be had") if is_unavailable else InvalidToken
        subject, scopes, expires, claims = found
        return Verified(subject, scopes, None if expires is None else expires / 1000, _loads(claims))

    __call__ = verify


class StaticTokens(_Compiled):
    """Verifies tokens by a list: for tests, or for a few clients whose tokens an administrator makes.

    Tokens are compared by their SHA-256 in constant time. Each should have at least 128 random bits.
    """

    __slots__ = ()

    def __init__(self, tokens: Mapping[str, Verified]) -> None:
        """Takes each token with what it stands for.

        Raises:
            ValueError: a token could not stand in an `Authorization` header.
        """
        if not isinstance(tokens, Mapping):
            raise TypeError(f"tokens is {_kind(tokens)}; expected a dict, such as {{'TOKEN': Verified('alice')}}")
        # The token itself is not repeated: an error ends in a log.
        for verified in tokens.values():
            if not isinstance(verified, Verified):
                raise TypeError(f'a token stands for a value {_kind(verified)}; expected a Verified: Verified("alice")')
        super().__init__(TokenVerifier.listed([(token, parts(verified)) for token, verified in tokens.items()]))


class JwtVerifier(_Compiled):
    """Verifies signed JWTs (RFC 9068): type, signature, `exp`, `nbf`, `iss` and `aud`.

    The subject is the token's `sub`; in a token without one `client_id:` and its `client_id`. The scopes are those of
    `scope` or `scp`. Shared secrets (HS256) and unsigned tokens are never accepted.
    """

    __slots__ = ()

    def __init__(
        self,
        *,
        issuer: str,
        audience: str | Sequence[str],
        keys: Mapping[str, Any] | str | None = None,
        jwks_url: str | None = None,
        algorithms: Iterable[str] | None = None,
        leeway: int = 60,
    ) -> None:
        """Takes the keys, or the URL to get them from.

        Args:
            issuer: the `iss` of tokens.
            audience: the `aud` of tokens, or several of which one is enough: as a rule `Auth.resource`.
            keys: a JWKS, as a mapping or JSON text.
            jwks_url: where the JWKS is: `https`, or `http` on this machine. It is asked for the first token, then every
                ten minutes, and for a token with an unknown key at most twice a minute.
            algorithms: what tokens may be signed with, such as `ES256`. Default: each that fits the key.
            leeway: how far the clocks of issuer and server may be apart, in seconds.

        Raises:
            ValueError: the keys, the URL or an algorithm cannot be used.
        """
        audiences = [audience] if isinstance(audience, str) else [*audience]
        given = None if keys is None else keys if isinstance(keys, str) else to_json(keys)
        named = None if algorithms is None else listed("algorithms", algorithms)
        super().__init__(TokenVerifier.jwt(issuer, audiences, given, jwks_url, named, leeway))


@dataclass(frozen=True, slots=True)
class Auth:
    """What bearer tokens must be."""

    resource: str
    """The URL of the endpoint as clients know it: the audience of tokens."""
    authorization_servers: Sequence[str]
    """The servers that give tokens for it; at least one."""
    verify: Callable[[str], Awaitable[Verified]]
    """Verifies a token. Raises `InvalidToken`; anything else means that it could not be found out now.

    A function of yours, a `JwtVerifier` or `StaticTokens`."""
    required_scopes: Sequence[str] = ()
    """What every request needs."""
    scopes_supported: Sequence[str] = ()
    """What a client may ask for."""
    implied_scopes: Iterable[tuple[str, str]] = ()
    """Which narrower scopes a broader one includes, as (broader, narrower)."""
    authorization_server_document: Mapping[str, object] | None = None
    """The authorization server's metadata, for clients of 2025-03-26, which look for it here."""

    def __post_init__(self) -> None:
        """Refuses at once what no endpoint would take."""
        fields(self)
        if not callable(self.verify):
            raise TypeError(f"verify is {self.verify!r}, expected an async function, a JwtVerifier or StaticTokens")


def checked(auth: Auth | None) -> None:
    """Refuses what is no `Auth`.

    Raises:
        TypeError: it is something else.
    """
    if auth is not None and not isinstance(auth, Auth):
        raise TypeError(
            f"auth is of type `{type(auth).__name__}`, expected Auth(resource, authorization_servers, verify)"
        )


async def verified(auth: Auth, token: str) -> Verified:
    """What `verify` says of a token.

    Raises:
        TypeError: it is no async function.
    """
    found: object = auth.verify(token)
    if not inspect.isawaitable(found):
        raise TypeError(f"`verify` returned {_kind(found)} at once; write it as `async def`")
    return cast(Verified, await found)


def fields(auth: Auth) -> dict[str, Any]:
    """What the core takes of it."""
    document = auth.authorization_server_document
    return {
        "resource": auth.resource,
        "authorization_servers": listed("authorization_servers", auth.authorization_servers),
        "required_scopes": listed("required_scopes", auth.required_scopes),
        "scopes_supported": listed("scopes_supported", auth.scopes_supported),
        "implied_scopes": [*auth.implied_scopes],
        "authorization_server_document": None if document is None else to_json(document),
    }


def compiled(auth: Auth | None) -> TokenVerifier | None:
    """The verifier that the native server can ask by itself."""
    return auth.verify._compiled if auth is not None and isinstance(auth.verify, _Compiled) else None


def parts(verified: Verified) -> Parts:
    """What the core takes of a verified token.

    Raises:
        TypeError: the author's function gave something else.
    """
    if not isinstance(verified, Verified):
        raise TypeError(f"`verify` returned {_kind(verified)}; expected a `Verified`")
    if not isinstance(verified.subject, str):
        raise TypeError(f"the subject of a verified token is {_kind(verified.subject)}; expected a `str`")
    scopes = verified.scopes
    scopes = scopes.split() if isinstance(scopes, str) else listed("the scopes of a verified token", scopes)
    expires = verified.expires
    if expires is not None and not (isinstance(expires, int | float) and math.isfinite(expires)):
        raise TypeError(f"`expires` of a verified token is {expires!r}; expected seconds since 1970")
    milliseconds = None if expires is None else min(max(0, int(expires * 1000)), 2**63)
    return verified.subject, scopes, milliseconds, None if verified.claims is None else to_json(verified.claims)


def listed(name: str, given: Iterable[str]) -> list[str]:
    """A list of texts.

    Raises:
        TypeError: it is one text, or something in it is no text.
    """
    if isinstance(given, str):
        raise TypeError(f"{name}: expected a list of texts, such as [{given!r}], and not the text {given!r}")
    found = [*given]
    for at, item in enumerate(found):
        if not isinstance(item, str):
            raise TypeError(f"{name}: expected a list of texts; item {at} is {_kind(item)}")
    return found


def _kind(value: object) -> str:
    return f"of type `{type(value).__name__}`"


def _loads(text: str | None) -> Any:
    import json  # not every server needs it, and each is to start quickly

    return None if text is None else json.loads(text)
