"""The event loop that runs now."""

import asyncio


def running_loop() -> asyncio.AbstractEventLoop:
    """Returns the running event loop of asyncio.

    Raises:
        RuntimeError: none is running, as in a program of trio's.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "no event loop of asyncio is running here; start this with asyncio.run(). "
            "Another runner, such as trio, cannot run it: give it a thread of its own, or use trio-asyncio"
        ) from None


def no_running_loop(instead: str) -> None:
    """Checks that `run` may start one. `instead` is the call for a program that has one.

    Raises:
        RuntimeError: one is running.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(f"run() starts an event loop, and there is one already; write `await server.{instead}`")
