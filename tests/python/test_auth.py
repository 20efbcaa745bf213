"""Bearer tokens under a Python program: what verifiers give, how long it is kept, and the core's own verifiers."""

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import ssl
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, TypeAlias

import jwt
import pytest
from http_aside import serving_aside
from mcp_resources import (
    Auth,
    Context,
    InvalidTokenError,
    JwtVerifier,
    RegistrationError,
    ResourceServer,
    StaticTokens,
    Verified,
)
from test_asgi import post as asgi_post
from test_asgi import request
from test_http import META, post, serving
from vectors import MODERN, ROOT

KEYS = ROOT / "tests" / "rust" / "src" / "sockets" / "keys"
SIGNER = (KEYS / "signer.pem").read_text("utf-8")
JWKS = json.loads((KEYS / "jwks.json").read_text("utf-8"))
RESOURCE = "http://localhost/mcp"
ISSUER = "https://id.example.com"

Ask: TypeAlias = Callable[[str], Awaitable[tuple[int, Any]]]
"""Reads `me://x` with a token: the status, and what the handler was told."""


@pytest.fixture
def server() -> ResourceServer:
    made = ResourceServer("auth", version="1")

    @made.resource("me://x")
    def me(ctx: Context) -> str:
        return json.dumps({"principal": ctx.principal, "scopes": ctx.scopes, "claims": ctx.claims})

    return made


def told(status: int, answer: Any) -> tuple[int, Any]:
    text = answer["result"]["contents"][0]["text"] if status == 200 else "null"
    return status, json.loads(text)


@asynccontextmanager
async def native(server: ResourceServer, auth: Auth) -> AsyncIterator[Ask]:
    async with serving(server, auth=auth) as url:

        async def ask(token: str) -> tuple[int, Any]:
            return told(*await asyncio.to_thread(post, url, "resources/read", token, uri="me://x"))

        yield ask


@asynccontextmanager
async def asgi(server: ResourceServer, auth: Auth) -> AsyncIterator[Ask]:
    app = server.asgi(auth=auth)

    async def ask(token: str) -> tuple[int, Any]:
        headers = {"mcp_protocol_version": MODERN, "mcp_method": "resources/read", "mcp_name": "me://x"}
        message = request(1, "resources/read", uri="me://x", _meta=META)
        call = asgi_post(app, message, authorization=f"Bearer {token}", **headers)
        answer = await call.json()
        return told(call.status, answer)

    yield ask


both = pytest.mark.parametrize("way", [native, asgi])


def auth(verify: Any, **more: Any) -> Auth:
    return Auth(RESOURCE, [ISSUER], verify, **more)


@both
async def test_a_verified_token_is_kept_until_it_expires(way: Any, server: ResourceServer) -> None:
    """R-202."""
    asked: list[str] = []

    async def verify(token: str) -> Verified:
        asked.append(token)
        return Verified(token, expires={"kept": time.time() + 60, "past": time.time() - 1}.get(token))

    async with way(server, auth(verify)) as ask:
        statuses = [(await ask(token))[0] for token in ("kept", "kept", "once", "once", "past")]
    assert statuses == [200, 200, 200, 200, 401]
    assert asked == ["kept", "once", "once", "past"]


@both
async def test_a_revoked_subject_is_verified_again(way: Any, server: ResourceServer) -> None:
    """R-202: though its token was verified before, and has not expired."""
    withdrawn: set[str] = set()
    asked: list[str] = []

    async def verify(token: str) -> Verified:
        asked.append(token)
        if token in withdrawn:
            raise InvalidTokenError
        return Verified(token, expires=time.time() + 60)

    async with way(server, auth(verify)) as ask:
        assert [(await ask(token))[0] for token in ("eve", "bob", "eve", "bob")] == [200] * 4
        withdrawn.add("eve")
        server.revoke("eve")
        assert [(await ask(token))[0] for token in ("eve", "bob")] == [401, 200]
    assert asked == ["eve", "bob", "eve"]


@both
async def test_what_a_verifier_gives_is_checked(
    way: Any, server: ResourceServer, caplog: pytest.LogCaptureFixture
) -> None:
    bad: dict[str, tuple[Any, str]] = {
        "number": (Verified("ada", ["a", 7]), "item 1 is of type `int`"),  # type: ignore[list-item]
        "none": (None, "`verify` returned of type `NoneType`"),
        "subject": (Verified(7), "the subject of a verified token"),  # type: ignore[arg-type]
        "expires": (Verified("ada", expires=float("nan")), "`expires` of a verified token is nan"),
        "soon": (Verified("ada", expires="soon"), "'soon'; expected seconds"),  # type: ignore[arg-type]
    }
    good = {
        "text": Verified("ada", " a  b "),
        "odd": Verified("ada", ["a b", "c", ""], claims={"org": "x", "n": [1]}),
    }

    async def verify(token: str) -> Verified:
        return good[token] if token in good else bad[token][0]

    async with way(server, auth(verify, implied_scopes=[("c", "d")])) as ask:
        assert await ask("text") == (200, {"principal": "ada", "scopes": ["a", "b"], "claims": None})
        assert await ask("odd") == (200, {"principal": "ada", "scopes": ["c", "d"], "claims": {"org": "x", "n": [1]}})
        for token, (_, message) in bad.items():
            with caplog.at_level(logging.ERROR):
                caplog.clear()
                assert await ask(token) == (503, None), token
            assert message in caplog.text, token


