"""A live feed: a reading that changes by itself, and tells who subscribed to it.

metrics://cpu/usage  load of the last minute per core, sampled twice a second
"""

import os
import threading
import time

from mcp_resources import ResourceServer

INTERVAL = 0.5
URI = "metrics://cpu/usage"

server = ResourceServer("metrics", version="1.0.0")
sample = {"usage": 0.0, "sampled_at": 0.0}


@server.resource(URI, mime_type="application/json", inline=True)
def cpu_usage() -> dict[str, float]:
    """Load of the last minute per core: 1.0 is fully busy."""
    return sample


def watch_cpu() -> None:
    global sample
    while True:
        load = os.getloadavg()[0] / (os.cpu_count() or 1)
        sample = {"usage": round(load, 3), "sampled_at": time.time()}
        server.notify_updated(URI)  # from any thread; costs nothing while nobody is subscribed
        time.sleep(INTERVAL)


if __name__ == "__main__":
    threading.Thread(target=watch_cpu, daemon=True).start()
    server.run()
