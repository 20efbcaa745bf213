"""Bearer tokens of an HTTP endpoint: how they are verified, and what its metadata says (RFC 6750, RFC 9728)."""

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from . import checks
from ._core import Guard, Server, TokenVerifier
from .encoding import to_json
from .errors import McpError
from .loops import running_loop

__all__ = ["Auth", "InvalidTokenError", "JwtVerifier", "StaticTokens", "Verified"]


class InvalidTokenError(McpError):
    """The token is not valid, has expired, or was issued for another audience. Raised by `Auth.verify`."""

    kind = "invalid_token"


@dataclass(frozen=True, slots=True)
class Verified:
    """A token that was verified: its signature, expiry, issuer and audience are right."""

    subject: str
    """The identity of the client: `ctx.principal`. Sessions, cursors and request states belong to it."""
    scopes: Sequence[str] = ()
    """The scopes of the token: a list, or one text with spaces between them, as OAuth writes them. Default: none."""
    expires: float | None = None
    """When the token expires, in seconds since 1970. It is not verified again before that, nor longer than
    `Limits.token_ttl`. Default: it is verified for each request."""
    claims: Mapping[str, Any] | None = None
    """The claims that handlers get as `ctx.claims`. Default: none."""
    allow: Sequence[str] | None = None
    """Globs over URIs: in addition to the policy of the server, the client sees only what matches one of them. Default:
    everything that the policy allows."""
    deny: Sequence[str] = ()
    """Globs over URIs that the client does not see, even if they are allowed. Default: none."""


Parts: TypeAlias = tuple[str, list[str], int | None, str | None, list[str] | None, list[str]]
"""A verified token as the compiled part takes it: subject, scopes, expiry in milliseconds, claims as JSON text,
and the globs that it allows and denies."""


Verify: TypeAlias = Callable[[str], Awaitable[Verified]]
"""Verifies a token."""


class _Compiled:
    """A verifier of the compiled part. The native HTTP server calls it without the interpreter."""

    __slots__ = ("_compiled",)

    def __init__(self, compiled: TokenVerifier) -> None:
        self._compiled = compiled

    async def verify(self, token: str) -> Verified:
        """Verifies a token.

        Raises:
            InvalidTokenError: the token is not valid.
            OSError: the keys cannot be fetched at the moment.
        """
        loop, woken = running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(woken.set)

        check = self._compiled.check(token)
        while True:
            is_over, found, is_unavailable = check.poll(wake)
            if is_over:
                break
            await woken.wait()
            woken.clear()
        if found is None:
            raise OSError("the keys of the issuer cannot be fetched") if is_unavailable else InvalidTokenError
        subject, scopes, expires, claims, allow, deny = found
        return Verified(subject, scopes, None if expires is None else expires / 1000, _loads(claims), allow, deny)

    __call__ = verify


