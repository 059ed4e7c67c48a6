"""Why ranks failed, from what they printed: their own words, without what torch elastic says about them."""

from __future__ import annotations

import re

from trainfabric_plan.contract import PROGRESS_MARK

_TRACEBACK = re.compile(
    r"^(?P<rank>\[rank\d+\]: )?Traceback \(most recent call last\):\n"
    r"(?:(?(rank)\[rank\d+\]: ) .*\n)+(?P<error>\S.*)\n?",
    re.MULTILINE,
)
"""One traceback; once the ranks have met, torch writes theirs as a whole with their number before each line."""

_BANNER = re.compile(r"^={20,}\n.* FAILED\n-{20,}\n.*?^={20,}\n?", re.MULTILINE | re.DOTALL)
_ELASTIC_FILES = ("torch/distributed/run.py", "torch/distributed/elastic/", "torch/distributed/launcher/")
_KILLED = re.compile(r"torch/distributed/elastic/\S+\] failed \(exitcode: -(?P<signal>\d+)\) local_rank: (?P<rank>\d+)")
_SIGTERM = "15"
"""What torch elastic sends its ranks when one of them, or another node, has failed."""

_NOISE = re.compile(
    rf"{re.escape(PROGRESS_MARK)}"
    r"|(?:\[rank\d+\]:)?\[?[WI]\d{4} \d\d:\d\d:\d\d"
    r"|[EF]\d{4} \d\d:\d\d:\d\d\S* .*torch/distributed/elastic/"
    r"|Exception raised from \S+ at |frame #\d+: |<omitting python frames>"
    r"|The above exception was the direct cause|During handling of the above exception"
)
"""Beginnings of lines that say nothing about a failure: progress, warnings, torch elastic's log, frames of C++."""

_LOST = re.compile(
    r"Connection (?:reset|closed) by peer|Connection was likely closed|Broken pipe|remote process exited"
    r"|RendezvousConnectionError|RendezvousClosedError|DistNetworkError|DistStoreError"
)
"""What ranks and torch elastic say when others are gone (torch 2.13 with gloo and NCCL)."""


def is_of_others(output: str) -> bool:
    """Whether what was printed gives no reason of this node's, but says that others were gone."""
    return bool(_LOST.search(output)) and not why_it_failed(output)


def why_it_failed(output: str, lines: int = 15, characters: int = 2000) -> str:
    """The last lines that ranks printed about a failure of their own; empty if there are none."""
    words = _TRACEBACK.sub(_kept, _BANNER.sub("", output))
    said = [line for line in words.splitlines() if line.strip() and not _NOISE.match(line)]
    if not said:
        return _killed(output) or _elastic_error(output)
    return "\n".join(said[-lines:])[-characters:].strip()


def _kept(traceback: re.Match[str]) -> str:
    return "" if _is_elastics(traceback) or _LOST.search(traceback["error"]) else traceback[0]


def _is_elastics(traceback: re.Match[str]) -> bool:
    return any(file in traceback[0] for file in _ELASTIC_FILES)


def _killed(output: str) -> str:
    """Which rank a signal ended that torch elastic had not sent, as when memory runs out: it cannot say so itself."""
    killed = [match for match in _KILLED.finditer(output) if match["signal"] != _SIGTERM]
    return f"local rank {killed[0]['rank']} was ended by signal {killed[0]['signal']}" if killed else ""


def _elastic_error(output: str) -> str:
    """What made torch elastic itself fail, such as a rendezvous store that does not answer."""
    errors = [found["error"] for found in _TRACEBACK.finditer(output) if _is_elastics(found)]
    own = [error for error in errors if "ChildFailedError" not in error]
    return "" if not own or any(_LOST.search(error) for error in errors) else own[-1]
