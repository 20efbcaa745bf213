"""`python -m mcp_resources`: the native command, where its console script is not on the PATH."""

import signal
import sys

from ._core import main

# The command handles it; Python would notice only afterwards.
signal.signal(signal.SIGINT, signal.SIG_DFL)
sys.exit(main(["mcp-resources", *sys.argv[1:]]))
