"""Files of at most 800 lines, functions of at most 60, and bindings that stay thin beside the core."""

import ast
from collections.abc import Iterator

import rust_text
from tree import Finding, Tree

FILE_LINES = 800
FUNCTION_LINES = 60
BINDING_SHARE = {"bindings-python": 0.10, "bindings-node": 0.10}


def check(tree: Tree) -> Iterator[Finding]:
    """Looks at every source file in the project's languages."""
    for path, text in tree.under(ext=(".rs", ".py", ".pyi", ".ts", ".mts", ".js", ".mjs")):
        lines = text.count("\n")
        if lines > FILE_LINES:
            yield Finding(path, FILE_LINES, f"{lines} lines; at most {FILE_LINES}")
        if path.endswith(".rs"):
            yield from _rust(path, text)
        elif path.endswith(".py"):
            yield from _python(path, text)
    yield from _bindings(tree)


def _rust(path: str, text: str) -> Iterator[Finding]:
    if rust_text.is_test_file(path):
        return
    for function in rust_text.functions(rust_text.without_tests(text)):
        if function.lines > FUNCTION_LINES:
            yield _too_long(path, function.line, function.name, function.lines)


def _python(path: str, text: str) -> Iterator[Finding]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            lines = node.end_lineno - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield _too_long(path, node.lineno, node.name, lines)


def _too_long(path: str, line: int, name: str, lines: int) -> Finding:
    return Finding(path, line, f"`{name}` has {lines} lines; at most {FUNCTION_LINES}")


def _bindings(tree: Tree) -> Iterator[Finding]:
    core = sum(code_lines(tree, f"core/{crate}/src") for crate in ("template", "engine", "host"))
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
