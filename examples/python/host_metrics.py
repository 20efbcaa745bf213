"""Series of numbers: this machine, and what the program measures itself.

metrics:///                              all series with their last values
metrics:///{name}                        the last hour of one, such as metrics:///cpu_usage_percent; is watched
metrics:///{name}{?from,to,step,format}  another part of it, such as metrics:///jobs_done?from=-5m&format=csv
"""

import threading
import time

from mcp_resources import ResourceServer, providers

metrics = providers.metrics(host=True, interval="200ms")
server = ResourceServer("machine", version="1.0.0")
server.mount(metrics)


def work() -> None:
    """Does a job every tenth of a second, and counts them."""
    done = 0
    while True:
        time.sleep(0.1)
        done += 1
        metrics.push("jobs_done", done)


if __name__ == "__main__":
    metrics.push("jobs_done", 0)
    threading.Thread(target=work, daemon=True).start()
    server.run()
