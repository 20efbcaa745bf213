"""What matching a URI against templates gives."""

import json
from dataclasses import dataclass
from typing import Literal, final


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Match:
    """A template matches. True."""

    template: str
    params: dict[str, str | list[str] | dict[str, str]]

    def __repr__(self) -> str:
        return f"Match({_quoted(self.template)}, {self.params})"


@final
@dataclass(frozen=True, slots=True, eq=False)
class NoMatch:
    """No template matches. False."""

    def __bool__(self) -> Literal[False]:
        return False


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Rejected:
    """The winning template refuses a value: to a client the same as no match. False."""

    template: str
    variable: str
    why: str

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return f"Rejected({', '.join(map(_quoted, (self.template, self.variable, self.why)))})"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
