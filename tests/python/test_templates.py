"""`UriTemplate` and `TemplateSet` by themselves. What matches what is the shared corpus's to test."""

import pytest
from mcp_resources import (
    InvalidTemplateError,
    InvalidUriError,
    Match,
    NoMatch,
    Rejected,
    TemplateConflictError,
    TemplateSet,
    UriTemplate,
    Variable,
)


def test_expansion() -> None:
    template = UriTemplate("docs://{name}{?tags*,page}")
    assert template.expand(name="設計.md") == "docs://%E8%A8%AD%E8%A8%88.md"
    assert template.expand({"name": "a b", "tags": ["x", "y"]}, page=2) == "docs://a%20b?tags=x&tags=y&page=2"
    assert template.expand(name=None) == "docs://"
    assert UriTemplate("a://h{?m*}").expand(m={"k": True}) == "a://h?k=true"
    assert str(template) == "docs://{name}{?tags*,page}"
    assert repr(template) == 'UriTemplate("docs://{name}{?tags*,page}")'
    with pytest.raises(TypeError):
        template.expand(name=b"bytes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="prefix"):
        UriTemplate("a://{x:3}").expand(x=["a"])


def test_matching() -> None:
    template = UriTemplate("a://h{/path*}{?ids,m*}", {"ids": Variable("list"), "m": Variable("map")})
    found = template.match("a://h/x/y?ids=1,2&k=v")
    assert isinstance(found, Match)
    assert found
    assert found.template == "a://h{/path*}{?ids,m*}"
    assert found.params == {"path": ["x", "y"], "ids": ["1", "2"], "m": {"k": "v"}}
    missed = template.match("b://h")
    assert isinstance(missed, NoMatch)
    assert not missed
    rejected = UriTemplate("a://h/{x}").match("a://h/a%2Fb")
    assert isinstance(rejected, Rejected)
    assert not rejected
    assert (rejected.template, rejected.variable, rejected.why) == ("a://h/{x}", "x", "Slash")
    assert UriTemplate("a://h/{x}", {"x": Variable(policy="any")}).match("a://h/a%2Fb")
    assert not UriTemplate("a://h{?x}", extra_query="reject").match("a://h?x=1&y=2")
    with pytest.raises(InvalidUriError):
        template.match("no uri")


def test_variables() -> None:
    variables = UriTemplate("a://{x}/{+rest}{?q}", {"x": Variable(empty=True)}).variables
    assert list(variables) == ["x", "rest", "q"]
    assert [(v.kind, v.policy, v.required) for v in variables.values()] == [
        ("scalar", "segment", True),
        ("scalar", "path", True),
        ("scalar", "text", False),
    ]
    assert [v.empty for v in variables.values()] == [True, False, False]
    assert repr(Variable("list")) == 'Variable("list", None, empty=False, chars="operator")'
    with pytest.raises(ValueError, match="kind is"):
        Variable("lists")  # type: ignore[arg-type]


def test_a_set_prefers_the_most_specific() -> None:
    for texts in (["a://{x}", "a://one{?q}"], ["a://one{?q}", "a://{x}"]):
        templates = TemplateSet(texts)
        assert len(templates) == 2
        found = templates.match("A://one")
        assert isinstance(found, Match)
        assert found.template == "a://one{?q}"
    assert not TemplateSet([UriTemplate("a://{x}")]).match("b://x")
    with pytest.raises(TemplateConflictError) as conflict:
        TemplateSet(["a://{x}", UriTemplate("a://{y}")])
    assert {conflict.value.template, conflict.value.other} == {"a://{x}", "a://{y}"}
    with pytest.raises(InvalidTemplateError) as invalid:
        TemplateSet(["a://{x}{y}"])
    assert invalid.value.offset > 0
