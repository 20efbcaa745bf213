"""Python and Node offer the same: public names, options, bounds, errors and methods (snake_case is camelCase there).

Python is read from its sources and stubs, Node from the types that are published. What one has and the other has not is
an exception, with its reason.
"""

import ast
import re
from collections.abc import Iterable, Iterator
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
    "SubscriptionBus": ("ServerEventBus",),
}
"""Types of Python whose members are spread over others, or named otherwise, in Node."""

SDKS = {"SubscriptionBus": "ServerEventBus"}
"""Names that the official SDKs have given to one thing."""

RECORDS = ("Icon", "Resource", "Variable")
"""Compiled types: what their constructors take are their members."""

CLOSED = "an async context manager in Python"
DECORATED = "a decorator of the handler in Python"
FILE = "the keys of a policy are those of its file in every language"
ONLY_PYTHON: dict[tuple[str, str], str] = {
    ("ResourceDetails", "inline"): "where a `def` runs is a question of threads; Node's handlers have one",
    ("ResourceServer", "addTool"): "`tool` in Node, which has no decorators for functions",
    ("ResourceServer", "addPrompt"): "`prompt` in Node, which has no decorators for functions",
    ("Context", "sendLog"): "the compiled half of `log`",
    ("ResourceServer", "asgi"): "an interface of Python's",
    ("ResourceServer", "serveHttp"): "`run` in Node, which has one loop",
    ("testing.Connection", "loop"): "Node has one loop, and it is always there",
    ("Policy", "maxSize"): FILE,
    ("ServerOptions", "lifespan"): "two functions in Node",
    ("ServerOptions", "encoder"): "`json` in Node",
}
ONLY_NODE: dict[tuple[str, str], str] = {
    ("Context", "signal"): "Python cancels the task",
    ("Question", "signal"): "Python cancels the task",
    ("TemplateSet", "size"): "`len` in Python",
    ("Memory", "size"): "`len` in Python",
    ("Results", "size"): "`len` in Python",
    ("testing.Client", "connect"): CLOSED,
    ("testing.Client", "close"): CLOSED,
    ("testing.Listen", "close"): CLOSED,
    ("testing.Connection", "closed"): "Python asks the loop",
    ("ResourceServer", "nodeHandler"): "an interface of Node's",
    ("ResourceServer", "fetchHandler"): "an interface of Node's",
    ("ResourceServer", "factory"): "a server of Python's SDK serves all clients",
    ("ResourceServer", "wrap"): "a middleware of Python's SDK gets listens too",
    ("ServerOptions", "json"): "`encoder` in Python",
    ("ServerOptions", "logger"): "the module `logging` in Python",
    ("ServerOptions", "onStart"): "`lifespan` in Python",
    ("ServerOptions", "onStop"): "`lifespan` in Python",
    ("ResourceDetails", "complete"): DECORATED,
    ("ResourceDetails", "list"): DECORATED,
    ("ResourceDetails", "access"): DECORATED,
    (
        "ResourceDetails",
        "pages",
    ): "a lister pages itself if it takes a cursor; a function of Node's may hide how many it takes",
    ("HttpOptions", "auth"): "an argument of its own in Python",
    ("ServerOptions", "name"): "an argument of its own in Python",
    ("ServerOptions", "version"): "an argument of its own in Python",
    ("Policy", "max_size"): FILE,
}
COMPARED = [
    *exported("__init__"),
    *(f"testing.{name}" for name in exported("testing")),
    "Memory",
    "Metrics",
    "Provider",
    "Results",
    "testing.Listen",
    "HttpOptions",
    "ServerOptions",
    "ResourceDetails",
]
COMPARED = [name for name in COMPARED if name != "providers"]
"""`providers` is a module."""
GIVEN = {"message"}
"""What every error of Node's has."""


def camel(name: str) -> str:
    """The name as Node has it."""
    return re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name)


def ordered(files: Iterable[Path], is_testing: bool) -> list[Path]:
    """Where names are looked up, the last first: what is for tests has names that something else has too."""
    return sorted(files, key=lambda path: path.name.startswith("testing.") is is_testing)


