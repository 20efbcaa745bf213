"""The npm packages: one for all platforms, without a compiled part, and one with the compiled part of each platform."""

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

from project import LICENSES, NAME, ROOT, Target, run, targets, version

# What a dependent project has no use for.
OURS_ALONE = ("devDependencies", "napi", "scripts")
KEPT = ("description", "keywords", "homepage", "bugs", "repository", "license", "author", "engines")


def pack(library: Path, target: Target, work: Path, out: Path) -> list[Path]:
    """Both packages, from the TypeScript that is compiled in the tree and the library of the platform."""
    package = json.loads((ROOT / "package.json").read_text("utf-8"))
    return [_pack(folder, out) for folder in (_main(package, work), _platform(package, library, target, work))]


def _main(package: dict[str, Any], work: Path) -> Path:
    folder = work / NAME
    patterns = package["files"]
    for pattern in (*patterns, "README.md"):
        for path in ROOT.glob(pattern):
            place = folder / path.relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
    (folder / package["bin"][NAME]).chmod(0o755)
    # Exactly this version: both parts come from one commit.
    parts = {f"{NAME}-{found.node}": package["version"] for found in targets()}
    published = {key: value for key, value in package.items() if key not in OURS_ALONE}
    _write(folder, {**published, "optionalDependencies": parts})
    return folder


def _platform(package: dict[str, Any], library: Path, target: Target, work: Path) -> Path:
    folder = work / f"{NAME}-{target.node}"
    folder.mkdir(parents=True)
    file = f"{NAME}.{target.node}.node"
    shutil.copyfile(library, folder / file)
    for licence in LICENSES:
        shutil.copyfile(ROOT / licence, folder / licence)
    text = f"The compiled part of the package `{NAME}` for {target.triple}. Install `{NAME}` instead."
    (folder / "README.md").write_text(f"# {folder.name}\n\n{text}\n", "utf-8")
    libc = {"libc": [target.libc]} if target.libc else {}
    own = {"name": folder.name, "version": package["version"], **{key: package[key] for key in KEPT}}
    own["description"] = f"The compiled part of {NAME} for {target.triple}"
    _write(folder, {**own, "main": file, "files": [file], "os": [target.os], "cpu": [target.cpu], **libc})
    return folder


def _write(folder: Path, package: dict[str, Any]) -> None:
    (folder / "package.json").write_text(json.dumps(package, indent=2) + "\n", "utf-8")


def _pack(folder: Path, out: Path) -> Path:
    npm = os.environ.get("NPM", "npm")
    run(f"npm pack of {folder.name}", npm, "pack", "--json", "--ignore-scripts", "--pack-destination", out, at=folder)
    archive = out / f"{folder.name}-{version()}.tgz"
    # npm compresses less than it could; without a time, a second run makes the same bytes.
    archive.write_bytes(gzip.compress(gzip.decompress(archive.read_bytes()), 9, mtime=0))
    return archive
