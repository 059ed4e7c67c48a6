"""Why a trainer failed, from what it printed: its ranks' own words, without what torchrun says about them."""

from __future__ import annotations

import re

from trainfabric_node.jobs.records import BECAUSE_OF_ANOTHER
from trainfabric_plan.contract import PROGRESS_MARK

_TRACEBACK = re.compile(
    r"^(?P<rank>\[rank\d+\]: )?Traceback \(most recent call last\):\n"
    r"(?:(?(rank)\[rank\d+\]: ) .*\n)+(?P<error>\S.*)\n?",
    re.MULTILINE,
)
"""One traceback; once the ranks have met, torch writes theirs as a whole with their number before each line."""

_TORCHRUN_BANNER = re.compile(r"^={20,}\n.* FAILED\n-{20,}\n.*?^={20,}\n?", re.MULTILINE | re.DOTALL)
_TORCHRUN_FILES = ("torch/distributed/run.py", "torch/distributed/elastic/")
_KILLED = re.compile(r"torch/distributed/elastic/\S+\] failed \(exitcode: -(?P<signal>\d+)\) local_rank: (?P<rank>\d+)")
_SIGTERM = "15"
"""What torchrun sends its ranks when one of them, or another node, has failed."""

_NOISE = re.compile(
    rf"{re.escape(PROGRESS_MARK)}"
    r"|(?:\[rank\d+\]:)?\[?[WI]\d{4} \d\d:\d\d:\d\d"
    r"|[EF]\d{4} \d\d:\d\d:\d\d\S* .*torch/distributed/elastic/"
    r"|Exception raised from \S+ at |frame #\d+: |<omitting python frames>"
    r"|The above exception was the direct cause|During handling of the above exception"
)
"""Beginnings of lines that say nothing about a failure: progress, warnings, torchrun's log, frames of C++."""

_LOST = re.compile(
    r"Connection (?:reset|closed) by peer|Connection was likely closed|Broken pipe|remote process exited"
    r"|RendezvousConnectionError|RendezvousClosedError"
)
"""What ranks and torchrun say when others are gone (torch 2.13 with gloo and NCCL)."""


def how_it_failed(status: int | None, output: str, *, alone: bool) -> str:
    """The detail of a node whose trainer failed; begins with `BECAUSE_OF_ANOTHER` if it has no reason of its own.

    Args:
        status: Exit status of the trainer.
        output: What it printed, or the end of that.
        alone: Whether it is the only node, so that no other can be the reason.
    """
    left = f"the trainer left with status {status}"
    reason = why_it_failed(output)
    if reason:
        return f"{left}: {reason}"
    lost = next((line for line in output.splitlines() if _LOST.search(line)), "gave no reason")
    return f"{left}: {lost[:500]}" if alone else f"{BECAUSE_OF_ANOTHER}: {left}: {lost[:500]}"


def why_it_failed(output: str, lines: int = 15, characters: int = 2000) -> str:
    """The last lines that ranks printed about a failure of their own; empty if there are none."""
    words = _TRACEBACK.sub(_kept, _TORCHRUN_BANNER.sub("", output))
    said = [line for line in words.splitlines() if line.strip() and not _NOISE.match(line)]
    if not said:
        return _killed(output) or _torchrun_error(output)
    return "\n".join(said[-lines:])[-characters:].strip()


def _kept(traceback: re.Match[str]) -> str:
    return "" if _is_torchruns(traceback) or _LOST.search(traceback["error"]) else traceback[0]


def _is_torchruns(traceback: re.Match[str]) -> bool:
    return any(file in traceback[0] for file in _TORCHRUN_FILES)


def _killed(output: str) -> str:
    """Which rank a signal ended that torchrun had not sent, as when memory runs out: it cannot say so itself."""
    killed = [match for match in _KILLED.finditer(output) if match["signal"] != _SIGTERM]
    return f"local rank {killed[0]['rank']} was ended by signal {killed[0]['signal']}" if killed else ""


def _torchrun_error(output: str) -> str:
    """What made torchrun itself fail, such as a rendezvous that others did not come to."""
    errors = [found["error"] for found in _TRACEBACK.finditer(output) if _is_torchruns(found)]
    own = [error for error in errors if "ChildFailedError" not in error]
    return "" if not own or any(_LOST.search(error) for error in errors) else own[-1]
