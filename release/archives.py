"""Archives with the same bytes in every run, and what they contain."""

import gzip
import hashlib
import json
import tarfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from project import LICENSES, NAME, ROOT, Target, commit_time, run, version

SHELLS = {
    "bash": f"{NAME}.bash",
    "zsh": f"_{NAME}",
    "fish": f"{NAME}.fish",
    "elvish": f"{NAME}.elv",
    "powershell": f"_{NAME}.ps1",
}
SUMS = "SHA256SUMS"


def command(program: Path, target: Target, work: Path, out: Path) -> Path:
    """The command with its completions, manual pages and licences."""
    name = f"{NAME}-{version()}-{target.triple}"
    folder = work / name
    manual = folder / "man"
    completions = folder / "completions"
    manual.mkdir(parents=True)
    completions.mkdir()
    for shell, file in SHELLS.items():
        (completions / file).write_text(run(f"the completions for {shell}", program, "completions", shell))
    run("the manual", program, "__manual", manual)
    for file in (*LICENSES, "README.md"):
        (folder / file).write_bytes((ROOT / file).read_bytes())
    (folder / NAME).write_bytes(program.read_bytes())
    (folder / NAME).chmod(0o755)
    return tar(folder, out / f"{name}.tar.gz")


def tar(folder: Path, archive: Path) -> Path:
    """A folder as an archive. The files belong to nobody, and have the time of the commit."""
    time = commit_time()

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = time
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        return member

    with (
        archive.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as whole,
    ):
        whole.add(folder, folder.name, recursive=False, filter=plain)
        for path in sorted(folder.rglob("*")):
            whole.add(path, f"{folder.name}/{path.relative_to(folder)}", recursive=False, filter=plain)
    return archive


def bundle(program: Path, target: Target, out: Path) -> Path:
    """The bundle for Claude Desktop: it asks for folders, and starts the command with them."""
    archive = out / f"{NAME}-{version()}-{target.node}.mcpb"
    time = datetime.fromtimestamp(commit_time(), UTC).timetuple()[:6]
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as whole:
        for name, content, mode in (
            ("manifest.json", json.dumps(manifest(target), indent=2).encode() + b"\n", 0o644),
            *((file, (ROOT / file).read_bytes(), 0o644) for file in LICENSES),
            (f"server/{NAME}", program.read_bytes(), 0o755),
        ):
            member = zipfile.ZipInfo(name, time)
            member.compress_type = zipfile.ZIP_DEFLATED
            # A file of Unix, with its mode: the application keeps it.
            member.create_system = 3
            member.external_attr = (0o100000 | mode) << 16
            whole.writestr(member, content)
    return archive


def manifest(target: Target) -> dict[str, Any]:
    """The manifest of the bundle."""
    package = json.loads((ROOT / "package.json").read_text("utf-8"))
    program = f"server/{NAME}"
    folders = {
        "type": "directory",
        "title": "Folders",
        "description": "The folders whose files are served. They are read, never written.",
        "required": True,
        "multiple": True,
        "default": ["${DOCUMENTS}"],
    }
    return {
        "manifest_version": "0.3",
        "name": NAME,
        "display_name": "Folders as resources",
        "version": package["version"],
        "description": "Serves folders as resources, with updates: it reads, and neither writes nor runs anything.",
        "author": {"name": package["author"]},
        "repository": package["repository"],
        "homepage": package["homepage"],
        "support": package["bugs"],
        "license": package["license"],
        "keywords": package["keywords"],
        "server": {
            "type": "binary",
            "entry_point": program,
            "mcp_config": {"command": f"${{__dirname}}/{program}", "args": ["serve", "${user_config.folders}"]},
        },
        "tools_generated": True,
        "compatibility": {"platforms": [target.os]},
        "user_config": {"folders": folders},
    }


def registry_entry(out: Path) -> Path:
    """The entry for the registry: that of the repository, with the bundles that are in `out` and their sums."""
    entry = json.loads((ROOT / "server.json").read_text("utf-8"))
    repository = entry["repository"]["url"]
    for archive in sorted(out.glob("*.mcpb")):
        entry["packages"].append(
            {
                "registryType": "mcpb",
                "identifier": f"{repository}/releases/download/v{version()}/{archive.name}",
                "version": version(),
                "fileSha256": sha256(archive),
                "transport": {"type": "stdio"},
            }
        )
    path = out / "server.json"
    path.write_text(json.dumps(entry, indent=2) + "\n", "utf-8")
    return path


def sums(out: Path) -> Path:
    """The sums of all files, as `sha256sum --check` reads them."""
    path = out / SUMS
    files = sorted(file for file in out.rglob("*") if file.is_file() and file != path)
    path.write_text("".join(f"{sha256(file)}  {file.relative_to(out)}\n" for file in files), "utf-8")
    return path


def sha256(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
