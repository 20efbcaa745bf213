"""`attach` with the oldest versions that it supports, and what it says to older ones.

The newest are those of the other tests. Each version has an environment of its own below `target/peers`.
"""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest
from attached_app import KINDS, Kind
from vectors import ROOT

sys.path.insert(0, str(ROOT / "tests" / "peers"))
from peers import environment

HERE = Path(__file__).parent
PATIENCE = 600.0
OLDEST: dict[Kind, str] = {"mcp": "2.3.0", "fastmcp": "4.1.0"}
TESTS = ["pytest==9.2.0", "pytest-timeout==2.4.0"]
UNTOLD = {"fastmcp": "a_name_that_both_have"}
"""A test that needs what the oldest version lacks: FastMCP 4.1.0 does not say which tools it has."""

TOO_OLD = """
import sys
from mcp_resources import ResourceServer
if sys.argv[1] == "mcp":
    from mcp.server.fastmcp import FastMCP
else:
    from fastmcp import FastMCP
try:
    ResourceServer("ours").attach(FastMCP("theirs"))
except RuntimeError as error:
    print(error)
"""


def run(python: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in an environment, with this package."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "MCP_RESOURCES"))}
    own = mine | {"PYTHONPATH": str(ROOT / "bindings-python" / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(python), *args]
    return subprocess.run(command, env=own, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.mark.parametrize("kind", KINDS)
def test_the_oldest_version(kind: Kind) -> None:
    """The tests of attach, in memory."""
    if importlib.metadata.version(kind) == OLDEST[kind]:
        return  # it is the version of all tests here
    python = environment(f"attach-{kind}-oldest", f"{kind}=={OLDEST[kind]}", *TESTS)
    chosen = f"{kind} and not {UNTOLD[kind]}" if kind in UNTOLD else kind
    files = [str(HERE / name) for name in ("test_attach.py", "test_attach_mistakes.py")]
    ran = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, *files)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(("kind", "version"), [("mcp", "1.30.0"), ("fastmcp", "3.4.11")])
def test_a_version_that_is_too_old(kind: Kind, version: str) -> None:
    """One sentence at attach, with the version that is installed and the remedy."""
    python = environment(f"attach-{kind}-too-old", f"{kind}=={version}")
    ran = run(python, "-c", TOO_OLD, kind)
    assert ran.returncode == 0, ran.stderr
    (said,) = ran.stdout.splitlines()
    assert said.startswith("attach needs a list of middleware, which ")
    assert f"{kind} {version}" in said
    assert said.endswith("install mcp>=2.3,<3 or fastmcp>=4.1,<5, or a newer mcp-resources")
