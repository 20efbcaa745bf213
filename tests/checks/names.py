"""One meaning a word: words that hide their meaning name no type, and some words name one type only.

Types that a binding shows to its language may have the name of the core's type that they wrap.
"""

import re
from collections import defaultdict
from collections.abc import Iterator

import rust_text
from tree import Finding, Tree, line_at

# Names that say nothing about a type; the terms to use instead.
UNCLEAR = {
    "Asked": "the parameters of a request: ReadParams, ListPageRequest",
    "Asker": "the requester, or what it may see: Requester, Visibility",
    "Bell": "a waker, or a signal",
    "Ear": "a waker",
    "Given": "an input or a result",
    "Hears": "an observer",
    "Kept": "an entry of a cache",
    "Landed": "an outcome",
    "Lead": "a leader",
    "Need": "an action",
    "Ring": "a waker",
    "Rings": "a waker",
    "Says": "a waker",
    "Seat": "an id",
    "Sort": "a kind",
    "Told": "a notification, or what was reported",
    "Way": "a route, or a method",
    "Words": "a list, or a description",
}
# Each of these stands for one thing in the whole tree, and may be defined once.
ONCE = {"Channel", "Host", "Link", "Peer", "Place", "Slot", "State", "Turn", "Verdict"}
# The same for variables, fields and functions.
PLAIN = {
    "but": "what is left out: except",
    "ear": "a waker",
    "most": "a maximum: max, limit",
    "whose": "the owner: client, principal, authority",
}
IDENTIFIER = re.compile(rf"(?<![\w'#])({'|'.join(PLAIN)})(?!\w)")
TYPE = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|type|union) (\w+)", re.MULTILINE)
SCRIPT_TYPE = re.compile(r"^\s*(?:export )?(?:abstract )?(?:class|interface|type) (\w+)", re.MULTILINE)
SENTENCES = {
    "whoever": "say what it is: the client, the caller, the handler",
    "lets go of": "say that it drops, closes or frees it",
    "foreign method": "a custom method",
}
BINDINGS = ("bindings-python", "bindings-node")


def check(tree: Tree) -> Iterator[Finding]:
    """Looks at the types of every language, at Rust's identifiers, and at the sentences of comments and documents."""
    defined: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for path, name, line in _types(tree):
        if name in UNCLEAR:
            yield Finding(path, line, f"the type `{name}` hides what it is: {UNCLEAR[name]}")
        if name in ONCE and not path.startswith(BINDINGS):
            defined[name].append((path, line))
    for name, places in defined.items():
        for path, line in sorted(places)[1:]:
            first, *_ = sorted(places)
            yield Finding(path, line, f"`{name}` is another type in {first[0]}: give this one a name of its own")
    for path, text in tree.under("core", *BINDINGS):
        bare = rust_text.code(rust_text.without_tests(text))
        for found in IDENTIFIER.finditer(bare):
            yield Finding(path, line_at(text, found.start()), f"`{found[1]}` hides what it is: {PLAIN[found[1]]}")
    yield from _sentences(tree)


def _types(tree: Tree) -> Iterator[tuple[str, str, int]]:
    for path, text in tree.under("core", *BINDINGS):
        if not rust_text.is_test_file(path):
            bare = rust_text.code(rust_text.without_tests(text))
            yield from ((path, found[1], line_at(text, found.start(1))) for found in TYPE.finditer(bare))
    for path, text in tree.under("bindings-node/js", ext=(".ts", ".mts")):
        yield from ((path, found[1], line_at(text, found.start(1))) for found in SCRIPT_TYPE.finditer(text))


def _sentences(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.under(ext=(".rs", ".py", ".pyi", ".ts", ".mts", ".mjs", ".md")):
        if path.startswith(("tests/checks/", "CHANGELOG")):
            continue
        for words, instead in SENTENCES.items():
            for found in re.finditer(rf"\b{words}\b", text, re.IGNORECASE):
                yield Finding(path, line_at(text, found.start()), f"`{found.group()}`: {instead}")
