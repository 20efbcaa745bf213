"""Reads Rust text far enough for the checks: comments, strings, test code and functions.

Every function keeps offsets and line numbers: what is left out becomes blanks.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      (?P<comment> //[^\n]* | /\*.*?\*/ )
    | (?P<raw>     \b[bc]?r(?P<hash>\#*)".*?"(?P=hash) )
    | (?P<string>  \b[bc]?"(?:\\.|[^"\\])*" | "(?:\\.|[^"\\])*" )
    | (?P<char>    '(?:\\(?:x..|u\{[^}]*\}|.)|[^\\'\n])' )
    """,
    re.DOTALL | re.VERBOSE,
)
_TEST_ITEM = re.compile(r"#\[cfg\((?:test|all\(test\b[^\]]*)\)\]")
_FUNCTION = re.compile(r"\bfn\s+(\w+)")
TYPE = re.compile(r"\b(struct|enum|trait|union)\s+([A-Z]\w*)")
"""A definition: its keyword and its name."""


@dataclass(frozen=True)
class Function:
    """A function with a body."""

    name: str
    line: int
    lines: int


def code(text: str) -> str:
    """The text with comments and the insides of strings blanked."""
    return _TOKEN.sub(lambda token: _blank(token.group(), keep_ends=token["comment"] is None), text)


def strings(text: str) -> Iterator[tuple[int, str]]:
    """Every string literal outside comments and attributes: offset and source text."""
    for token in _TOKEN.finditer(text):
        if token["raw"] or token["string"]:
            yield token.start(), token.group()


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Every comment: offset and source text."""
    for token in _TOKEN.finditer(text):
        if token["comment"]:
            yield token.start(), token.group()


def test_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the items marked `#[cfg(test)]` stand."""
    bare = code(text)
    for mark in _TEST_ITEM.finditer(bare):
        yield mark.start(), _item_end(bare, mark.end())


def without_tests(text: str) -> str:
    """The text with the items marked `#[cfg(test)]` blanked."""
    for start, end in test_spans(text):
        text = text[:start] + _blank(text[start:end]) + text[end:]
    return text


def is_test_file(path: str) -> bool:
    """Whether the whole file is test code: `tests.rs`, or a file below a `tests` or `benches` folder."""
    return path.endswith("/tests.rs") or "/tests/" in f"/{path}" or "/benches/" in path


def functions(text: str) -> Iterator[Function]:
    """The functions with a body, inner ones too."""
    bare = code(text)
    for start in _FUNCTION.finditer(bare):
        end = _item_end(bare, start.end())
        if bare[end - 1] == "}":
            first, last = bare.count("\n", 0, start.start()), bare.count("\n", 0, end)
            yield Function(start[1], first + 1, last - first + 1)


def _item_end(bare: str, offset: int) -> int:
    """Where the item that begins at `offset` ends: after its `;` or its closing brace."""
    depth = 0
    for position in range(offset, len(bare)):
        sign = bare[position]
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
            if depth == 0 and sign == "}":
                return position + 1
        elif sign == ";" and depth == 0:
            return position + 1
    return len(bare)


def _blank(text: str, *, keep_ends: bool = False) -> str:
    blanked = re.sub(r"[^\n]", " ", text)
    return f"{text[0]}{blanked[1:-1]}{text[-1]}" if keep_ends else blanked
