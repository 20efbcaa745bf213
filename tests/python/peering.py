"""The servers of `tests/peers`, and the ways in which a client reaches them."""

import sys
from contextlib import ExitStack
from dataclasses import dataclass

from vectors import ROOT

sys.path.append(str(ROOT / "tests" / "peers"))
from peers import LEGACY, MODERN, NODE, PEERS, Era, Peer, Transport, ensure, serving

__all__ = [
    "BELOW",
    "COUNTER",
    "LEGACY",
    "LISTED",
    "MODERN",
    "NODE",
    "PEERS",
    "TRANSPORTS",
    "UNTOLD",
    "WAYS",
    "Era",
    "Peer",
    "Served",
    "Transport",
    "Way",
    "ensure",
    "serving",
]

COUNTER = "peer://counter"
BELOW = "peer://item/{id}"
LISTED = {f"peer://{name}" for name in ("static", "blob", "json", "counter", "touch", "slow")}
LISTED |= {f"peer://r/{number}" for number in range(250)}
UNTOLD = 0.5
"""Seconds to wait for an update that never comes. A test fails only if it does come."""


@dataclass(frozen=True)
class Way:
    """A peer, and how a client reaches it."""

    peer: Peer
    transport: Transport
    era: Era

    def __str__(self) -> str:
        return f"{self.peer.name} {self.transport} {self.era}"

    @property
    def untold(self) -> str | None:
        """Why no update of the counter is sent; `None` if one is."""
        return self.peer.no_updates.get((self.era, self.transport))


TRANSPORTS: tuple[Transport, ...] = ("stdio", "http")
WAYS = [Way(peer, transport, era) for peer in PEERS.values() for transport in TRANSPORTS for era in peer.eras]


class Served(dict[str, str]):
    """The URLs of the peers, each started when it is first asked for."""

    def __init__(self, stack: ExitStack) -> None:
        super().__init__()
        self._stack = stack

    def __missing__(self, name: str) -> str:
        self[name] = self._stack.enter_context(serving(PEERS[name]))
        return self[name]