@both
async def test_static_tokens(way: Any, server: ResourceServer) -> None:
    tokens = {"t0ken": Verified("ada", "a b", claims={"org": "x"}), "old": Verified("bob", expires=time.time() - 1)}
    verifier = StaticTokens(tokens)
    async with way(server, auth(verifier, required_scopes=["a"])) as ask:
        assert await ask("t0ken") == (200, {"principal": "ada", "scopes": ["a", "b"], "claims": {"org": "x"}})
        assert [(await ask(token))[0] for token in ("t0ke", "t0ken1", "T0KEN", "old")] == [401] * 4
    assert (await verifier.verify("t0ken")).scopes == ["a", "b"]
    with pytest.raises(InvalidTokenError):
        await verifier("x")
    with pytest.raises(ValueError, match="tokens: expected each to be made of letters"):
        StaticTokens({"a secret": Verified("ada")})


def token(header: dict[str, Any] | None = None, **claims: Any) -> str:
    good = {"sub": "ada", "iss": ISSUER, "aud": RESOURCE, "exp": time.time() + 600, "scope": "a b"}
    # Not `jwt.encode`, which refuses claims of a wrong type.
    payload = json.dumps(good | claims).encode()
    return jwt.PyJWS().encode(payload, SIGNER, "ES256", {"typ": "JWT", "kid": "test", **(header or {})})


def forged(header: str, secret: bytes | None) -> str:
    """A token with this header and the claims of a good one, signed with a secret or not at all."""
    message = b64(header.encode()) + "." + token().split(".")[1]
    return message + "." + (b64(hmac.digest(secret, message.encode(), hashlib.sha256)) if secret else "")


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@both
async def test_jwts(way: Any, server: ResourceServer) -> None:
    """R-202: neither a header nor an algorithm of the token's own is believed."""
    verifier = JwtVerifier(issuer=ISSUER, audience=[RESOURCE, "other"], keys=JWKS)
    public = JWKS["keys"][0]
    bad = [
        forged('{"alg":"HS256","kid":"test"}', json.dumps(JWKS).encode()),
        forged('{"alg":"HS256","kid":"test"}', public["x"].encode()),
        forged('{"alg":"none"}', None),
        forged('{"alg":"ES256","kid":"test"}', None),
        token({"kid": "other"}),
        token({"crit": ["exp"]}),
        token({"typ": "dpop+jwt"}),
        token(aud=["http://localhost/elsewhere"]),
        token(iss="https://evil.example.com"),
        token(iss=[ISSUER]),
        token(iss=[ISSUER, "https://evil.example.com"]),
        token(iss={"a": ISSUER}),
        token(exp=time.time() - 61.5),
        token(nbf=time.time() + 90),
        token(sub=""),
        "garbage",
    ]
    twice = b64(b'{"alg":"ES256","kid":"other","kid":"test"}')
    bad.append(twice + "." + token().split(".", 1)[1])
    async with way(server, auth(verifier)) as ask:
        status, who = await ask(token({"typ": "at+jwt"}, aud=["x", RESOURCE], exp=time.time() + 60.5))
        assert (status, who["principal"], who["scopes"], who["claims"]["iss"]) == (200, "ada", ["a", "b"], ISSUER)
        assert (await ask(token(aud="other")))[0] == 200
        for one in bad:
            assert (await ask(one))[0] == 401, one


@contextmanager
def issuing(kids: list[str]) -> Iterator[tuple[str, list[str]]]:
    """An issuer that publishes its key under these names, as they are now, and notes what it is asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = json.dumps({"keys": [JWKS["keys"][0] | {"kid": kid} for kid in kids]}).encode()
            self.send_response(200 if kids else 503)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with serving_aside(HTTPServer(("127.0.0.1", 0), Handler)) as issuer:
        yield f"http://127.0.0.1:{issuer.server_port}/keys", asked


@both
async def test_keys_of_an_issuer_are_fetched(way: Any, server: ResourceServer, monkeypatch: Any) -> None:
    """Those on this machine without the proxy of the environment, which could change them."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with issuing(["test"]) as (url, asked):
        verifier = JwtVerifier(issuer=ISSUER, audience=RESOURCE, jwks_url=url, algorithms=["ES256"])
        async with way(server, auth(verifier)) as ask:
            found = await asyncio.gather(*(ask(token(jti=str(number))) for number in range(8)))
            assert [status for status, _ in found] == [200] * 8
            assert (await ask(token({"kid": "invented"})))[0] == 401
        assert asked == ["/keys"]
    with issuing([]) as (url, _):
        verifier = JwtVerifier(issuer=ISSUER, audience=RESOURCE, jwks_url=url)
        async with way(server, auth(verifier)) as ask:
            assert (await ask(token()))[0] == 503


