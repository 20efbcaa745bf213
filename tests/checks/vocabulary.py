"""Bindings move values; the words of the protocol belong to the core.

No method string, no member or header of the protocol, no JSON-RPC code and no JSON literal in a binding's code.
Comments and docstrings may have them.
"""

import ast
import re
from collections.abc import Iterator

import rust_text
from tree import Finding, Tree, line_at

_RUST = ("bindings-python/src", "bindings-node/src")
_PYTHON = ("bindings-python/python",)
_SCRIPT = ("bindings-node/js",)
_WORD = re.compile(
    r"\b(?:resources|subscriptions|completion|notifications|server|logging|tools|prompts|roots|sampling|elicitation)"
    r"/[a-z]"
    r"|\bjsonrpc\b|\bio\.modelcontextprotocol\b"
    r"|\b(?:protocolVersion|clientCapabilities|requestId|progressToken|subscriptionId)\b"
    r"|\b(?i:mcp-(?:session-id|protocol-version|method|name|param)|last-event-id)\b"
)
_CODE = re.compile(r"-3[12]\d{3}\b")
_JSON = re.compile(r"""\{\s*\\?"\w+\\?"\s*:""")
_SCRIPT_COMMENT = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)


def check(tree: Tree) -> Iterator[Finding]:
    """Looks at the Rust, Python and TypeScript of the bindings."""
    for path, text in tree.under(*_RUST):
        yield from _literals(path, text, rust_text.strings(text))
        yield from _codes(path, rust_text.code(text))
    for path, text in tree.under(*_PYTHON, ext=(".py",)):
        yield from _literals(path, text, _python_strings(text))
        yield from _codes(path, _python_negatives(text))
    for path, text in tree.under(*_SCRIPT, ext=(".ts", ".mts", ".js")):
        bare = _SCRIPT_COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment.group()), text)
        yield from _literals(path, text, [(0, bare)])
        yield from _codes(path, bare)


def _literals(path: str, text: str, literals: Iterator[tuple[int, str]] | list[tuple[int, str]]) -> Iterator[Finding]:
    for offset, literal in literals:
        for what, pattern in (("protocol word", _WORD), ("JSON literal", _JSON), ("JSON-RPC code", _CODE)):
            match = pattern.search(literal)
            if match:
                yield Finding(path, line_at(text, offset + match.start()), f"{what} `{match.group()}`")


def _codes(path: str, bare: str) -> Iterator[Finding]:
    for match in _CODE.finditer(bare):
        yield Finding(path, line_at(bare, match.start()), f"JSON-RPC code `{match.group()}`")


def _python_strings(text: str) -> Iterator[tuple[int, str]]:
    module = ast.parse(text)
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    docstrings = {id(doc) for node in ast.walk(module) if (doc := _docstring(node))}
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield starts[node.lineno - 1], node.value


def _python_negatives(text: str) -> str:
    """Only the negative numbers, each on its own line."""
    lines = [""] * (text.count("\n") + 1)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            lines[node.lineno - 1] += f" -{node.operand.value!r}"
    return "\n".join(lines)


def _docstring(node: ast.AST) -> ast.AST | None:
    """The docstring of a module, class or function, or the one below an attribute."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return node.value
    return None
