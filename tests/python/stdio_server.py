"""The server of the stdio and stress tests. Its argument names the event loop: asyncio or uvloop."""

import asyncio
import itertools
import logging
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from mcp_resources import Context, Limits, Resource, ResourceServer

MIB = 1 << 20
TEXT = "ab\n" * (MIB // 3)

logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(name)s %(levelname)s %(message)s")
if "--switch" in sys.argv:
    sys.setswitchinterval(1e-6)

server = ResourceServer("stdio", version="1.0.0", limits=Limits(grace=500))
numbers = itertools.count()


@server.resource("s://def/{x}")
def plain(x: str) -> str:
    return x


@server.resource("s://inline/{x}", inline=True)
def inline(x: str) -> str:
    return x


@server.resource("s://async/{x}")
async def coroutine(x: str) -> str:
    return x


@server.resource("s://later/{x}")
async def later(x: str) -> str:
    await asyncio.sleep(0.001)
    return x


@server.resource("s://sleep/{ms}")
def sleep(ms: int) -> str:
    time.sleep(ms / 1000)
    return f"slept {ms}"


@server.resource("s://asleep/{ms}")
async def asleep(ms: int) -> str:
    try:
        await asyncio.sleep(ms / 1000)
    finally:
        print("asleep ended", file=sys.stderr, flush=True)
    return f"slept {ms}"


gate = threading.Event()
side_by_side = threading.Barrier(6)


@server.resource("s://held/{x}")
def held(x: str) -> str:
    gate.wait()
    return x


@server.resource("s://aheld/{x}")
async def aheld(x: str) -> str:
    while not gate.is_set():
        await asyncio.sleep(0.001)
    return x


@server.resource("s://open")
async def open_gate() -> str:
    gate.set()
    return "open"


@server.resource("s://six/{x}")
def six(x: str) -> str:
    """Returns when six of it run."""
    side_by_side.wait(60)
    return x


@server.resource("s://big/{x}")
def big(x: str) -> str:
    return TEXT


@server.resource("s://bytes/{x}")
async def big_bytes(x: str) -> bytes:
    return TEXT.encode()


@server.resource("s://chunks/{x}")
async def chunks(x: str) -> AsyncIterator[str]:
    for _ in range(16):
        await asyncio.sleep(0)
        yield x * 1000


@server.resource("s://generated/{x}")
def generated(x: str) -> Iterator[bytes]:
    for _ in range(16):
        yield x.encode() * 1000


@server.resource("s://change/{x}")
def change(x: str, ctx: Context) -> str:
    uri = f"s://added/{next(numbers)}"
    server.add_resource(Resource(uri), text=x)
    ctx.progress(1, 2)
    server.notify_updated("s://watched")
    server.remove_resource(uri)
    return uri


@server.resource("s://hold/{ms}", inline=True)
def hold(ms: int) -> str:
    time.sleep(ms / 1000)
    return "held"


@server.resource("s://spin/{ms}")
async def spin(ms: int) -> str:
    await asyncio.sleep(0)
    time.sleep(ms / 1000)
    return "spun"


@server.resource("s://print")
def noisy() -> str:
    print("a stray print", flush=True)
    subprocess.run([sys.executable, "-c", "print('from a process'); input()"], check=False, stderr=subprocess.DEVNULL)
    return "quiet"


@server.resource("s://exit", inline=True)
def leave() -> str:
    sys.exit(7)


@server.resource("s://state")
async def state() -> dict[str, object]:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text("utf-8").splitlines())
    return {
        "threads": threading.active_count(),
        "tasks": len(asyncio.all_tasks()),
        "waiting": server._core.queue.waiting,
        "peak": int(status["VmHWM"].split()[0]) * 1024,
        "loop": type(asyncio.get_running_loop()).__module__.split(".")[0],
    }


server.add_resource(Resource("s://watched"), text="")


class Longest:
    """The longest time for which the loop was held."""

    value = 0.0

    async def watch(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.005)
            self.value = max(self.value, time.monotonic() - before - 0.005)


longest = Longest()


@server.resource("s://longest")
async def longest_hold() -> dict[str, float]:
    value, longest.value = longest.value, 0.0
    return {"seconds": value}


async def embedded() -> None:
    watch = asyncio.create_task(longest.watch())
    await server.serve_stdio()
    watch.cancel()
    print("came back", file=sys.stderr, flush=True)


class WithoutReaders(asyncio.SelectorEventLoop):
    """An event loop that cannot wait for descriptors, as one of Windows."""

    def add_reader(self, fd: object, callback: object, *args: object) -> None:
        raise NotImplementedError


def main() -> None:
    factory = WithoutReaders if "without-readers" in sys.argv else None
    if "uvloop" in sys.argv:
        import uvloop

        factory = uvloop.new_event_loop
    if "--embedded" in sys.argv:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(embedded())
    else:
        server.run(loop_factory=factory)


if __name__ == "__main__":
    main()
