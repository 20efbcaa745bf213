"""Within a crate a module uses modules of lower levels and of its own folder only. Between crates, cargo sees to it."""

import re
from collections.abc import Iterator

import rust_text
from tree import Finding, Tree, line_at, module_of

_PATH = re.compile(r"\bcrate::(?P<first>\w+|\{)|\b(?P<supers>(?:super::)+)(?P<name>\w+|\{)")


def check(tree: Tree) -> Iterator[Finding]:
    """Looks at every `crate::…` and `super::…` outside tests."""
    for crate in dict.fromkeys(level.crate for level in tree.levels):
        yield from _crate(tree, crate)


def _crate(tree: Tree, crate: str) -> Iterator[Finding]:
    levels = [level for level in tree.levels if level.crate == crate]
    level_of = {module: height for height, level in enumerate(levels) for module in level.modules}
    families = [set(level.modules) for level in levels if level.together]
    for path, text in tree.under(f"core/{crate}/src"):
        here = module_of(path)
        if not here or rust_text.is_test_file(path):
            continue
        if here[0] not in level_of:
            yield Finding(path, 1, f"module `{here[0]}` has no level: give it one in tests/checks/layers.toml")
            continue
        bare = rust_text.code(rust_text.without_tests(text))
        for offset, used in _used(bare, here):
            message = _breach(here[0], used, level_of)
            if message and not any({here[0], used} <= family for family in families):
                yield Finding(path, line_at(bare, offset), message)


def _used(bare: str, here: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """The top-level modules that the text names."""
    for match in _PATH.finditer(bare):
        name = match["first"] or match["name"]
        above = here[: len(here) - match["supers"].count("super")] if match["supers"] else ()
        if above:
            yield match.start(), above[0]
        elif name == "{":
            yield from ((match.start(), module) for module in _group(bare, match.end()))
        else:
            yield match.start(), name


def _group(bare: str, offset: int) -> Iterator[str]:
    """The first names inside `{a::b, c::{d}}`, whose opening brace ends at `offset`."""
    depth, item = 1, ""
    for sign in bare[offset:]:
        depth += (sign == "{") - (sign == "}")
        if depth == 0 or (depth == 1 and sign == ","):
            first = re.match(r"\s*(\w+)", item)
            if first:
                yield first[1]
            item = ""
            if depth == 0:
                return
        else:
            item += sign


def _breach(here: str, used: str, level_of: dict[str, int]) -> str | None:
    if used == here:
        return None
    if used not in level_of:
        return f"`{used}` is not a module with a level: name it by its own module"
    if level_of[used] < level_of[here]:
        return None
    direction = "sideways" if level_of[used] == level_of[here] else "upwards"
    return f"`{here}` reaches {direction} to `{used}`"
