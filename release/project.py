"""The project as a release sees it: its version, its platforms, and whether the tree may be packaged."""

import json
import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = "mcp-resources"
LICENSES = ("LICENSE-APACHE", "LICENSE-MIT")
# The crates that are published, each after those that it needs.
CRATES = (
    "mcp-resources-template",
    "mcp-resources-engine",
    "mcp-resources-runtime",
    "mcp-resources-bus",
    "mcp-resources-client",
    "mcp-resources-provider-kit",
    "mcp-resources-provider-files",
    "mcp-resources-provider-git",
    "mcp-resources-provider-drive",
    "mcp-resources-provider-text",
    "mcp-resources-provider-db",
    "mcp-resources-provider-api",
    "mcp-resources-provider-local",
    "mcp-resources-provider-upstream",
    "mcp-resources-providers",
    "mcp-resources-serve",
    "mcp-resources",
    "mcp-resources-cli",
)
# The oldest C library that a build needs: that of RHEL 8 and Debian 10.
GLIBC = "2.28"
MOST_LINES = 15


class ReleaseError(Exception):
    """A package cannot be made; the message says why, and what to do."""


@dataclass(frozen=True)
class Target:
    """A platform, under the names that the tools have for it."""

    triple: str
    os: str
    cpu: str
    libc: str | None

    @property
    def node(self) -> str:
        """The end of the name of its npm package."""
        libc = {"glibc": "-gnu", "musl": "-musl", None: ""}[self.libc]
        return f"{self.os}-{self.cpu}{libc}"

    @property
    def is_linux(self) -> bool:
        """Whether zig links it, for an older C library than that of this machine."""
        return self.os == "linux"

    @property
    def zig(self) -> str:
        """The name for zig: with the version of the C library."""
        return f"{self.triple}.{GLIBC}" if self.libc == "glibc" else self.triple

    @property
    def wheel(self) -> str:
        """The tag of its wheel, for maturin."""
        return {"glibc": f"manylinux_{GLIBC.replace('.', '_')}", "musl": "musllinux_1_2", None: "pypi"}[self.libc]

    def library(self, name: str) -> str:
        """The file name of a dynamic library."""
        return f"lib{name}.dylib" if self.os == "darwin" else f"lib{name}.so"


def targets() -> list[Target]:
    """All platforms, as package.json names them."""
    package = json.loads((ROOT / "package.json").read_text("utf-8"))
    return [_target(triple) for triple in package["napi"]["targets"]]


def _target(triple: str) -> Target:
    cpu = {"x86_64": "x64", "aarch64": "arm64"}[triple.partition("-")[0]]
    if triple.endswith("-apple-darwin"):
        return Target(triple, "darwin", cpu, None)
    return Target(triple, "linux", cpu, {"gnu": "glibc", "musl": "musl"}[triple.rpartition("-")[2]])


def target(triple: str | None) -> Target:
    """The platform with this name, or that of this machine."""
    if triple is None:
        triple = run("asking rustc for this platform", "rustc", "--print", "host-tuple").strip()
    for found in targets():
        if found.triple == triple:
            return found
    names = ", ".join(found.triple for found in targets())
    raise ReleaseError(f"there are no packages for {triple}; the platforms are {names}")


def version() -> str:
    """The version of the workspace, with which all others are compared."""
    return str(tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]["package"]["version"])


def run(what: str, *command: "str | Path", at: Path = ROOT, env: dict[str, str] | None = None, **options: bool) -> str:
    """Runs a command and returns its output. With `shown`, its errors pass through."""
    shown = options.get("shown", False)
    try:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=at,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if shown else subprocess.STDOUT if options.get("both") else subprocess.PIPE,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise ReleaseError(f"{what}: {error.filename} is not installed") from error
    if done.returncode:
        said = (done.stderr or "") + (done.stdout or "")
        end = "\n".join(said.strip().splitlines()[-MOST_LINES:])
        raise ReleaseError(f"{what} failed, with status {done.returncode}: {command[0]}\n{end}".rstrip())
    return done.stdout


def check_versions() -> None:
    """One version everywhere, by the rule of the project's own checks."""
    sys.path.insert(0, str(ROOT / "tests" / "checks"))
    import metadata
    import tree

    findings = [*metadata.versions(tree.load(ROOT))]
    if findings:
        raise ReleaseError("the versions differ:\n" + "\n".join(f"  {finding}" for finding in findings))


def check_clean(root: Path = ROOT) -> None:
    """Packages are made from a commit alone."""
    changed = run("asking git for changes", "git", "status", "--porcelain", at=root).splitlines()
    if changed:
        names = ", ".join(line[3:] for line in changed[:5]) + (", …" if len(changed) > 5 else "")
        raise ReleaseError(f"the tree has changes that are not committed: {names}; commit them, or add --allow-dirty")


def check_tag(root: Path = ROOT, number: str | None = None) -> None:
    """A version is released once."""
    tag = f"v{number or version()}"
    if run("asking git for tags", "git", "tag", "--list", tag, at=root).strip():
        raise ReleaseError(f"the tag {tag} exists: this version is released; raise the version first")


def commit_time(root: Path = ROOT) -> int:
    """The time of the commit in seconds: all files in archives have it, so that a second run makes the same bytes."""
    return int(run("asking git for the commit", "git", "log", "-1", "--format=%ct", at=root))
