"""The crates below the hosts depend on nothing that does I/O, waits, or draws random bytes, however indirectly."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

from tree import Finding, Tree

PURE = ("template", "engine")
_IMPURE = {"async-std", "getrandom", "hyper", "libc", "log", "mio", "nix", "rand", "rustix", "smol", "socket2", "tokio"}
_IMPURE |= {"tracing", "ureq", "windows-sys"}
_ROOT = Path(__file__).resolve().parents[2]


def check(_: Tree) -> Iterator[Finding]:
    """Asks cargo for the tree of each pure crate, but for procedural macros: those run in the compiler."""
    for crate in PURE:
        package = f"mcp-resources-{crate}"
        command = ["cargo", "tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none", "-p", package]
        lines = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
        for name in impure(lines):
            how = f"`cargo tree -p {package} -i {name}` shows how"
            yield Finding(f"core/{crate}/Cargo.toml", 1, f"depends on `{name}`: {how}")


def impure(lines: list[str]) -> list[str]:
    """The crates among the lines of `cargo tree` that no pure crate may stand on."""
    return sorted({line.split()[0] for line in lines if line.strip()} & _IMPURE)
