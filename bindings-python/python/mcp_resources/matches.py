"""The results of matching a URI against templates."""

import json
from dataclasses import dataclass
from typing import Literal, final


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Match:
    """A URI matches `template`, with these values of its variables. True as a condition."""

    template: str
    params: dict[str, str | list[str] | dict[str, str]]

    def __repr__(self) -> str:
        return f"Match({_quoted(self.template)}, {self.params})"


@final
@dataclass(frozen=True, slots=True, eq=False)
class NoMatch:
    """A URI matches no template. False as a condition."""

    def __bool__(self) -> Literal[False]:
        return False


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Rejected:
    """A URI matches `template`, but the policy of `variable` refuses its value. False as a condition.

    Clients get the same error as for no match.
    """

    template: str
    variable: str
    why: str

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return f"Rejected({', '.join(map(_quoted, (self.template, self.variable, self.why)))})"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
