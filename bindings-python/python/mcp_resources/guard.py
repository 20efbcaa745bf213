"""The guard's policy, and the guard on its own."""

import os
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, TypedDict

from . import _core

__all__ = ["Decision", "Guard", "Policy", "PrincipalPolicy", "Rate", "Rates"]

Decision: TypeAlias = Literal["allow", "hidden", "denied", "missing_scope"]
_OneOrMany: TypeAlias = str | Sequence[str]


class Rate(TypedDict, total=False):
    """How often one principal may ask."""

    per_second: float
    """How many a second in the long run."""
    burst: int
    """How many at once. Default: those of one second, one at least."""


class Rates(TypedDict, total=False):
    """How often one principal may ask, by what it asks for. `None` stands for the default."""

    read: Rate | None
    """Reads. Default: no bound."""
    completion: Rate | None
    """Completions. Default: 200 a second, 400 at once."""
    list: Rate | None
    """Pages of lists. Default: no bound."""
    subscribe: Rate | None
    """Subscriptions and listens. Default: no bound."""
    call: Rate | None
    """Methods that are not of resources. Default: no bound."""


class PrincipalPolicy(TypedDict, total=False):
    """What narrows a policy for one principal."""

    allow: _OneOrMany | None
    """As in the policy: it may see what both allow."""
    deny: _OneOrMany
    """As in the policy."""
    scopes: _OneOrMany
    """Scopes that it has beside those of its token."""


class Policy(TypedDict, total=False):
    """Who may see what, and how much: the same keys as in a policy file. Globs are compared with canonical URIs."""

    allow: _OneOrMany | None
    """What may be seen; the rest does not exist. `*` alone is everything. Default: everything."""
    deny: _OneOrMany
    """What may not be seen, also where it is allowed. Default: nothing."""
    scopes: Mapping[str, _OneOrMany]
    """By glob, the scopes that a token must have. Default: none."""
    principals: Mapping[str, PrincipalPolicy]
    """By identity, what narrows the policy for one principal; the local process has the empty one. Default: nothing."""
    rate: Rates
    """How often one principal may ask."""
    concurrency: int | None
    """How many requests of one principal may wait for an answer. Default: no bound."""
    max_size: Mapping[str, int]
    """By glob, the most bytes that one read may give. Default: none."""
    redact: _OneOrMany
    """The detectors whose finds in texts are replaced. Default: none."""


class Guard:
    """What a policy says, for an author's own tests and functions.

    Args:
        policy: the policy, or the path of a JSON or YAML file.
        explicit_denials: whether `decide` says `denied` where it would say `hidden`.

    Raises:
        RegistrationError: the policy has an unknown member, or one with a value that means nothing.
    """

    def __init__(self, policy: Policy | str | os.PathLike[str], *, explicit_denials: bool = False) -> None:
        self._core = _core.Guard(policy, explicit_denials)

    def decide(self, uri: str, *, principal: str = "", scopes: Sequence[str] = ()) -> Decision:
        """What is said of a URI, in any spelling.

        Raises:
            InvalidUri: it is not a URI.
        """
        return self._core.decide(uri, principal, scopes)[0]

    def missing_scopes(self, uri: str, *, principal: str = "", scopes: Sequence[str] = ()) -> list[str]:
        """The scopes that are missing where nothing else is.

        Raises:
            InvalidUri: it is not a URI.
        """
        return self._core.decide(uri, principal, scopes)[1]

    def knows_template(self, template: str, *, principal: str = "", scopes: Sequence[str] = ()) -> bool:
        """Whether a template is listed: one of its URIs may be seen.

        Raises:
            InvalidTemplate: it is not one.
        """
        return self._core.knows_template(template, principal, scopes)
