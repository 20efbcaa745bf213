"""Finds the tests of the Rust sources by the names that `cargo test` reports, and the comments above them."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

_MODULE = re.compile(r"^( *)(?:pub(?:\([a-z]+\))? )?mod (\w+) \{$")
_FUNCTION = re.compile(r"^ *(?:pub )?(?:async )?fn (\w+)")


def tests(path: str, text: str) -> Iterator[tuple[str, str]]:
    """The tests of one file: the name with its modules, and the text of the comment above it."""
    modules = list(_modules_of(path))
    depths: list[int] = []
    documentation: list[str] = []
    is_test = False
    for line in text.splitlines():
        stripped = line.strip()
        if depths and line == " " * depths[-1] + "}":
            depths.pop()
            modules.pop()
        if opened := _MODULE.match(line):
            depths.append(len(opened[1]))
            modules.append(opened[2])
        if stripped.startswith("//"):
            documentation.append(stripped.lstrip("/"))
        elif stripped.startswith("#["):
            is_test |= stripped in ("#[test]", "#[tokio::test]") or stripped.startswith("#[tokio::test(")
        else:
            found = _FUNCTION.match(line)
            if found and is_test:
                yield "::".join([*modules, found[1]]), "\n".join(documentation)
            documentation, is_test = [], False


def _modules_of(path: str) -> tuple[str, ...]:
    """`core/engine/src/hub/table.rs` is `hub::table`; a file directly below `tests` is a crate of its own."""
    parts = PurePosixPath(path).with_suffix("").parts
    if "src" not in parts:
        return ()
    below = parts[parts.index("src") + 1 :]
    return below[:-1] if below[-1] in ("mod", "lib") else below
