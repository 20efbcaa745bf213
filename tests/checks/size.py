"""Files of at most 800 lines, and bindings that stay thin beside the core. The length of functions is only reported."""

from collections.abc import Iterator

import rust_text
from tree import Finding, Tree

FILE_LINES = 800
BINDING_SHARE = {"bindings-python": 0.12, "bindings-node": 0.12}


def check(tree: Tree) -> Iterator[Finding]:
    """Looks at every source file in the project's languages."""
    for path, text in tree.under(ext=(".rs", ".py", ".pyi", ".ts", ".mts", ".js", ".mjs")):
        lines = text.count("\n")
        if lines > FILE_LINES:
            yield Finding(path, FILE_LINES, f"{lines} lines; at most {FILE_LINES}")
    yield from _bindings(tree)


def figures(tree: Tree) -> str:
    """The length of the functions of the core, without tests: clippy's `too_many_lines` is the limit."""
    lengths = sorted(
        function.lines
        for path, text in tree.under("core")
        if not rust_text.is_test_file(path)
        for function in rust_text.functions(rust_text.without_tests(text))
    )
    if not lengths:
        return "no functions"
    median, ninth = lengths[len(lengths) // 2], lengths[len(lengths) * 9 // 10]
    return f"functions: median {median}, 90th percentile {ninth}, longest {lengths[-1]} lines"


def _bindings(tree: Tree) -> Iterator[Finding]:
    core = sum(code_lines(tree, f"core/{crate}/src") for crate in ("template", "engine", "runtime", "client"))
    for binding, most in BINDING_SHARE.items():
        own = code_lines(tree, f"{binding}/src")
        if own > most * core:
            limit = round(most * core)
            share = f"{most:.0%} of the core's {core}"
            yield Finding(f"{binding}/src", 1, f"{own} lines of Rust; at most {limit}, {share}")


def code_lines(tree: Tree, folder: str) -> int:
    """Lines of Rust that are neither blank, comment nor test."""
    count = 0
    for path, text in tree.under(folder):
        if not rust_text.is_test_file(path):
            count += sum(1 for line in rust_text.code(rust_text.without_tests(text)).split("\n") if line.strip())
    return count
