"""Sources of resources that are ready to serve: made here, and served by `ResourceServer.mount`.

from mcp_resources import ResourceServer, providers

server = ResourceServer("notes")
folder = providers.memory()
server.mount(providers.clock(), folder)
folder.put("today.md", "Buy milk", "text/markdown")

They answer on threads of their own: no request for them waits for the event loop, or for the interpreter. The guard,
limits, audit and `redact` of the server hold for them as for functions. `redact` is called on such a thread.
"""

from ._core import Memory, Provider, clock, memory

__all__ = ["Memory", "Provider", "clock", "memory"]
