"""The crates below the hosts stand on nothing that does I/O, waits or is random; features pass on what they imply."""

import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tree import Finding, Tree

PURE = ("template", "engine")
_IMPURE = {"async-std", "getrandom", "hyper", "libc", "log", "mio", "nix", "rand", "rustix", "smol", "socket2", "tokio"}
_IMPURE |= {"tracing", "ureq", "windows-sys"}
_ROOT = Path(__file__).resolve().parents[2]


def check(tree: Tree) -> Iterator[Finding]:
    """Asks cargo for the tree of each pure crate, but for procedural macros: those run in the compiler."""
    for crate in PURE:
        package = f"mcp-resources-{crate}"
        command = ["cargo", "tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none", "-p", package]
        lines = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
        for name in impure(lines):
            how = f"`cargo tree -p {package} -i {name}` shows how"
            yield Finding(f"core/{crate}/Cargo.toml", 1, f"depends on `{name}`: {how}")
    manifests = dict(tree.under("core", ext=(".toml",)))
    if {"core/Cargo.toml", "core/runtime/Cargo.toml"} <= manifests.keys():
        own, host = (tomllib.loads(manifests[f"core/{crate}Cargo.toml"])["features"] for crate in ("", "runtime/"))
        for name in unlike(own, host):
            yield Finding("core/Cargo.toml", 1, f"the feature `{name}` does not imply what it does in the runtime")


def unlike(own: dict[str, list[str]], host: dict[str, list[str]]) -> list[str]:
    """The features of `own` that do not pass on to `host` what they are there: code under `cfg` would be left out."""

    def expected(name: str) -> set[str]:
        return {f"mcp-resources-runtime/{name}", *(implied for implied in host[name] if implied in host)}

    return [name for name in host if set(own.get(name, [])) != expected(name)]


def impure(lines: list[str]) -> list[str]:
    """The crates among the lines of `cargo tree` that no pure crate may stand on."""
    return sorted({line.split()[0] for line in lines if line.strip()} & _IMPURE)
