"""Makes every package that this platform can make, in `dist`. `make dist` calls it, and so does the release workflow.

Law: packages come from one commit with one version. `dist` has all of them, or is as it was before.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import archives
import node
import project
from compile import TARGET, Build
from project import CRATES, ROOT, ReleaseError, run
from staging import staged

MEGABYTE = 1_000_000
# The most bytes of a package, compressed as it is downloaded; of the command, as it is started.
SIZES = {".whl": 10 * MEGABYTE, ".tgz": 10 * MEGABYTE, "command": 12 * MEGABYTE}
PARTS = ("wheel", "sdist", "command", "node", "crates", "sbom")


def main() -> int:
    """Exit status 1 with a sentence on stderr: nothing is made."""
    options = _options()
    try:
        project.check_versions()
        if not options.allow_dirty:
            project.check_clean()
            project.check_tag()
        target = project.target(options.target)
        build = Build(target, "dev" if options.quick else "release")
        out = options.out.resolve()
        with staged(out) as staging:
            make(options.only or PARTS, build, staging, limits=not options.quick)
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        print(f"{path.stat().st_size / MEGABYTE:9.3f} MB  {path}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Makes the packages of this platform.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder, which is replaced [default: dist]")
    parser.add_argument("--target", help="the platform, as rustc names it [default: that of this machine]")
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; may be repeated [default: all]")
    parser.add_argument("--allow-dirty", action="store_true", help="package changes that are not committed")
    parser.add_argument("--quick", action="store_true", help="the development profile, of what `make setup` has built")
    return parser.parse_args()


def make(parts: list[str] | tuple[str, ...], build: Build, out: Path, *, limits: bool) -> None:
    """Makes the parts in this folder."""
    TARGET.mkdir(parents=True, exist_ok=True)  # a fresh clone has none
    with tempfile.TemporaryDirectory(prefix="mcp-resources-", dir=TARGET) as folder:
        work = Path(folder)
        if "command" in parts or "node" in parts:
            with _step("the command and the library of Node"):
                program, library = build.programs()
                program, library = _stripped(program, work), _stripped(library, work)
        if "wheel" in parts:
            with _step("the wheel"):
                _wheel(build, out, limits=limits)
        if "sdist" in parts:
            with _step("the source distribution"):
                run("maturin sdist", Path(sys.executable).with_name("maturin"), "sdist", "--out", out)
        if "node" in parts:
            with _step("the npm packages"):
                if limits:
                    _scripts(build)
                for archive in node.pack(library, build.target, work, out):
                    _limited(archive, ".tgz", limits=limits)
        if "command" in parts:
            with _step("the archive of the command, and the bundle"):
                _limited(program, "command", limits=limits)
                archives.command(program, build.target, work, out)
                archives.bundle(program, build.target, out)
        if "crates" in parts:
            with _step("the crates, each compiled from its package"):
                _crates(out)
        if "sbom" in parts:
            with _step("the bill of materials"):
                import sbom

                sbom.write(build.target, out)
        _registry(out)
        archives.sums(out)


@contextmanager
def _step(what: str) -> Iterator[None]:
    print(f"== {what}", flush=True)
    start = time.monotonic()
    yield
    print(f"   {time.monotonic() - start:.0f} s", flush=True)


def _wheel(build: Build, out: Path, *, limits: bool) -> None:
    wheel = build.wheel(out)
    _limited(wheel, ".whl", limits=limits)
    if limits and build.target.is_linux:
        said = run("auditwheel show", sys.executable, "-m", "auditwheel", "show", wheel)
        if f'"{build.target.wheel}_' not in said.replace("\n", " "):
            raise ReleaseError(f"auditwheel does not find that {wheel.name} is {build.target.wheel}:\n{said}")
        print(f"   auditwheel: {build.target.wheel}")


def _limited(path: Path, kind: str, *, limits: bool) -> None:
    size = path.stat().st_size
    if limits and size > SIZES[kind]:
        most = SIZES[kind] / MEGABYTE
        text = f"{path.name} has {size / MEGABYTE:.1f} MB, more than {most:.0f}: `cargo bloat` shows what takes them"
        print(f"   warning: {text}", file=sys.stderr)


def _stripped(path: Path, work: Path) -> Path:
    """A copy without debugging information, which only the development profile has."""
    copy = work / "bin" / path.name
    copy.parent.mkdir(exist_ok=True)
    shutil.copyfile(path, copy)
    copy.chmod(0o755)
    if sys.platform == "linux" and TARGET / "debug" in path.parents:
        run("strip", "strip", "--strip-debug", copy)
    return copy


def _scripts(build: Build) -> None:
    """Compiles the TypeScript, with the types of the library that is packed."""
    types = build.environment["NAPI_TYPE_DEF_TMP_FOLDER"]
    run("the types of the library", "node", "bindings-node/build.mjs", "--types", types)
    shutil.rmtree(ROOT / "bindings-node" / "dist", ignore_errors=True)
    run("tsc", ROOT / "node_modules" / ".bin" / "tsc")
    (ROOT / "bindings-node" / "dist" / "command.js").chmod(0o755)


def _crates(out: Path) -> None:
    packages = [f"--package={name}" for name in CRATES]
    # Cargo takes packages of one version for the same: what was unpacked or compiled before would be used again.
    forget_unpacked(Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")))
    run("cargo clean", "cargo", "clean", "--quiet", "--profile=dev", *packages)
    # Nobody runs what is compiled here.
    plain = {"CARGO_PROFILE_DEV_DEBUG": "none"}
    said = run("cargo package", "cargo", "package", "--locked", "--allow-dirty", *packages, env=plain, both=True)
    print(f"   {verified(said)}")
    folder = out / "crates"
    folder.mkdir()
    for name in CRATES:
        archive = f"{name}-{project.version()}.crate"
        shutil.copyfile(TARGET / "package" / archive, folder / archive)


def forget_unpacked(cargo_home: Path) -> None:
    """Removes what cargo has unpacked of our packages before: it does so once for a version."""
    for name in CRATES:
        # The folder of a registry on the network has its host in front of the dash.
        for folder in cargo_home.glob(f"registry/src/-*/{name}-{project.version()}"):
            shutil.rmtree(folder)


def verified(said: str) -> str:
    """What `cargo package` said of the crates: each was compiled from its own package, without a warning."""
    if warnings := [line for line in said.splitlines() if line.lstrip().startswith("warning")]:
        raise ReleaseError("cargo package warns:\n" + "\n".join(warnings))
    compiled = set(re.findall(r"^ *Verifying (\S+) v", said, re.MULTILINE))
    if missing := [name for name in CRATES if name not in compiled]:
        raise ReleaseError(f"cargo package did not compile {', '.join(missing)} from its package")
    return f"{len(CRATES)} of {len(CRATES)} verified, warnings: none"


def _registry(out: Path) -> None:
    entry = archives.registry_entry(out)
    schema = ROOT / "release" / "server.schema.json"
    checker = Path(sys.executable).with_name("check-jsonschema")
    run("the check of server.json", checker, "--schemafile", schema, entry)


if __name__ == "__main__":
    sys.exit(main())
