"""Documents point at things that exist: files behind relative links, targets behind `make …`."""

import re
from collections.abc import Iterator
from posixpath import dirname, join, normpath

from tree import Finding, Tree, line_at

_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)")
_TARGET = re.compile(r"`make ([a-z][a-z-]*)")
_RULE = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)


def check(tree: Tree) -> Iterator[Finding]:
    """Looks at every Markdown file."""
    folders = {dirname(path) for path in tree.files}
    targets = set(_RULE.findall(tree.files.get("Makefile", "")))
    for path, text in tree.under(ext=(".md",)):
        for link in _LINK.finditer(text):
            goal = normpath(join(dirname(path), link[1]))
            if goal not in tree.files and not any(f"{folder}/".startswith(f"{goal}/") for folder in folders):
                yield Finding(path, line_at(text, link.start()), f"the link leads nowhere: {link[1]}")
        for name in _TARGET.finditer(text):
            if name[1] not in targets:
                yield Finding(path, line_at(text, name.start()), f"the Makefile has no `{name[1]}`")
