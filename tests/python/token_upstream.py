"""A server over HTTP that wants a token, and the authorization server that gives it, for the tests of the gateway.

`TokenUpstream` notes the header `Authorization` of each request to `/mcp`, and the form and the credentials of each to
`/token`. A token is good for `lasts` seconds; `revoke` ends all that were given.
"""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote_plus

SECRET = "s3cret:of/the gateway"


class TokenUpstream(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, lasts: int = 3600) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lasts = lasts
        self.given: list[str] = []
        self.good: set[str] = set()
        self.asked: list[dict[str, Any]] = []
        self.seen: list[str | None] = []
        self.refuses = False
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def revoke(self) -> None:
        self.good.clear()


class Handler(BaseHTTPRequestHandler):
    server: TokenUpstream
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0"))).decode()
        if self.path == "/token":
            return self.token(body)
        authorization = self.headers.get("authorization")
        with self.server.lock:
            self.server.seen.append(authorization)
        if authorization not in {f"Bearer {token}" for token in self.server.good}:
            return self.send(401, {"error": "unauthorized"})
        return self.send(200, answer(json.loads(body)))

    def token(self, body: str) -> None:
        basic = base64.b64decode(self.headers["authorization"].removeprefix("Basic ")).decode()
        id, _, secret = basic.partition(":")
        form = {name: values[0] for name, values in parse_qs(body).items()}
        with self.server.lock:
            self.server.asked.append(form | {"id": unquote_plus(id), "secret": unquote_plus(secret)})
            if self.server.refuses:
                return self.send(401, {"error": "invalid_client"})
            token = f"token-{len(self.server.given)}"
            self.server.given.append(token)
            self.server.good.add(token)
        return self.send(200, {"access_token": token, "token_type": "bearer", "expires_in": self.server.lasts})

    def send(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """What the server says: it has one resource."""
    hint = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    results: dict[str, dict[str, Any]] = {
        "server/discover": {
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"resources": {}},
            "serverInfo": {"name": "tokens", "version": "1"},
        },
        "resources/list": {"resources": [{"uri": "note://t", "name": "t"}]},
        "resources/templates/list": {"resourceTemplates": []},
        "resources/read": {"contents": [{"uri": "note://t", "text": "for tokens"}]},
    }
    found = results.get(message["method"])
    if found is None:
        return {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": -32601, "message": "Method not found"}}
    return {"jsonrpc": "2.0", "id": message.get("id"), "result": hint | found}
