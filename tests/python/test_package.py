"""What is published: a wheel and a source distribution that answer once they are installed, and the crate."""

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from stdio_process import read
from vectors import ROOT

PROGRAM = """
from mcp_resources import ResourceServer
server = ResourceServer("x")
server.resource("a://def")(lambda: "x")
server.run()
"""
LICENSES = {"LICENSE-MIT", "LICENSE-APACHE"}
CRATES = {
    "mcp-resources": "core",
    "mcp-resources-bus": "core/bus",
    "mcp-resources-cli": "core/cli",
    "mcp-resources-client": "core/client",
    "mcp-resources-engine": "core/engine",
    "mcp-resources-runtime": "core/runtime",
    "mcp-resources-provider-api": "core/providers/api",
    "mcp-resources-provider-db": "core/providers/db",
    "mcp-resources-provider-drive": "core/providers/drive",
    "mcp-resources-provider-files": "core/providers/files",
    "mcp-resources-provider-git": "core/providers/git",
    "mcp-resources-provider-kit": "core/providers/kit",
    "mcp-resources-provider-local": "core/providers/local",
    "mcp-resources-provider-text": "core/providers/text",
    "mcp-resources-provider-upstream": "core/providers/upstream",
    "mcp-resources-providers": "core/providers",
    "mcp-resources-serve": "core/serve",
    "mcp-resources-template": "core/template",
}
OURS = (*CRATES, "mcp-resources-python")
# Ours are compiled once more, and only to be called once.
QUICK = [f"profile.dev.package.{name}.{setting}" for name in OURS for setting in ("opt-level=0", "debug=false")]


def run(*command: "str | Path", at: Path = ROOT) -> str:
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target"), "PYO3_PYTHON": sys.executable}
    done = subprocess.run(command, cwd=at, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def maturin(*arguments: "str | Path", at: Path = ROOT) -> None:
    run(Path(sys.executable).with_name("maturin"), *arguments, at=at)


def only(folder: Path, ending: str) -> Path:
    (found,) = folder.glob(f"*{ending}")
    return found


def answers(wheel: Path, folder: Path) -> bool:
    """Whether the wheel, in an environment with nothing else, serves a first read over stdio."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", wheel)
    done = subprocess.run(
        [python, "-I", "-c", PROGRAM], input=read(1, "a://def"), cwd=folder, capture_output=True, timeout=60, check=True
    )
    assert done.stderr == b""
    return bool(json.loads(done.stdout)["result"]["contents"][0]["text"] == "x")


def files(*folders: str) -> set[str]:
    """The files of the repository in these folders, without what a build or a run leaves there."""
    found = {path for folder in folders for path in (ROOT / folder).rglob("*.*") if path.is_file()}
    left = {path for path in found if path.suffix in (".so", ".dylib", ".pyc")}
    return {path.relative_to(ROOT).as_posix() for path in found - left}


def of_crate(folder: str) -> set[str]:
    """What a crate consists of."""
    own = {
        name.removeprefix(f"{folder}/") for name in files(f"{folder}/src", f"{folder}/benches", f"{folder}/web/dist")
    }
    return own | LICENSES | {"Cargo.toml", "README.md"}


def pinned(lock: str) -> set[tuple[str, str]]:
    """The packages of a lock file, with their versions."""
    return {(package["name"], package["version"]) for package in tomllib.loads(lock)["package"]}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    maturin("build", "--out", folder)
    return only(folder, ".whl")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of the source distribution, by their path in it."""
    folder = tmp_path_factory.mktemp("sdist")
    maturin("sdist", "--out", folder)
    found = {}
    with tarfile.open(only(folder, ".tar.gz")) as archive:
        for member in archive:
            assert member.isfile(), member.name
            content = archive.extractfile(member)
            assert content is not None
            found[member.name.partition("/")[2]] = content.read()
    return found


def test_a_wheel_serves_in_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "mcp_resources/py.typed" in names
    assert "mcp_resources/_core.pyi" in names
    assert sum(name.endswith((".so", ".dylib")) for name in names) == 1
    assert not [name for name in names if "test" in name.replace("testing.py", "") or "__pycache__" in name]
    assert {Path(name).name for name in names} >= LICENSES
    assert answers(wheel, tmp_path / "clean")


def test_the_source_distribution_has_the_sources_and_no_more(sources: dict[str, bytes]) -> None:
    core = {f"{folder}/{name}" for folder in CRATES.values() for name in of_crate(folder)}
    binding = files("bindings-python/src", "bindings-python/python") | {
        "bindings-python/Cargo.toml",
        "bindings-python/README.md",
    }
    copied = core | binding | LICENSES | {"Cargo.lock", "pyproject.toml"}
    assert {*sources} == copied | {"Cargo.toml", "PKG-INFO"}
    for name in copied:
        assert sources[name] == (ROOT / name).read_bytes(), name
    for name in ("Cargo.toml", "PKG-INFO"):
        assert str(ROOT).encode() not in sources[name]


def test_the_source_distribution_builds_and_serves(sources: dict[str, bytes], tmp_path: Path) -> None:
    """With the versions that are tested here, and without the network."""
    folder = ROOT / "target" / "sdist"
    lay_out(sources, folder)
    # The lock file also has packages of crates that are not in the archive. Cargo drops them; then `--locked` works.
    run("cargo", "metadata", "--offline", "--format-version", "1", at=folder)
    lock = (folder / "Cargo.lock").read_text("utf-8")
    assert pinned(lock) < pinned((ROOT / "Cargo.lock").read_text("utf-8"))
    settings = [part for setting in QUICK for part in ("--config", setting)]
    maturin("build", "--locked", "--offline", *settings, "--out", tmp_path, at=folder)
    assert answers(only(tmp_path, ".whl"), tmp_path / "clean")


def lay_out(sources: dict[str, bytes], folder: Path) -> None:
    """Writes the files that differ. Cargo would compile again what has a new time."""
    for path in [*folder.rglob("*")]:
        if path.is_file() and str(path.relative_to(folder)) not in sources:
            path.unlink()
    for name, content in sources.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


@pytest.fixture(scope="module")
def crates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archives of all crates that are published together."""
    folder = tmp_path_factory.mktemp("crates")
    packages = [f"--package={name}" for name in CRATES]
    run("cargo", "package", *packages, "--allow-dirty", "--offline", "--no-verify", "--target-dir", folder)
    return folder / "package"


@pytest.mark.parametrize("name", CRATES)
def test_a_crate_has_its_sources_and_licenses(crates: Path, name: str) -> None:
    with tarfile.open(only(crates, f"{name}-[0-9]*.crate")) as archive:
        names = {member.name.partition("/")[2] for member in archive}
        content = archive.extractfile(next(name for name in archive.getnames() if name.endswith("/Cargo.toml")))
        assert content is not None
        manifest = tomllib.loads(content.read().decode())
    own = of_crate(CRATES[name])
    made = {".cargo_vcs_info.json", "Cargo.lock", "Cargo.toml.orig"}
    assert own <= names <= own | made
    assert manifest["package"]["license"] == "MIT OR Apache-2.0"
    # What is published can depend on nothing that is not.
    assert not re.search(r"'path'", repr([manifest["dependencies"], manifest.get("dev-dependencies")]))
