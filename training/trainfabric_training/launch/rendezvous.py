"""Where the ranks of an epoch meet: the store process of the coordinator, and torch elastic's way to it.

Who takes part, and in which order, is known before an epoch starts. So there is nothing to negotiate: the handler hands
torch elastic the rank that it was given. Keys of an epoch carry its run id, so that those of another never meet them
(pytorch issue 135712: with gloo, what an earlier round left in a store breaks the next).
"""

from __future__ import annotations

import signal
import socket
from datetime import timedelta

from torch._C._distributed_c10d import TCPStore
from torch.distributed.elastic.rendezvous import (
    RendezvousHandler,
    RendezvousInfo,
    RendezvousStoreInfo,
)

from trainfabric_training.engine.processes import STORE_ANSWERS_WITHIN, connect

_BACKLOG = 2048


def serve_store(address: str, port: int) -> None:
    """Serves a store on this address alone, until a signal ends the process."""
    listener = socket.create_server((address, port), backlog=_BACKLOG, reuse_port=False)
    store = TCPStore(  # kept: the server ends with the object
        address, port, is_master=True, wait_for_workers=False, master_listen_fd=listener.detach(), use_libuv=True
    )
    print(f"rendezvous store on {store.host}:{store.port}", flush=True)
    while True:
        signal.pause()


class FixedRendezvous(RendezvousHandler):
    """A rendezvous of which everything is known; torch elastic starts its ranks without waiting for other nodes."""

    def __init__(
        self,
        *,
        host: str,
        port: int,
        run_id: str,
        node_rank: int,
        nodes: int,
        answers_within: timedelta = STORE_ANSWERS_WITHIN,
    ) -> None:
        self._host = host
        self._port = port
        self._run_id = run_id
        self._node_rank = node_rank
        self._nodes = nodes
        self._answers_within = answers_within

    def get_backend(self) -> str:
        """A name for torch elastic's records."""
        return "trainfabric"

    def next_rendezvous(self) -> RendezvousInfo:
        """The place that this node was given; raises `NoStore` if the store does not answer."""
        store = connect(self._host, self._port, f"{self._run_id}/agents", answers_within=self._answers_within)
        meeting = RendezvousStoreInfo(self._host, self._port)
        return RendezvousInfo(store, self._node_rank, self._nodes, meeting)

    def is_closed(self) -> bool:
        """Never: an epoch ends with its processes."""
        return False

    def set_closed(self) -> None:
        """Nothing to close."""

    def num_nodes_waiting(self) -> int:
        """None: nodes that come are taken in by another epoch."""
        return 0

    def get_run_id(self) -> str:
        """Name of the epoch."""
        return self._run_id

    def shutdown(self) -> bool:
        """Nothing to shut down."""
        return True
