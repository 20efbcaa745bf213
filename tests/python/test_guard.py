"""The guard: the shared cases, the option in its forms, and what a client over HTTP is told (R-075, R-199, R-209)."""

import json
from pathlib import Path
from typing import Any

import pytest
import run_guard
from mcp_resources import Auth, Contents, Guard, Policy, RegistrationError, Resource, ResourceServer, Verified
from mcp_resources.testing import Client
from test_asgi import initialize, modern, request
from vectors import ROOT

FIXTURES = ROOT / "tests" / "fixtures" / "guard"
HIDDEN: Policy = {"deny": ["**/secret", "hidden://**"]}


@pytest.mark.parametrize(("name", "least"), [("globs", 60), ("decisions", 60), ("hostile", 300)])
def test_the_shared_cases(name: str, least: int) -> None:
    """S-11, S-12, S-18, S-19."""
    passed, failures = run_guard.run(json.loads((FIXTURES / f"{name}.json").read_text("utf-8"))["cases"])
    assert failures == []
    assert passed > least


def test_a_wrong_expectation_is_a_failure() -> None:
    for wrong in ({"allow": ["a://b"]}, {"never": ["c://b"]}, {"known": ["a://{x}"]}, {"refused": "allow"}):
        passed, failures = run_guard.run([{"name": "x", "policy": {"allow": "c://*"}, **wrong}])
        assert (passed, len(failures)) == (0, 1), wrong


async def test_a_policy_is_a_mapping_or_a_file(tmp_path: Path) -> None:
    text = tmp_path / "guard.yaml"
    text.write_text("deny:\n  - '**/secret'\n  - hidden://**\n")
    for policy in (HIDDEN, text, str(text)):
        server = ResourceServer("guarded", guard=policy)
        server.add_resource(Resource("x://a/secret"), text="secret")
        server.add_resource(Resource("x://a/open"), text="open")
        async with Client(server) as client:
            assert [resource["uri"] for resource in await client.list_resources()] == ["x://a/open"]
    text.write_text("deny: 7\n")
    for wrong in (text, {"allow": ["a b"]}, {"alow": "*"}, tmp_path / "none.json"):
        with pytest.raises(RegistrationError, match="guard: "):
            ResourceServer("guarded", guard=wrong)  # type: ignore[arg-type]
    with pytest.raises(RegistrationError, match="scopes"):
        ResourceServer("guarded").add_resource(Resource("x://a", scopes=["a b"]), text="")


def made(has_hidden: bool) -> ResourceServer:
    """A server under the policy, with what it hides or without."""
    server = ResourceServer("guarded", guard=HIDDEN, cache=True, limits={"page": 2})
    for uri in ("x://a/1", "x://b/1", "x://c/1"):
        server.add_resource(Resource(uri), text=uri)

    @server.resource("x://live/{n}/{part}", ttl_ms=60_000)
    def live(n: str, part: str) -> Any:
        extra = [Contents("secret", uri="x://b/secret")] if has_hidden else []
        return [Contents(f"{n} {part}"), *extra]

    @live.complete("part")
    def parts(value: str) -> list[str]:
        return ["secret", "1", "2"] if has_hidden else ["1", "2"]

    if has_hidden:
        server.add_resource(Resource("x://b/secret"), text="secret")
        server.add_resource(Resource("x://zz/secret"), text="secret")

        @server.resource("hidden://{n}")
        def hidden(n: int) -> str:
            raise AssertionError("a hidden resource is read")

    return server


