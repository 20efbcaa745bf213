"""Small rules that need no compiler: each is one pattern, where it holds, and what is wrong with a match."""

import re
from collections.abc import Iterator

import rust_text
from tree import Finding, Tree, line_at

PANICS_PER_1000_LINES = 1
_SHIPPED = (
    "core/template/src",
    "core/engine/src",
    "core/runtime/src",
    "core/client/src",
    "core/providers/api/src",
    "core/providers/db/src",
    "core/providers/drive/src",
    "core/providers/files/src",
    "core/providers/git/src",
    "core/providers/kit/src",
    "core/providers/local/src",
    "core/providers/text/src",
    "core/providers/src",
    "core/serve/src",
    "core/cli/src",
    "bindings-python/src",
    "bindings-node/src",
)
_SOURCE = (".rs", ".py", ".pyi", ".ts", ".mts", ".js", ".mjs", ".toml", ".yml", ".json", ".md", "Makefile", ".ci/run")
_GENERATED = ("package-lock.json",)
_UNSAFE_HOMES = ("core/engine/src/base64.rs", "core/engine/src/json_text.rs")
_PANIC = re.compile(r"\.unwrap\(\)|\.expect\(\s*\"")
# In halves, so that this file does not match itself.
_OPEN_WORK = re.compile(
    "|".join(["TO" + "DO:?\\b", "FIX" + "ME", "XX" + "X", r"\bto" + r"do!\(", "unimple" + "mented!"])
)
_MACHINE_PATH = re.compile(r"(?<![\w/:.])/(?:work|farm|root|home/\w+|Users/\w+|tmp/wt)/")
# The formatter breaks code, and leaves comments as they are. A diagram may be wider.
_LONG_COMMENT = re.compile(r"^(?= *//)[^─│\n]{131,}$", re.M)
_SKIP = re.compile(
    r"#\[ignore\]|\btest\.(?:skip|todo)\(|\bskip: true\b"
    r"|pytest\.mark\.skip(?!(?:if)?\([^)]*reason=)|pytest\.mark\.xfail(?!\([^)]*reason=)"
)


def check(tree: Tree) -> Iterator[Finding]:
    """Looks at the Rust and, for what is language-free, at every text."""
    for path, text in tree.under():
        yield from _rust(path, text)
    for path, text in tree.under(ext=_SOURCE):
        if not path.startswith("tests/fixtures/") and not path.endswith(_GENERATED):
            yield from _find(path, text, _OPEN_WORK, "open work: do it, or write it down as an issue")
            yield from _find(path, text, _MACHINE_PATH, "a path of one machine")
            yield from _find(path, text, _SKIP, "a test that is skipped without a reason")
    yield from _panics(tree)


def _rust(path: str, text: str) -> Iterator[Finding]:
    bare = rust_text.code(text)
    if path not in _UNSAFE_HOMES:
        yield from _find(path, bare, re.compile(r"\bunsafe\s*(?:\{|fn|impl|trait|extern)"), "unsafe code")
    yield from _find(path, bare, re.compile(r"#!?\[(?:cfg_attr\([^\]]*\b)?allow\("), "use `#[expect(…, reason = …)]`")
    for match in _LONG_COMMENT.finditer(text):
        yield Finding(path, line_at(text, match.start()), "a comment of more than 130 columns")
    for match in re.finditer(r"#!?\[expect\(([^]]*)\)\]", bare):
        if "reason" not in match[1]:
            yield Finding(path, line_at(bare, match.start()), "an `expect` without a reason")


def _find(path: str, text: str, pattern: re.Pattern[str], message: str) -> Iterator[Finding]:
    for match in pattern.finditer(text):
        yield Finding(path, line_at(text, match.start()), f"{message}: `{match.group().strip()}`")


def _panics(tree: Tree) -> Iterator[Finding]:
    """`unwrap` and `expect` in shipped Rust: few, and each with its reason (clippy asks for that)."""
    lines, found = 0, []
    for path, text in tree.under(*_SHIPPED):
        if rust_text.is_test_file(path):
            continue
        bare = rust_text.code(rust_text.without_tests(text))
        lines += bare.count("\n")
        found += [(path, line_at(bare, match.start())) for match in _PANIC.finditer(bare)]
    if len(found) > PANICS_PER_1000_LINES * lines / 1000:
        for path, line in found:
            yield Finding(path, line, f"unwrap or expect ({len(found)} in {lines} lines; at most 1 in 1000)")
