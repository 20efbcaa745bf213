"""What is published: a wheel, and the sources from which the same wheel is made. Each answers once it is installed."""

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from stdio_process import read
from vectors import ROOT

SOURCES = ROOT / "target" / "sources"
"""Where the published sources are unpacked: what did not change is not compiled again."""
PROGRAM = """
from mcp_resources import ResourceServer
server = ResourceServer("x")
server.resource("a://def")(lambda: "x")
server.run()
"""


def run(*command: "str | Path", at: Path = ROOT) -> None:
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target"), "PYO3_PYTHON": sys.executable}
    done = subprocess.run(command, cwd=at, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr


def maturin(*arguments: "str | Path", at: Path = ROOT) -> None:
    run(Path(sys.executable).with_name("maturin"), *arguments, at=at)


def only(folder: Path, ending: str) -> Path:
    (found,) = folder.glob(f"*{ending}")
    return found


def unpacked(archive: Path) -> Path:
    """The files of the archive, of which those that are the same are left as they are."""
    with tarfile.open(archive) as files:
        members = {member.name: member for member in files.getmembers() if member.isfile()}
        (top,) = {name.split("/", 1)[0] for name in members}
        for old in (SOURCES / top).rglob("*"):
            if old.is_file() and str(old.relative_to(SOURCES)) not in members:
                old.unlink()
        for name, member in members.items():
            source, path = files.extractfile(member), SOURCES / name
            assert source is not None
            content = source.read()
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.is_file() or path.read_bytes() != content:
                path.write_bytes(content)
    return SOURCES / top


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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    maturin("build", "--out", folder)
    return only(folder, ".whl")


def test_a_wheel_serves_in_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "mcp_resources/py.typed" in names
    assert "mcp_resources/_core.pyi" in names
    assert sum(name.endswith((".so", ".dylib")) for name in names) == 1
    assert not [name for name in names if "test" in name.replace("testing.py", "") or "__pycache__" in name]
    assert {Path(name).name for name in names} >= {"LICENSE-MIT", "LICENSE-APACHE"}
    assert answers(wheel, tmp_path / "clean")


def test_the_sources_make_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    maturin("sdist", "--out", tmp_path)
    sources = unpacked(only(tmp_path, ".tar.gz"))
    assert not list(sources.glob("tests")), "no tests"
    maturin("build", "--out", tmp_path, at=sources)
    made = only(tmp_path, ".whl")
    assert made.name == wheel.name
    assert sorted(zipfile.ZipFile(made).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())
    assert answers(made, tmp_path / "clean")
