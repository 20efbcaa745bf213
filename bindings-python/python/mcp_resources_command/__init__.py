"""The console script `mcp-resources`: the native command.

Beside the package `mcp_resources`, so that starting it does not import the whole of that.
"""

import signal
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec


def main() -> int:
    """Runs the command with the arguments of this process, and returns its exit status."""
    # The command handles it; Python would notice only afterwards.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    package = PathFinder.find_spec("mcp_resources")
    core = package and PathFinder.find_spec("mcp_resources._core", package.submodule_search_locations)
    if not core or not core.loader:
        raise ImportError("the compiled module mcp_resources._core is missing: install the package mcp-resources again")
    module = module_from_spec(core)
    core.loader.exec_module(module)
    return int(module.main(sys.argv))
