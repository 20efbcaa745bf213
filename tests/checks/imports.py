"""Draws which files of a folder import which, in Rust and in TypeScript, and finds the circles among them."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import rust_text
from tree import Tree

Graph = dict[str, set[str]]
"""The files that each file imports, by path."""

_RUST = re.compile(r"(?<!::)\b(?P<start>crate|self|(?:super::)*super)::(?=[\w{*])")
_CHILD = re.compile(r"\buse (?P<first>\w+)::")
_SCRIPT = re.compile(r"""(?:\bfrom|\bimport|\bimport\(|\brequire\()\s*['"](?P<path>\.{1,2}/[^'"]+)['"]""")


def rust(tree: Tree, folder: str) -> Graph:
    """The files below `folder`, the root of a crate, without tests."""
    files = {}
    for path, text in tree.under(folder):
        if not rust_text.is_test_file(path):
            files[_module(path, folder)] = (path, rust_text.code(rust_text.without_tests(text)))
    graph: Graph = {path: set() for path, _ in files.values()}
    for module, (path, bare) in files.items():
        for used in _used(bare, module):
            while used and used not in files:
                used = used[:-1]
            if used and used != module:
                graph[path].add(files[used][0])
    return graph


def typescript(tree: Tree, folder: str) -> Graph:
    """The scripts in `folder`; imports of types count too."""
    graph: Graph = {path: set() for path, _ in tree.under(folder, ext=(".ts", ".mts"))}
    for path, text in tree.under(folder, ext=(".ts", ".mts")):
        for found in _SCRIPT.finditer(text):
            target = PurePosixPath(path).parent / found["path"]
            for ending, source in ((".js", ".ts"), (".mjs", ".mts")):
                source_path = str(target.with_suffix(source))
                if target.suffix == ending and source_path in graph and source_path != path:
                    graph[path].add(source_path)
    return graph


def circles(graph: Graph) -> list[set[str]]:
    """The groups of files that all reach each other, the largest first."""
    reached = {path: _reached(graph, path) for path in graph}
    groups: list[set[str]] = []
    for path in sorted(graph):
        if not any(path in group for group in groups):
            group = {other for other in reached[path] if path in reached[other]}
            if group:
                groups.append(group | {path})
    return sorted(groups, key=len, reverse=True)


def _reached(graph: Graph, start: str) -> set[str]:
    """The files that `start` imports, and those that they import."""
    found: set[str] = set()
    todo = list(graph[start])
    while todo:
        path = todo.pop()
        if path not in found:
            found.add(path)
            todo.extend(graph[path])
    return found


def _module(path: str, folder: str) -> tuple[str, ...]:
    parts = PurePosixPath(path).relative_to(folder).with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib") else parts


def _used(bare: str, module: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The paths that the text of a module names, from the root of its crate."""
    for found in _RUST.finditer(bare):
        above = found["start"].count("super")
        start = module[: len(module) - above] if above or found["start"] == "self" else ()
        yield from _expanded(bare, found.end(), start)
    for found in _CHILD.finditer(bare):
        yield from _expanded(bare, found.start("first"), module)


def _expanded(bare: str, offset: int, start: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The paths of `a::{b, c::{d}}` at an offset, each after `start`."""
    if bare[offset] == "{":
        depth, first = 0, offset + 1
        for position in range(offset, len(bare)):
            sign = bare[position]
            depth += (sign == "{") - (sign == "}")
            if depth == 0 or (depth == 1 and sign == ","):
                item = re.compile(r"\s*(?=[\w{*])").match(bare, first, position)
                if item:
                    yield from _expanded(bare, item.end(), start)
                first = position + 1
            if depth == 0:
                return
        return
    name = re.compile(r"\w+").match(bare, offset)
    if not name or name[0] == "self":
        yield start
    elif bare.startswith("::", name.end()) and bare[name.end() + 2 : name.end() + 3] != "<":
        yield from _expanded(bare, name.end() + 2, (*start, name[0]))
    else:
        yield (*start, name[0])
