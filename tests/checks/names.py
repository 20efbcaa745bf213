"""A type has a name of its own: no other type has it, except for the same concept.

A binding shows types of the core to its language under their own names, so its types may have names of the core's, and
of the other binding's.
"""

from collections import defaultdict
from collections.abc import Iterator

import rust_text
from tree import Finding, Tree, line_at

# Names that two crates have for one concept.
SHARED = {
    "Client": "the client of a program, and that of its tests in `testing`",
    "Call": "a request of a custom method: the borrowed one of a provider, and what a handler of Rust gets",
    "Complete": "a completion: the request of a provider, and what a handler of Rust gets",
    "IntoAnswer": "what a provider and a handler of Rust may return",
    "List": "a page of a list: the request of a provider, and what a handler of Rust gets",
    "Read": "a read: the request of a provider, and what a handler of Rust gets",
}
# The requests of handlers in Rust have the names of the engine's events, of which they are the owned form.
OWNED = {"CallRequest", "CompletionRequest", "ListRequest", "ReadRequest"}
BINDINGS = ("bindings-python", "bindings-node")


def check(tree: Tree) -> Iterator[Finding]:
    """Looks at the structs, enums and traits of the core."""
    defined: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for path, bare in _shipped(tree, "core"):
        for found in rust_text.TYPE.finditer(bare):
            defined[found[2]].append((path, line_at(bare, found.start(2))))
    for name, places in sorted(defined.items()):
        first, *others = sorted(places)
        if name not in SHARED and name not in OWNED:
            for path, line in others:
                if path != first[0]:  # twice in one file: one for each feature
                    yield Finding(path, line, f"`{name}` is another type in {first[0]}: name this one by its subject")
        elif not others:
            yield Finding(*first, f"`{name}` is one type now: take it from the list in tests/checks/names.py")


def figures(tree: Tree) -> str:
    """How many types share their name with another one, over the core and the bindings."""
    count: dict[str, int] = defaultdict(int)
    for _, bare in _shipped(tree, "core", *BINDINGS):
        for found in rust_text.TYPE.finditer(bare):
            count[found[2]] += 1
    total = sum(count.values())
    shared = sum(times for times in count.values() if times > 1)
    often = sum(times >= 4 for times in count.values())
    return f"{shared} of {total} types share their name ({shared / max(total, 1):.0%}); {often} names occur four times"


def _shipped(tree: Tree, *folders: str) -> Iterator[tuple[str, str]]:
    """The code of each file without its tests, models and comments."""
    for path, text in tree.under(*folders):
        is_test = rust_text.is_test_file(path) or path.endswith("/model.rs") or path.startswith("core/fuzz/")
        if "/src/" in path and not is_test:
            yield path, rust_text.code(rust_text.without_tests(text))
