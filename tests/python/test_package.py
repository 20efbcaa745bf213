"""What is published: a wheel that answers once it is installed."""

import json
import os
import subprocess
import sys
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


def run(*command: "str | Path", at: Path = ROOT) -> None:
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target"), "PYO3_PYTHON": sys.executable}
    done = subprocess.run(command, cwd=at, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr


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
