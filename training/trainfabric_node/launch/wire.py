"""What a supervisor and its launcher say to each other: JSON objects, one a line, over a unix socket."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field, ValidationError

from trainfabric_plan.errors import InvalidInput, Mistake
from trainfabric_plan.model import Strict


class EpochStart(Strict):
    """An epoch as one node is to start it; what is left of an earlier one is killed first.

    Attributes:
        epoch: Its number.
        directory: Of the epoch on this node; the log and the folder `ranks` are made in it.
        nodes: Number of nodes of the epoch.
        node_rank: Which of them this is.
    """

    epoch: Annotated[int, Field(ge=1)]
    directory: Path
    nodes: Annotated[int, Field(ge=1)]
    node_rank: Annotated[int, Field(ge=0)]

    @property
    def log(self) -> Path:
        """What is printed."""
        return self.directory / "trainer.log"

    @property
    def rank_files(self) -> Path:
        """Beats and ends of the ranks."""
        return self.directory / "ranks"


StartT = TypeVar("StartT", bound=EpochStart)


class Request(Strict, Generic[StartT]):
    """One line of the supervisor: exactly one of the three.

    Attributes:
        start: Start an epoch.
        kill: Kill this epoch and every earlier one.
        status: Say how it is.
    """

    start: StartT | None = None
    kill: int | None = None
    status: Literal[True] | None = None


def read_request(line: bytes, kind: type[Request[StartT]]) -> Request[StartT]:
    """The request of a line.

    Raises:
        InvalidInput: If it is none.
    """
    try:
        request = kind.model_validate_json(line)
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
