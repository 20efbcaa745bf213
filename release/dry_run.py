"""What the registries would take: crates, wheel, source distribution and npm packages, without sending anything."""

import json
import os
import sys
import tempfile
from pathlib import Path

import project
from project import CRATES, NAME, ROOT, ReleaseError, run

DIST = ROOT / "dist"


def workflows() -> str:
    """The workflows, as two linters read them."""
    folder = ROOT / ".github" / "workflows"
    files = sorted(folder.glob("*.yml"))
    run("actionlint", Path(sys.executable).with_name("actionlint"), *files, both=True)
    run("zizmor", Path(sys.executable).with_name("zizmor"), "--offline", "--quiet", "--no-progress", folder, both=True)
    return ", ".join(file.name for file in files)


def plan() -> str:
    """The first job of the workflow."""
    return run("the plan", sys.executable, ROOT / "release" / "plan.py", both=True).strip()


def crates() -> str:
    """`cargo publish --dry-run` of all, without a warning. `make dist` has compiled each from its package."""
    packages = [f"--package={name}" for name in CRATES]
    said = run(
        "cargo publish",
        *("cargo", "publish", "--dry-run", "--no-verify", "--locked", "--allow-dirty", *packages),
        both=True,
    )
    wrong = [line for line in said.splitlines() if line.startswith("warning:") and "due to dry run" not in line]
    if wrong:
        raise ReleaseError("cargo publish warns:\n" + "\n".join(wrong))
    return f"{len(CRATES)} crates"


def python() -> str:
    """`twine check --strict`."""
    files = sorted([*DIST.glob("*.whl"), *DIST.glob("mcp_resources-*.tar.gz")])
    run("twine check", sys.executable, "-m", "twine", "check", "--strict", *files)
    return ", ".join(file.name for file in files)


def npm() -> str:
    """`npm publish --dry-run` of each tarball; every file that package.json names is in it."""
    names = []
    for archive in sorted(DIST.glob("*.tgz")):
        program = os.environ.get("NPM", "npm")
        with tempfile.TemporaryDirectory() as folder:
            said = run(
                "npm publish", program, "publish", "--dry-run", "--json", "--access=public", archive, at=Path(folder)
            )
        found = json.loads(said[said.index("{") :])
        names.append(found.get("name") or ", ".join(found))
    return ", ".join(names)


def registry() -> str:
    """The entry of the registry names this version, and bundles that are there."""
    entry = json.loads((DIST / "server.json").read_text("utf-8"))
    if entry["version"] != project.version():
        raise ReleaseError(f"dist/server.json is of {entry['version']}: run `make dist`")
    return str(entry["name"])


def image() -> str:
    """The image has the label that the registry looks for."""
    name = json.loads((ROOT / "server.json").read_text("utf-8"))["name"]
    text = (ROOT / "release" / "Dockerfile").read_text("utf-8")
    if f'io.modelcontextprotocol.server.name="{name}"' not in text:
        raise ReleaseError(f"release/Dockerfile has no label io.modelcontextprotocol.server.name with {name}")
    return NAME


def main() -> int:
    """Exit status 1 at the first that would be refused."""
    try:
        for step in (workflows, plan, python, npm, registry, image, crates):
            print(f"{step.__name__}: {step()}", flush=True)
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
