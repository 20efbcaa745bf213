"""The access policy of a server, and `Guard`, which applies one outside of a server."""

import os
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, TypedDict

from . import _core, checks

__all__ = ["Decision", "Guard", "NamePolicy", "Policy", "PrincipalPolicy", "Rate", "Rates"]

Decision: TypeAlias = Literal["allow", "hidden", "denied", "missing_scope"]
_OneOrMany: TypeAlias = str | Sequence[str]


class Rate(TypedDict, total=False):
    """A rate limit of one principal."""

    per_second: float
    """Requests per second, on average. Required; more than 0."""
    burst: int
    """Requests at once. Default: as many as in one second, at least 1."""


class Rates(TypedDict, total=False):
    """The rate limits of one principal, for each kind of request. `None` stands for the default."""

    read: Rate | None
    """Reads. Default: no limit."""
    completion: Rate | None
    """Completions. Default: 200 per second, 400 at once."""
    list: Rate | None
    """Pages of lists. Default: no limit."""
    subscribe: Rate | None
    """Subscriptions and listens. Default: no limit."""
    call: Rate | None
    """Tools, prompts and custom methods. Default: no limit."""
    shared: bool
    """Whether the processes of the server count together. Needs a `bus` on Redis. Default `False`: each process
    counts for itself."""


class NamePolicy(TypedDict, total=False):
    """The names of tools or prompts that clients see. In a glob `*` is any run of characters, and `?` one character."""

    allow: _OneOrMany | None
    """Globs: the names that clients see; to them, others do not exist. Default `*`: all."""
    deny: _OneOrMany
    """Globs: names that clients do not see, even if `allow` has them. Default: none."""


class PrincipalPolicy(TypedDict, total=False):
    """Restrictions of the policy for one principal."""

    allow: _OneOrMany | None
    """Globs: the principal sees the URIs that both this and the policy allow. Default: those of the policy."""
    deny: _OneOrMany
    """Globs: URIs that are hidden from the principal, in addition to those of the policy. Default: none."""
    tools: NamePolicy
    """The tools that the principal sees, among those of the policy. Default: the same."""
    prompts: NamePolicy
    """The prompts that the principal sees, among those of the policy. Default: the same."""
    scopes: _OneOrMany
    """Scopes that the principal has in addition to those of its token. Default: none."""


class Policy(TypedDict, total=False):
    """An access policy, with the same keys as a policy file. Globs are matched against canonical URIs.

    In the globs of `allow`, `deny`, `scopes` and `groups`, `{principal}` is the identity of the client, and `{group}`
    each of its groups.
    """

    allow: _OneOrMany | None
    """Globs: the URIs that clients see; to them, others do not exist. Default `*`: all."""
    deny: _OneOrMany
    """Globs: URIs that clients do not see, even if `allow` has them. Default: none."""
    scopes: Mapping[str, _OneOrMany]
    """The scopes that a token must have for the URIs of a glob. Default: none."""
    groups: Mapping[str, _OneOrMany]
    """The groups that may use the URIs of a glob. Only members of one of them see these URIs; a scope counts as a
    group. Default: none."""
    principals: Mapping[str, PrincipalPolicy]
    """Restrictions for single principals, by their identity; the client on stdio is `""`. Default: none."""
    tools: NamePolicy
    """The tools that clients see. Default: all."""
    prompts: NamePolicy
    """The prompts that clients see. Default: all."""
    rate: Rates
    """The rate limits of each principal. Default: see `Rates`."""
    concurrency: int | None
    """The largest number of unanswered requests of one principal. Default: no limit."""
    max_size: Mapping[str, int]
    """The largest contents of one read, in bytes, for the URIs of a glob. Default: no limit."""
    redact: _OneOrMany
    """The names of the detectors whose finds in texts are replaced by `[redacted:NAME]`. Default: none."""


class Guard:
    """Applies an access policy outside of a server, for tests and for your own functions.

    Args:
        policy: the policy, or the path of a JSON or YAML file.
        explicit_denials: whether `decide` returns `denied` instead of `hidden`. Default `False`.

    Raises:
        TypeError: `policy` is neither a dict nor a path.
        RegistrationError: the policy has an unknown key or a value that is not allowed, or the file cannot be read.
    """

    def __init__(self, policy: Policy | str | os.PathLike[str], *, explicit_denials: bool = False) -> None:
        check_policy("policy", policy)
        self._core = _core.Guard(policy, explicit_denials)

    def decide(
        self, uri: str, *, principal: str = "", scopes: Sequence[str] = (), groups: Sequence[str] = ()
    ) -> Decision:
        """Returns whether a client may see a URI, in any spelling.

        Args:
            uri: the URI.
            principal: the identity of the client. Default: the client on stdio.
            scopes: the scopes of its token. Default: none.
            groups: the groups of the client. Default: none.

        Raises:
            InvalidUriError: `uri` is not a URI.
        """
        return self._core.decide(*_arguments("uri", uri, principal, scopes, groups))[0]

    def missing_scopes(
        self, uri: str, *, principal: str = "", scopes: Sequence[str] = (), groups: Sequence[str] = ()
    ) -> list[str]:
        """Returns the scopes that the token lacks for a URI, if `decide` returns `missing_scope`; else an empty list.

        Raises:
            InvalidUriError: `uri` is not a URI.
        """
        return self._core.decide(*_arguments("uri", uri, principal, scopes, groups))[1]

    def knows_template(
        self, template: str, *, principal: str = "", scopes: Sequence[str] = (), groups: Sequence[str] = ()
    ) -> bool:
        """Returns whether a client sees a template in the list: whether the policy allows one of its URIs.

        Raises:
            InvalidTemplateError: `template` is not a URI template.
        """
        return self._core.knows_template(*_arguments("template", template, principal, scopes, groups))


def check_policy(name: str, given: object) -> None:
    """Checks the type of a policy: the core would read a list as its members in order."""
    if not isinstance(given, str | os.PathLike | Mapping):
        raise TypeError(
            f"{name} is {checks.shown(given)}, expected a policy such as {{'allow': ['file:///project/**']}}, or the"
            " path of a policy file"
        )


def _arguments(
    name: str, given: str, principal: str, scopes: Sequence[str], groups: Sequence[str]
) -> tuple[str, str, list[str], list[str]]:
    checks.text(name, given)
    checks.text("principal", principal)
    return given, principal, checks.texts("scopes", scopes), checks.texts("groups", groups)