def python_types(is_testing: bool) -> dict[str, ast.ClassDef]:
    """The classes of the package and its stub, by name. What wraps a compiled class stands before it."""
    files = [PYTHON / "_core.pyi", *ordered(PYTHON.glob("*.py"), is_testing)]
    trees = [ast.parse(path.read_text("utf-8")) for path in files]
    return {node.name: node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}


def python_members(name: str, types: dict[str, ast.ClassDef]) -> set[str]:
    """The public members of a class, in Node's spelling, those it inherits too."""
    found: set[str] = set()
    own = types[name]
    for base in own.bases:
        if isinstance(base, ast.Name) and base.id in types:
            found |= python_members(base.id, types)
    for node in own.body:
        found |= {camel(member) for member in _members(node, name in RECORDS) if not member.startswith("_")}
    return found


def _members(node: ast.stmt, is_record: bool) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name="__new__", args=arguments) if is_record:
            yield from (argument.arg for argument in [*arguments.args[1:], *arguments.kwonlyargs])
        case ast.FunctionDef(name="__init__"):
            for inner in ast.walk(node):
                match inner:
                    case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                        yield name
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
            name = item.removeprefix("type ").split(" as ")[-1]
            (types if is_type or item.startswith("type ") else values).add(name)
    values.update(re.findall(r"^export \* as (\w+) from", text, re.MULTILINE))
    for kind, name in re.findall(
        r"^export (?:declare )?(?:abstract )?(class|interface|type|function|const) (\w+)", text, re.M
    ):
        (values if kind in ("class", "function", "const") else types).add(name)
    return values, types


def node_types(is_testing: bool) -> dict[str, tuple[list[str], str]]:
    """Classes and interfaces by name: what they extend, and their bodies."""
    found = {}
    for path in ordered(NODE.glob("*.d.ts"), is_testing):
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
        if member not in ("constructor", "toString", "native")
    }
    for base in bases:
        if base in types:
            members |= node_members(base, types)
        elif base == "Error":
            members = members - {"name"} | GIVEN
    return members


def kinds(text: str, pattern: str) -> dict[str, str]:
    """The words of error classes, by class."""
    classes = re.split(r"^(?:export )?class (\w+)", text, flags=re.MULTILINE)[1:]
    found = {name: re.search(pattern, body, re.DOTALL) for name, body in zip(classes[::2], classes[1::2], strict=True)}
    return {name: kind[1] for name, kind in found.items() if kind is not None}


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    assert NODE.is_dir(), "the Node package is not built: make setup"


def test_the_same_names() -> None:
    modules = {"index": "__init__", "testing": "testing", "providers": "providers"}
    for module, names in ((node, exported(python)) for node, python in modules.items()):
        values, types = node_exports(module)
        ours, theirs = {SDKS.get(name, name) for name in names}, values | types
        assert ours - theirs == set(), "Python alone has them"
        extra = {"Listen"} if module == "testing" else set()
        assert values - ours - extra == set(), "Node alone has them"


@pytest.mark.parametrize("label", COMPARED)
def test_the_same_members(label: str) -> None:
    is_testing, name = label.startswith("testing."), label.removeprefix("testing.")
    nodes = node_types(is_testing)
    ours = python_members(name, python_types(is_testing))
    own = next((one for one in (name, f"{name}Error", name.removesuffix("Error")) if one in nodes), name)
    theirs = set[str]().union(*(node_members(other, nodes) for other in TYPES.get(name, (own,))))
    for alone, excepted in ((ours - theirs, ONLY_PYTHON), (theirs - ours - (GIVEN - ours), ONLY_NODE)):
        known = {member for other, member in excepted if other == label}
        assert alone - known == set(), f"{label}: in one language alone"
        assert known - alone == set(), f"{label}: an exception that is none"


def test_the_same_words_for_errors() -> None:
    """DEC-20."""
    found = {}
    for language, folder, suffix, pattern in (
        ("python", PYTHON, "py", r'^    kind = "(\w+)"'),
        ("node", BINDING, "ts", r"get kind\(\): ErrorKind \{\s*return '(\w+)'"),
    ):
        texts = ((folder / f"{name}.{suffix}").read_text("utf-8") for name in ("errors", "results"))
        found[language] = {
            name.removesuffix("Error"): kind for text in texts for name, kind in kinds(text, f"(?m){pattern}").items()
        }
    assert len(found["python"]) >= 9
    assert found["python"] == found["node"]
