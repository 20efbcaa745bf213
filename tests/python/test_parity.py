"""Python and Node offer the same: public names, options, bounds, errors and methods (snake_case is camelCase there).

Python is read from its sources and stubs, Node from the types that are published. What one has and the other has not is
an exception, with its reason.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from vectors import ROOT

PYTHON = ROOT / "bindings-python" / "python" / "mcp_resources"
NODE = ROOT / "bindings-node" / "dist"
BINDING = ROOT / "bindings-node" / "js"



def exported(module: str) -> list[str]:
    """`__all__` of a module."""
    for node in ast.parse((PYTHON / f"{module}.py").read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    raise AssertionError(module)


TYPES: dict[str, tuple[str, ...]] = {
    "ServerOptions": ("ServerInfo", "ServerOptions"),
    "ResourceDetails": ("ResourceOptions",),
    "Variable": ("Variable", "VariableInfo"),
    "Contents": ("Contents", "ContentsOptions"),
}
"""Types of Python whose members are spread over others, or named otherwise, in Node."""

COMPARED = [
    *exported("__init__"),
    *exported("testing"),
    "Listen",
    "ServerOptions",
    "ResourceDetails",
]

BOTH_ARE_NAMED = "the first argument of Python's server"
DISPATCH = "where a `def` runs is a question of threads, and Node's handlers have one"
AWAITED = "Python's context managers; a client of Node's is connected by a function and closed by one"
ONLY_PYTHON: dict[tuple[str, str], str] = {
    ("ResourceDetails", "inline"): DISPATCH,
    ("Context", "send_log"): "what `log` calls, which is compiled in Node",
    ("UriTemplate", "template"): "the argument of the constructor; `str` and `toString` give it back",
    ("UriTemplate", "vars"): "an argument of the constructor",
    ("TemplateSet", "templates"): "an argument of the constructor",
    ("ListPage", "next"): "",
}
ONLY_NODE: dict[tuple[str, str], str] = {}


def camel(name: str) -> str:
    """The name as Node has it."""
    return re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name)


def python_types() -> dict[str, ast.ClassDef]:
    """The classes of the package and its stub, by name."""
    files = [*PYTHON.glob("*.py"), PYTHON / "_core.pyi"]
    trees = [ast.parse(path.read_text("utf-8")) for path in files]
    return {node.name: node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}


def python_members(name: str, types: dict[str, ast.ClassDef]) -> set[str]:
    """The public members of a class, those it inherits too, and what its constructor takes."""
    found: set[str] = set()
    own = types[name]
    for base in own.bases:
        if isinstance(base, ast.Name) and base.id in types:
            found |= python_members(base.id, types)
    for node in own.body:
        found |= set(_members(node))
    return {member for member in found if not member.startswith("_")}


def _members(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name="__init__" | "__new__") | ast.AsyncFunctionDef(name="__init__"):
            arguments = node.args
            yield from (argument.arg for argument in [*arguments.args[1:], *arguments.kwonlyargs])
            for inner in ast.walk(node):
                if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
                    yield inner.attr
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def node_exports(module: str) -> tuple[set[str], set[str]]:
    """What a module exports: values, and types alone."""
    text = re.sub(r"/\*.*?\*/", "", (NODE / f"{module}.d.ts").read_text("utf-8"), flags=re.DOTALL)
    values, types = set(), set()
    for is_type, listed in re.findall(r"^export (type )?\{([^}]*)\}", text, re.MULTILINE):
        for item in filter(None, (part.strip() for part in listed.split(","))):
            (types if is_type or item.startswith("type ") else values).add(item.removeprefix("type "))
    for sort, name in re.findall(r"^export (?:declare )?(?:abstract )?(class|interface|type|function|const) (\w+)", text, re.M):
        (values if sort in ("class", "function", "const") else types).add(name)
    return values, types


def node_types() -> dict[str, tuple[list[str], str]]:
    """Classes and interfaces by name: what they extend, and their bodies."""
    found = {}
    for path in NODE.glob("*.d.ts"):
        text = re.sub(r" */\*.*?\*/", "", path.read_text("utf-8"), flags=re.DOTALL)
        pattern = r"^(?:export )?(?:declare )?(?:abstract )?(?:class|interface) (\w+)(.*?)\{\n(.*?)^\}"
        for name, head, body in re.findall(pattern, text, re.MULTILINE | re.DOTALL):
            bases = re.search(r"\bextends ([\w, ]+?)\s*$", re.sub(r"<.*>", "", head, flags=re.DOTALL))
            found[name] = (re.findall(r"\w+", bases[1]) if bases else [], body)
    return found


def node_members(name: str, types: dict[str, tuple[list[str], str]]) -> set[str]:
    """The public members of a type, those it inherits too."""
    bases, body = types[name]
    words = r"(?:(?:static|readonly|get|set|override|abstract) )*"
    members = {
        member
        for member in re.findall(rf"^    {words}(\w+)\??[(:<]", body, re.MULTILINE)
        if member not in ("constructor", "toString", "native", "name")
    }
    for base in bases:
        if base in types:
            members |= node_members(base, types)
    return members


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    if not NODE.is_dir():
        pytest.skip("the Node package is not built: make setup")


def test_the_same_names() -> None:
    for module, names in (("index", exported("__init__")), ("testing", exported("testing"))):
        values, types = node_exports(module)
        assert set(names) - values - types == set(), "Python alone has them"
        extra = {"Listen"} if module == "testing" else set()
        assert values - set(names) - extra == set(), "Node alone has them"


@pytest.mark.parametrize("name", COMPARED)
def test_the_same_members(name: str) -> None:
    ours = {camel(member): member for member in python_members(name, python_types()) if member != "name"}
    theirs = set().union(*(node_members(other, node_types()) for other in TYPES.get(name, (name,))))
    print(name, "python alone", sorted(set(ours) - theirs), "node alone", sorted(theirs - set(ours)))
