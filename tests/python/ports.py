"""A port of this machine for a server that must be told which, or that is started again at the same address.

The port is bound but not listened on while the block runs. The system gives a bound port to no other socket that asks
for any free one, and a server that names it may still bind it (`SO_REUSEADDR`, which all servers of the tests set).

As a program: prints the port, and holds it until its input ends.
"""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

HOST = "127.0.0.1"


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port that no other process is given while the block runs."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((HOST, 0))
        yield int(holder.getsockname()[1])


if __name__ == "__main__":
    with reserved_port() as port:
        print(port, flush=True)
        sys.stdin.read()
