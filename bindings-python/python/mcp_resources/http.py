"""HTTP on threads of the core, which read, write, and answer requests without handlers.

Handlers run on the event loop. This module handles the rest: tokens, the start and the end.
"""

import asyncio
import errno
import os
import signal
import sys
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Unpack

from ._core import HttpServer, Server, Verification
from .auth import Auth, InvalidTokenError, checked, compiled, fields, parts, verified
from .driver import Driver
from .errors import RegistrationError
from .log import unverified
from .loops import running_loop
from .options import HttpOptions, Tls
from .watchdog import Watchdog


async def serve(
    server: Server,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    auth: Auth | None = None,
    tls: Tls | None = None,
    started: Callable[[str], None] | None = None,
    signals: bool = False,
    **options: Unpack[HttpOptions],
) -> None:
    """Serves until a signal or cancellation; then lets open requests finish."""
    loop = running_loop()
    driver = _Http(server, (auth, tls), {**options}, loop)
    try:
        url = driver.listen(host, port)
        if started is not None:
            started(url)
        if signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                with suppress(NotImplementedError, RuntimeError):  # not the main thread, or no signals here
                    loop.add_signal_handler(number, driver.stopping.set)
        await driver.stopping.wait()
    finally:
        await driver.close()


def announce(url: str) -> None:
    """Prints the URL on standard error."""
    print(f"serving {url} (end with Ctrl-C)", file=sys.stderr)


_REMEDIES = {
    errno.EADDRINUSE: "; stop what listens there, or choose another port (0 is any free one)",
    errno.EACCES: "; choose a port from 1024 on",
    errno.EPERM: "; choose a port from 1024 on",
    errno.EADDRNOTAVAIL: "; use an address of this machine, such as 127.0.0.1 or 0.0.0.0",
}


def _refusal(error: OSError, host: str, port: int) -> OSError:
    """The same error with the address and a remedy."""
    code = error.errno
    text = error.strerror if code is None else f"{os.strerror(code)}{_REMEDIES.get(code, '')}"
    message = f"cannot listen at {_shown(host)}:{port}: {text}"
    return OSError(message) if code is None else OSError(code, message)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _files(tls: Tls | None) -> tuple[str, str] | None:
    """The files of certificate and key."""
    if tls is None:
        return None
    if not isinstance(tls, Mapping) or tls.keys() != {"cert", "key"}:
        raise RegistrationError(f"tls: expected {{'cert': PATH, 'key': PATH}}, and not {tls!r}")
    return os.fspath(tls["cert"]), os.fspath(tls["key"])


class _Http(Driver):
    """The event loop behind the server's threads."""

    def __init__(
        self,
        server: Server,
        guards: tuple[Auth | None, Tls | None],
        options: dict[str, Any],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(loop)
        auth, tls = guards
        checked(auth)
        self.stopping = asyncio.Event()
        self._server = server  # keeps it alive while it is served
        self._auth = auth
        self._ended = asyncio.Event()
        self._listens = False
        self._verifications: set[asyncio.Task[None]] = set()
        given = options if auth is None else {**options, "auth": fields(auth)}
        self._http = HttpServer(server, weakref.proxy(self), given, compiled(auth), _files(tls))
        http = self._http
        self._watchdog = Watchdog(loop, lambda: http.suspended)
        self.attach(http)

    def listen(self, host: str, port: int) -> str:
        """Starts to listen. Returns the URL."""
        if not isinstance(host, str):
            raise TypeError(f"host is {host!r}, expected a text, such as '127.0.0.1'")
        if "/" in host:
            raise ValueError(f"host is {host!r}, expected an address, such as '127.0.0.1', without scheme and path")
        if not isinstance(port, int) or not 0 <= port <= 65535:
            raise TypeError(f"port is {port!r}, expected a whole number from 0 to 65535")
        try:
            port = self._http.listen(host, port)
        except OSError as error:
            raise _refusal(error, host, port) from None
        self._listens = True
        return f"{self._http.scheme}://{_shown(host)}:{port}{self._http.path}"

    def verify(self, token: str, verification: Verification) -> None:
        task = self.loop.create_task(self._verify(token, verification))
        self._verifications.add(task)
        task.add_done_callback(self._verifications.discard)

    def suspended(self) -> None:
        if not self._watchdog.watching:
            self._watchdog.watch()

    def ended(self) -> None:
        """The server's threads have stopped."""
        self._ended.set()

    async def close(self) -> None:
        """Lets open requests finish within `Limits.grace`, and cancels the rest."""
        if self._listens:
            self._http.shutdown()
            with suppress(asyncio.CancelledError):
                await asyncio.shield(self._ended.wait())
        self._http.close()
        self._watchdog.stop()

    async def _verify(self, token: str, verification: Verification) -> None:
        unavailable = True
        try:
            if self._auth is not None:
                verification.accept(parts(await verified(self._auth.verify, token)))
        except InvalidTokenError:
            unavailable = False
        except Exception as error:
            unverified(error)
        finally:
            verification.refuse(unavailable)
