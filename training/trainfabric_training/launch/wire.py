"""What a supervisor tells the launcher of our engine; see `trainfabric_node.launch.wire`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from trainfabric_node.launch import EpochStart


class Start(EpochStart):
    """An epoch as one node is to start it.

    Attributes:
        environment: Variables that the ranks get besides the launcher's own.
        ranks_per_node: Ranks on every node.
        run_id: A name that no other epoch has; separates it from others in the rendezvous store.
        rendezvous: Host and port of the store.
        address: This node's own.
        arguments: Command line of the trainer.
    """

    environment: dict[str, str]
    ranks_per_node: Annotated[int, Field(ge=1)]
    run_id: str
    rendezvous: str
    address: str
    arguments: tuple[str, ...]

    @property
    def ranks(self) -> range:
        """Global ranks of this node."""
        first = self.node_rank * self.ranks_per_node
        return range(first, first + self.ranks_per_node)
