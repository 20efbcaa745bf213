"""What registries show of the packages: one address everywhere, and no field that is missing."""

import json
import re
import tomllib
from collections.abc import Iterator

from tree import Finding, Tree, line_at

_CRATE_FIELDS = ("description", "license", "authors", "repository", "readme", "keywords", "categories")
_PYTHON_FIELDS = ("description", "license", "authors", "readme", "keywords", "urls", "classifiers")
_NODE_FIELDS = ("description", "license", "author", "keywords", "repository", "homepage", "bugs", "scripts")


def check(tree: Tree) -> Iterator[Finding]:
    """Looks at the manifests, and at every address of the repository."""
    if "Cargo.toml" not in tree.files:
        return
    package = tomllib.loads(tree.files["Cargo.toml"])["workspace"]["package"]
    yield from _crates(tree, package["version"])
    yield from _missing("pyproject.toml", tomllib.loads(tree.files["pyproject.toml"])["project"], _PYTHON_FIELDS)
    yield from _missing("package.json", json.loads(tree.files["package.json"]), _NODE_FIELDS)
    yield from versions(tree)
    yield from _registry(tree)
    yield from _addresses(tree, package["repository"])


def versions(tree: Tree) -> Iterator[Finding]:
    """Every file that names the version of the project names that of Cargo.toml. `make dist` asks this too."""
    version = tomllib.loads(tree.files["Cargo.toml"])["workspace"]["package"]["version"]
    for path, found in _versions(tree):
        if found != version:
            yield Finding(path, 1, f"its version is {found}, that of Cargo.toml {version}: all must be one")


def _versions(tree: Tree) -> Iterator[tuple[str, str]]:
    for path, keys in (("package.json", []), ("package-lock.json", [""]), ("server.json", [])):
        if path in tree.files:
            whole = json.loads(tree.files[path])
            parts = [whole, *(whole["packages"][key] for key in keys)]
            parts += whole.get("packages", []) if path == "server.json" else []
            yield from ((path, part["version"]) for part in parts)
    if "Cargo.lock" in tree.files:
        for package in tomllib.loads(tree.files["Cargo.lock"])["package"]:
            if package["name"].startswith("mcp-resources") and "source" not in package:
                yield "Cargo.lock", package["version"]
    released = re.search(r"^## \[(\d[^\]]*)\]", tree.files.get("CHANGELOG.md", ""), re.MULTILINE)
    if released:
        yield "CHANGELOG.md", released[1]


def _registry(tree: Tree) -> Iterator[Finding]:
    """Each package says to which entry of the registry it belongs. The READMEs are published with the packages."""
    if "server.json" not in tree.files:
        return
    name = json.loads(tree.files["server.json"])["name"]
    if json.loads(tree.files["package.json"]).get("mcpName") != name:
        yield Finding("package.json", 1, f'"mcpName" must be {name}, the name in server.json')
    for path in ("bindings-python/README.md", "core/cli/README.md"):
        if f"mcp-name: {name}" not in re.sub(r"<!--.*?-->", "", tree.files[path], flags=re.DOTALL):
            yield Finding(path, 1, f"the registry looks for the text `mcp-name: {name}` in it, which must be visible")


def _crates(tree: Tree, version: str) -> Iterator[Finding]:
    for path, text in tree.under("core", ext=("Cargo.toml",)):
        manifest = tomllib.loads(text)
        if manifest["package"].get("publish") is False:
            continue
        folder = path.removesuffix("Cargo.toml")
        yield from _missing(path, manifest["package"], _CRATE_FIELDS)
        if f"{folder}README.md" not in tree.files:
            yield Finding(path, 1, "the crate has no README.md")
        if not manifest["package"].get("metadata", {}).get("docs", {}).get("rs", {}).get("all-features"):
            yield Finding(path, 1, "[package.metadata.docs.rs] asks for all features: most of the API is behind one")
    for name, entry in tomllib.loads(tree.files["Cargo.toml"])["workspace"]["dependencies"].items():
        if isinstance(entry, dict) and "path" in entry and entry.get("version") != f"={version}":
            yield Finding("Cargo.toml", 1, f'`{name}` is of this workspace: version = "={version}"')


def _missing(path: str, manifest: dict[str, object], fields: tuple[str, ...]) -> Iterator[Finding]:
    for field in fields:
        if not manifest.get(field):
            yield Finding(path, 1, f"`{field}` is missing: the page of the registry would lack it")


def _addresses(tree: Tree, repository: str) -> Iterator[Finding]:
    host, _, name = repository.removeprefix("https://").partition("/")
    project = name.rpartition("/")[2]
    address = re.compile(rf"https://{re.escape(host)}/[\w.-]+/{re.escape(project)}\b")
    for path, text in sorted(tree.files.items()):
        for found in address.finditer(text):
            if found[0] != repository:
                yield Finding(path, line_at(text, found.start()), f"the repository is {repository}, as Cargo.toml says")
