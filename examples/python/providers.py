"""Two providers: the time, and a folder in memory whose entries come and go.

clock:///now, clock:///{+zone}  the time, told each second while somebody watches
memory:///{+path}               100,000 notes in pages; ticker.txt changes twice a second, guest.txt comes and goes

`providers.py PORT` serves over HTTP instead of stdio. What lies in secret/ is hidden by the guard.
"""

import sys
import threading
import time

from mcp_resources import ResourceServer, providers

server = ResourceServer("providers", version="1.0.0", guard={"deny": ["memory:///secret/**"]})
folder = providers.memory()


def fill() -> None:
    """Puts what the folder has from the beginning."""
    for number in range(100_000):
        folder.put(f"notes/{number:05}.txt", f"note {number}\n")
    folder.put("picture.bin", bytes(range(256)) * 512, mime_type="image/x-pattern")
    folder.put("secret/plan.txt", "not for everybody")


def come_and_go() -> None:
    """Changes entries for ever, from a thread of its own."""
    for turn in range(sys.maxsize):
        folder.put("ticker.txt", f"turn {turn}")
        if turn % 2:
            folder.remove("guest.txt")
        else:
            folder.put("guest.txt", "here")
        time.sleep(0.5)


fill()
server.mount(providers.clock(), folder)

if __name__ == "__main__":
    threading.Thread(target=come_and_go, daemon=True).start()
    if sys.argv[1:]:
        server.run("http", port=int(sys.argv[1]))
    else:
        server.run()
