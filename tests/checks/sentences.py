"""Doc comments begin with a noun or a verb.

`Options of the files provider.`, not `What is served of which files.` The first word of each line counts, so a sentence
that happens to begin a line counts too: a hundredth of a crate's lines may.
"""

import re
from collections import defaultdict
from collections.abc import Iterator

from tree import Finding, Tree, line_at

_DOC = re.compile(r"^[ \t]*//[/!](?!/)", re.M)
_OPENER = re.compile(r"^[ \t]*//[/!] (?:What|Which|How|Where|Who)\b", re.M)
_MOST = 0.01


def check(tree: Tree) -> Iterator[Finding]:
    """Reports each such line of a crate that has too many of them."""
    lines: dict[str, int] = defaultdict(int)
    openers: dict[str, list[Finding]] = defaultdict(list)
    for path, text in tree.under("core", "bindings-python", "bindings-node"):
        crate = _crate(path)
        lines[crate] += len(_DOC.findall(text))
        for match in _OPENER.finditer(text):
            line = line_at(text, match.start())
            openers[crate].append(Finding(path, line, f"`{match.group().strip()}` begins a doc comment of {crate}"))
    for crate, found in openers.items():
        if len(found) > _MOST * lines[crate]:
            yield from found


def figures(tree: Tree) -> str:
    """The number of lines of doc comments, and of those that begin with a question word."""
    texts = [text for _, text in tree.under("core", "bindings-python", "bindings-node")]
    lines = sum(len(_DOC.findall(text)) for text in texts)
    openers = sum(len(_OPENER.findall(text)) for text in texts)
    return f"doc comments: {openers} of {lines} lines begin with a question word"


def _crate(path: str) -> str:
    folders = path.split("/")
    return "/".join(folders[:2]) if folders[0] == "core" else folders[0]
