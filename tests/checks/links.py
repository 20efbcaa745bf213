"""Documents point at things that exist: files and headings behind relative links, targets behind `make …`."""

import re
from collections.abc import Iterator
from posixpath import dirname, join, normpath

from tree import Finding, Tree, line_at

_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")
_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_TARGET = re.compile(r"`make ([a-z][a-z-]*)")
_RULE = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)


def check(tree: Tree) -> Iterator[Finding]:
    """Looks at every Markdown file."""
    folders = {dirname(path) for path in tree.files}
    targets = set(_RULE.findall(tree.files.get("Makefile", "")))
    for path, text in tree.under(ext=(".md",)):
        for link in _LINK.finditer(text):
            goal = normpath(join(dirname(path), link[1])) if link[1] else path
            if link[2] and goal.endswith(".md") and link[2] not in _anchors(tree.files.get(goal, "")):
                yield Finding(path, line_at(text, link.start()), f"no heading is called #{link[2]}: {link[0][2:-1]}")
            if goal not in tree.files and not any(f"{folder}/".startswith(f"{goal}/") for folder in folders):
                yield Finding(path, line_at(text, link.start()), f"the link leads nowhere: {link[1]}")
        for name in _TARGET.finditer(text):
            if name[1] not in targets:
                yield Finding(path, line_at(text, name.start()), f"the Makefile has no `{name[1]}`")


def _anchors(text: str) -> set[str]:
    """The headings of a document, as links name them."""
    headings = _HEADING.findall(_BLOCK.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}
