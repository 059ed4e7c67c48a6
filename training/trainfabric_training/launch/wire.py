"""What a supervisor and its launcher say to each other: JSON objects, one a line, over a unix socket."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from trainfabric_plan.errors import InvalidInput, Mistake
from trainfabric_plan.model import Strict


class Start(Strict):
    """An epoch as one node is to start it; what is left of an earlier one is killed first.

    Attributes:
        epoch: Its number.
        directory: Of the epoch on this node; the log and the folder `ranks` are made in it.
        environment: Variables that the ranks get besides the launcher's own.
        nodes: Number of nodes of the epoch.
        node_rank: Which of them this is.
        ranks_per_node: Ranks on every node.
        run_id: A name that no other epoch has; separates it from others in the rendezvous store.
        rendezvous: Host and port of the store.
        address: This node's own.
        arguments: Command line of the trainer.
    """

    epoch: Annotated[int, Field(ge=1)]
    directory: Path
    environment: dict[str, str]
    nodes: Annotated[int, Field(ge=1)]
    node_rank: Annotated[int, Field(ge=0)]
    ranks_per_node: Annotated[int, Field(ge=1)]
    run_id: str
    rendezvous: str
    address: str
    arguments: tuple[str, ...]

    @property
    def log(self) -> Path:
        """What the agent and the ranks print."""
        return self.directory / "trainer.log"

    @property
    def rank_files(self) -> Path:
        """Beats and ends of the ranks."""
        return self.directory / "ranks"

    @property
    def ranks(self) -> range:
        """Global ranks of this node."""
        first = self.node_rank * self.ranks_per_node
        return range(first, first + self.ranks_per_node)


class Request(Strict):
    """One line of the supervisor: exactly one of the three.

    Attributes:
        start: Start an epoch.
        kill: Kill this epoch and every earlier one.
        status: Say how it is.
    """

    start: Start | None = None
    kill: int | None = None
    status: Literal[True] | None = None


def read_request(line: bytes) -> Request:
    """The request of a line.

    Raises:
        InvalidInput: If it is none.
    """
    try:
        request = Request.model_validate_json(line)
    except ValidationError as error:
        raise InvalidInput(
            Mistake(where="launcher", name=_path(one["loc"]), rule="valid", got=one["msg"]) for one in error.errors()
        ) from None
    given = [name for name in ("start", "kill", "status") if getattr(request, name) is not None]
    if len(given) != 1:
        got = " and ".join(given) or "none"
        raise InvalidInput([Mistake(where="launcher", name="request", rule="start, kill or status", got=got)])
    return request


def line_of(**answer: Any) -> bytes:
    """One line of the launcher."""
    return json.dumps(answer).encode() + b"\n"


def _path(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location)) or "request"