def questions() -> list[tuple[str, dict[str, Any]]]:
    uris = ["x://b/secret", "X://b/%73ecret", "x://live/1/secret", "hidden://1", "hidden://x", "x://none"]
    asked: list[tuple[str, dict[str, Any]]] = [("resources/list", {}), ("resources/templates/list", {})]
    for uri in [*uris, "x://live/1/2", "x://live/1/2"]:
        asked += [("resources/read", {"uri": uri}), ("resources/subscribe", {"uri": uri})]
        reference = {"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "n", "value": ""}}
        asked.append(("completion/complete", reference))
    for template, name in (("hidden://{n}", "n"), ("x://live/{n}/{part}", "part")):
        reference = {"ref": {"type": "ref/resource", "uri": template}, "argument": {"name": name, "value": ""}}
        asked.append(("completion/complete", reference))
    return asked


async def test_what_is_hidden_is_told_like_what_is_not_there() -> None:
    """R-075, in both eras: status, headers and body are the same."""
    said: list[list[Any]] = []
    for has_hidden in (True, False):
        server = made(has_hidden)
        app, told = server.asgi(), []
        session = await initialize(app)
        for method, params in questions():
            for call in (modern(app, 1, method, **params), session.post(request(1, method, **params))):
                body = await call.json()
                # A sealed cursor is another one under the key of another process.
                if "nextCursor" in body.get("result", {}):
                    body["result"]["nextCursor"] = len(body["result"]["nextCursor"])
                # What is left of the time that it may be kept.
                if "ttlMs" in body.get("result", {}):
                    body["result"]["ttlMs"] = body["result"]["ttlMs"] > 0
                told.append((method, params, call.status, body))
        said.append(told)
    assert len(said[0]) == len(questions()) * 2
    for one, other in zip(*said, strict=True):
        assert one == other
    assert any("contents" in body.get("result", {}) for *_, body in said[0])


async def test_a_token_that_lacks_scopes_is_told_which() -> None:
    """R-199, R-206, DEC-27, R-209: a challenge over HTTP, and lists that differ."""

    async def verify(token: str) -> Verified:
        return Verified("alice", token.split("."))

    server = ResourceServer("guarded", guard={"scopes": {"db://**": "db", "db://h/**": ["audit"]}})
    server.add_resource(Resource("db://h/x", scopes=["root"]), text="x")
    server.add_resource(Resource("a://b"), text="b")
    app = server.asgi(auth=Auth("http://localhost/mcp", ["http://localhost:9"], verify, required_scopes=["mcp"]))

    def ask(token: str, method: str, **params: Any) -> Any:
        call = modern(app, 1, method, **params)
        call.scope["headers"].append((b"authorization", f"Bearer {token}".encode()))
        return call

    for _ in range(3):
        call = ask("mcp.db", "resources/read", uri="db://h/x")
        body = await call.json()
        assert (call.status, body["error"]["data"]["kind"]) == (403, "access_denied")
        challenge = call.headers["www-authenticate"]
        assert 'error="insufficient_scope"' in challenge
        assert 'scope="mcp audit root"' in challenge
    assert (await ask("mcp.db.audit.root", "resources/read", uri="db://h/x").json())["result"]["contents"]
    for token, uris in (("mcp", ["a://b"]), ("mcp.db.audit.root", ["a://b", "db://h/x"])):
        result = (await ask(token, "resources/list").json())["result"]
        assert [resource["uri"] for resource in result["resources"]] == uris
        assert result["cacheScope"] == "private"


async def test_without_a_token_there_is_no_challenge() -> None:
    """DEC-20: who has no token is told that there is nothing."""
    server = ResourceServer("guarded", guard={"scopes": {"db://**": "db"}})
    server.add_resource(Resource("db://x"), text="x")
    call = modern(server.asgi(), 1, "resources/read", uri="db://x")
    body = await call.json()
    assert (call.status, body["error"]["data"]["kind"]) == (200, "not_found")


def test_the_guard_on_its_own() -> None:
    guard = Guard({"allow": "a://**", "scopes": {"a://s/**": ["s"]}}, explicit_denials=True)
    assert guard.decide("A://x") == "allow"
    assert guard.decide("b://x") == "denied"
    assert guard.missing_scopes("a://s/x", principal="alice", scopes=["t"]) == ["s"]
    assert guard.decide("a://s/x", scopes=["s"]) == "allow"
    assert guard.knows_template("a://{x}")