class StaticTokens(_Compiled):
    """Accepts a fixed list of tokens: for tests, or for a few clients whose tokens an administrator creates.

    Compares the SHA-256 of tokens in constant time. Each token should have at least 128 random bits.
    """

    __slots__ = ()

    def __init__(self, tokens: Mapping[str, Verified]) -> None:
        """Makes a verifier.

        Args:
            tokens: the tokens, each with the identity and the scopes that it stands for.

        Raises:
            TypeError: `tokens` is not a dict, or a value is not a `Verified`.
            ValueError: a token has characters that an `Authorization` header cannot carry.
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

    The subject is the claim `sub` or, without one, `client_id:` followed by the claim `client_id`. The scopes are those
    of the claim `scope` or `scp`. Tokens that are unsigned or signed with a shared secret (HS256) are never accepted.
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
        """Makes a verifier with `keys` or with `jwks_url`: exactly one of them.

        Args:
            issuer: the issuer, compared with the claim `iss`.
            audience: one or several audiences, usually `Auth.resource`. The claim `aud` must contain one of them.
            keys: the keys as a JWKS, a mapping or JSON text.
            jwks_url: the URL of the JWKS: `https`, or `http` on this machine. It is fetched for the first token, then
                every ten minutes, and for a token with an unknown key at most twice a minute.
            algorithms: the signature algorithms that are accepted, such as `ES256`. Default: all that fit the key.
            leeway: the largest difference between the clocks of the issuer and the server, in seconds. Default 60.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: the keys, the URL or an algorithm cannot be used.
        """
        checks.text("issuer", issuer)
        if (keys is None) == (jwks_url is None):
            got = "neither" if keys is None else "both"
            raise ValueError(f"JwtVerifier needs the keys or the URL of the keys: give keys or jwks_url, got {got}")
        if jwks_url is not None:
            checks.text("jwks_url", jwks_url)
        if not isinstance(leeway, int) or leeway < 0:
            raise TypeError(f"leeway is {leeway!r}, expected a whole number of seconds from 0")
        audiences = [audience] if isinstance(audience, str) else listed("audience", audience)
        given = None if keys is None else keys if isinstance(keys, str) else to_json(keys)
        named = None if algorithms is None else listed("algorithms", algorithms)
        super().__init__(TokenVerifier.jwt(issuer, audiences, given, jwks_url, named, leeway))


@dataclass(frozen=True, slots=True)
class Auth:
    """Requires bearer tokens at an HTTP endpoint (RFC 9728).

    Raises:
        TypeError: a field has the wrong type.
    """

    resource: str
    """The URL of the endpoint as clients know it. Tokens must be issued for it: it is their audience."""
    authorization_servers: Sequence[str]
    """The URLs of the authorization servers that issue tokens for the endpoint; at least one."""
    verify: Verify
    """Verifies a token: an `async` function, a `JwtVerifier` or `StaticTokens`.

    Raises `InvalidTokenError` for a token that is not valid: the client gets status 401. Any other exception means that
    the token could not be verified now: it is logged, and the client gets status 503."""
    required_scopes: Sequence[str] = ()
    """The scopes that every request needs. Default: none."""
    scopes_supported: Sequence[str] = ()
    """The scopes that clients may request, for the metadata of the endpoint. Default: none."""
    implied_scopes: Iterable[tuple[str, str]] = ()
    """Pairs of scopes (broader, narrower): a token with the first one also has the second. Default: none."""
    authorization_server_document: Mapping[str, object] | None = None
    """The metadata of the authorization server, for clients of 2025-03-26, which fetch it from this endpoint.

    Default: none."""

    def __post_init__(self) -> None:
        """Checks the fields, so that a mistake is reported where it is made."""
        checks.text("resource", self.resource)
        fields(self)
        if isinstance(self.verify, type):
            name = self.verify.__name__
            raise TypeError(f"verify is the class {name}, expected an object of it: {name}(…)")
        if not callable(self.verify):
            raise TypeError(f"verify is {self.verify!r}, expected an async function, a JwtVerifier or StaticTokens")


def checked(auth: Auth | None) -> None:
    """Checks the argument `auth`.

    Raises:
        TypeError: it is neither `None` nor an `Auth`.
    """
    if auth is not None and not isinstance(auth, Auth):
        raise TypeError(
            f"auth is of type `{type(auth).__name__}`, expected Auth(resource, authorization_servers, verify)"
        )


async def verified(verify: Verify, token: str) -> Verified:
    """Verifies a token with the function of an `Auth`.

    Raises:
        TypeError: the function is not `async`.
    """
    found: object = verify(token)
    if not inspect.isawaitable(found):
        raise TypeError(f"`verify` returned {_kind(found)} at once; write it as `async def`")
    return cast(Verified, await found)


def fields(auth: Auth) -> dict[str, Any]:
    """The fields of an `Auth` as the compiled part takes them."""
    for pair in auth.implied_scopes:
        if isinstance(pair, str) or not isinstance(pair, Iterable) or len(listed("implied_scopes", pair)) != 2:
            raise TypeError(f"implied_scopes has the item {pair!r}, expected a pair of scopes (broader, narrower)")
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
    """The verifier that the native server can call without Python; `None` if there is none."""
    return auth.verify._compiled if auth is not None and isinstance(auth.verify, _Compiled) else None


def verifier(server: Server, auth: Auth | None) -> Verify | None:
    """The function that verifies tokens: that of `auth`, or of the server's configuration file."""
    if auth is not None:
        return auth.verify
    return None if server.verifier is None else _Compiled(server.verifier)


def parts(verified: Verified) -> Parts:
    """A verified token as the compiled part takes it.

    Raises:
        TypeError: `verify` returned something else than a `Verified`, or one of its fields has the wrong type.
    """
    if not isinstance(verified, Verified):
        raise TypeError(f"`verify` returned {_kind(verified)}; expected a `Verified`")
    if not isinstance(verified.subject, str):
        raise TypeError(f"the subject of a verified token is {_kind(verified.subject)}; expected a `str`")
    scopes = verified.scopes
    scopes = scopes.split() if isinstance(scopes, str) else listed("the scopes of a verified token", scopes)
    expires = verified.expires
    if expires is not None and not (isinstance(expires, int | float) and math.isfinite(expires)):
        fix = ", such as expires.timestamp()" if hasattr(expires, "timestamp") else ""
        raise TypeError(f"`expires` of a verified token is {expires!r}; expected seconds since 1970{fix}")
    milliseconds = None if expires is None else min(max(0, int(expires * 1000)), 2**63)
    claims = None if verified.claims is None else to_json(verified.claims)
    return verified.subject, scopes, milliseconds, claims, *_globs(verified)


def _globs(verified: Verified) -> tuple[list[str] | None, list[str]]:
    """The globs that a verified token allows and denies.

    Raises:
        TypeError: they are no lists of texts.
        RegistrationError: one is no glob.
    """
    allow = None if verified.allow is None else listed("`allow` of a verified token", verified.allow)
    deny = listed("`deny` of a verified token", verified.deny)
    if allow is not None or deny:
        Guard({"deny": deny} | ({} if allow is None else {"allow": allow}), False)
    return allow, deny


def listed(name: str, given: Iterable[str]) -> list[str]:
    """A list of texts.

    Raises:
        TypeError: it is one text, no iterable, or one of its items is not a text.
    """
    if isinstance(given, str):
        raise TypeError(f"{name}: expected a list of texts, such as [{given!r}], and not the text {given!r}")
    if not isinstance(given, Iterable):
        raise TypeError(f"{name}: expected a list of texts, and not a value {_kind(given)}")
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