def test_what_a_jwt_verifier_cannot_use() -> None:
    make = partial(JwtVerifier, issuer=ISSUER, audience=RESOURCE)
    for options, message in (
        ({}, "give keys or jwks_url"),
        ({"keys": JWKS, "jwks_url": "https://x"}, "give keys or jwks_url"),
        ({"keys": {"keys": []}}, "none for signatures"),
        ({"keys": "{"}, "the keys cannot be used"),
        ({"jwks_url": "http://id.example.com/keys"}, "must begin with https://"),
        ({"keys": JWKS, "algorithms": ["HS256"]}, 'unexpected algorithm "HS256"; expected one of RS256'),
        ({"keys": JWKS, "algorithms": ["none"]}, 'unexpected algorithm "none"'),
        ({"keys": JWKS, "algorithms": []}, "no algorithm is named"),
    ):
        with pytest.raises(ValueError, match=message):
            make(**options)
    with pytest.raises(TypeError, match="expected a list of texts, such as"):
        make(keys=JWKS, algorithms="ES256")


def test_options_that_are_no_lists(server: ResourceServer) -> None:
    verifier = StaticTokens({})
    for options, message in (
        (
            {"authorization_servers": ISSUER},
            f"authorization_servers: expected a list of texts, such as \\['{ISSUER}'\\]",
        ),
        ({"required_scopes": "a b"}, "required_scopes: expected a list"),
        ({"scopes_supported": ["a", 7]}, "scopes_supported: expected a list of texts; item 1 is of type `int`"),
    ):
        with pytest.raises(TypeError, match=message):
            Auth(**({"resource": RESOURCE, "authorization_servers": [ISSUER], "verify": verifier} | options))
    for scopes in ("a b", 7, ["a", 7]):
        with pytest.raises((TypeError, RegistrationError)):
            server.resource("x://{y}", scopes=scopes)(lambda y: y)  # type: ignore[arg-type]


def test_a_limit_that_is_none() -> None:
    for value, error in ((-1, ValueError), (2**64, ValueError), (1.5, TypeError), ("1", TypeError), (True, TypeError)):
        with pytest.raises(error, match=f'the limit "message" is {value!r}; expected a whole number from 0 to 184467'):
            ResourceServer("x", limits={"message": value})  # type: ignore[typeddict-item]


async def test_tls(server: ResourceServer) -> None:
    files = {"cert": KEYS / "certificate.pem", "key": KEYS / "tls.pem"}
    context = ssl.create_default_context(cafile=str(files["cert"]))
    async with serving(server, tls=files, health="/health") as url:
        assert url.startswith("https://127.0.0.1:")

        def get() -> bytes:
            with urllib.request.urlopen(url.replace("/mcp", "/health"), timeout=30, context=context) as response:
                return bytes(response.read())

        assert await asyncio.to_thread(get) == b"ok\n"


async def test_tls_that_cannot_be_used(server: ResourceServer) -> None:
    cert, key = KEYS / "certificate.pem", KEYS / "tls.pem"
    for tls, message in (
        ({"cert": cert, "key": KEYS / "none.pem"}, "none.pem: expected a private key in PEM"),
        ({"cert": key, "key": key}, "tls.pem: expected certificates in PEM"),
        ({"cert": cert, "key": KEYS / "signer.pem"}, "signer.pem: expected the private key of the certificate"),
        ({"cert": cert}, "tls: expected {'cert': PATH, 'key': PATH}"),
        (str(cert), "tls: expected {'cert': PATH, 'key': PATH}"),
    ):
        with pytest.raises(RegistrationError, match=message):
            await server.serve_http(port=0, tls=tls)  # type: ignore[arg-type]


@both
async def test_a_listen_ends_with_its_token(way: Any, server: ResourceServer) -> None:
    """R-202: the token expires while the stream is open, and nothing else happens."""
    server.resource("note://a")(lambda: "x")

    async def verify(token: str) -> Verified:
        return Verified("ada", expires=time.time() + 1)

    params = {"notifications": {"resourceSubscriptions": ["note://a"]}}
    if way is asgi:
        headers = {"mcp_protocol_version": MODERN, "mcp_method": "subscriptions/listen", "authorization": "Bearer t"}
        message = request(1, "subscriptions/listen", **params, _meta=META)
        listen = asgi_post(server.asgi(auth=auth(verify)), message, **headers)
        assert "result" in await listen.json()
        return
    async with serving(server, auth=auth(verify)) as url:
        body = await asyncio.to_thread(stream, url, params)
    messages = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: {")]
    assert "result" in messages[-1], body


def stream(url: str, params: dict[str, Any]) -> str:
    """The messages of a listen until the server ends it. Blocks."""
    message = request(1, "subscriptions/listen", **params, _meta=META)
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": "subscriptions/listen",
        "authorization": "Bearer t",
    }
    asked = urllib.request.Request(url, json.dumps(message).encode(), headers)
    with urllib.request.urlopen(asked, timeout=30) as response:
        return str(response.read(), "utf-8")
