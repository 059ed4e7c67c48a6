"""What connects local nodes to each other and to the embedded AWS.

On loopback a node has an address of 127.0.0.0/8; `sandbox.bridge` gives each a network namespace, with a link that can
be taken away.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from sandbox.namespaces import Namespace
from trainfabric_plan.errors import Refused, Unreachable

INTERFACE_VARIABLE = "GLOO_SOCKET_IFNAME"
LOCK_PORT = 29399


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A node's place on a network.

    Attributes:
        address: Of the node.
        listener: Bound where the node expects its metadata service.
        namespace: That all processes of the node are to be in, if it has one.
        port: Of the bridge, for the node's link.
    """

    address: str
    listener: socket.socket
    namespace: Namespace | None = None
    port: str = ""

    def close(self) -> None:
        """Give it up, once nothing of the node is left."""
        self.listener.close()
        if self.namespace is not None:
            self.namespace.close()


class Network(Protocol):
    """Connects nodes."""

    def variables(self, given: Mapping[str, str]) -> dict[str, str]:
        """The variables of a node, from those of this process: where its services are, and its interface."""
        ...

    def connect(self) -> Connection:
        """A place for another node."""
        ...

    def set_link(self, connection: Connection, *, up: bool) -> None:
        """Take a node's link away, or give it back.

        Raises:
            Refused: If nodes have no links of their own.
        """
        ...

    def close(self) -> None:
        """Give everything up, once no node is left."""
        ...


class Loopback:
    """Every node has a loopback address of its own.

    Raises:
        Unreachable: If this machine has no loopback addresses to give.
    """

    def __init__(self) -> None:
        self._addresses = Addresses()

    def variables(self, given: Mapping[str, str]) -> dict[str, str]:
        """See `Network.variables`."""
        return {**given, INTERFACE_VARIABLE: "lo"}

    def connect(self) -> Connection:
        """See `Network.connect`."""
        address = next(self._addresses)
        return Connection(address=address, listener=bound(address, 0))

    def set_link(self, connection: Connection, *, up: bool) -> None:
        """See `Network.set_link`."""
        raise Refused(
            "sandbox: a node must have a network namespace for its link to be changed, got loopback; "
            "start python -m sandbox nodes --network namespaces"
        )

    def close(self) -> None:
        """See `Network.close`."""
        self._addresses.close()


def bound(address: str, port: int) -> socket.socket:
    """A TCP socket at an address, in the network of the thread that calls; port 0 is a free one."""
    made = socket.socket()
    made.bind((address, port))
    return made


class Addresses(Iterator[str]):
    """Loopback addresses that no node of another runner on this machine has; `close` gives them back.

    Raises:
        Unreachable: If this machine has no loopback addresses to give.
    """

    def __init__(self) -> None:
        self._block, self._lock = _free_block()
        self._number = 0

    def __next__(self) -> str:
        self._number += 1
        return f"127.{self._block}.{self._number // 250}.{self._number % 250 + 2}"

    def close(self) -> None:
        """Let another runner have the addresses."""
        self._lock.close()


def _free_block() -> tuple[int, socket.socket]:
    """The second byte of addresses that are nobody's; whoever listens at the last of them has the block."""
    for block in range(2, 250):
        lock = socket.socket()
        try:
            lock.bind((f"127.{block}.255.254", LOCK_PORT))
            lock.listen()
        except OSError:
            lock.close()
            continue
        return block, lock
    raise Unreachable(
        "sandbox: loopback addresses must be free, got none of 127.2.0.0 to 127.249.0.0; this needs Linux"
    )
