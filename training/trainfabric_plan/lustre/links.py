"""Directories of a file system that are prefixes of buckets: FSx's data repository associations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from trainfabric_plan.errors import Mistake
from trainfabric_plan.lustre.facts import EVENTS, MOST_LINKS

NOT_THE_CHECKPOINTS = (
    "another bucket than the checkpoints': what Lustre exports late or deletes would be a lost checkpoint"
)
"""Why the checkpoint bucket is never linked."""

_PATH = re.compile(r"/([A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*)?")


@dataclass(frozen=True, kw_only=True)
class LinkWish:
    """One link as it was given.

    Attributes:
        path: Directory of the file system, such as `/data`; `/` for all of it.
        bucket: What tells one bucket from another: its name, or a label where the name is not known yet.
        prefix: Key prefix, such as `data/`; empty for the whole bucket.
        imports: Of `new`, `changed`, `deleted`: what happens in the bucket and shows in the directory.
        exports: Of the same: what happens in the directory and is written to the bucket.
    """

    path: str
    bucket: str
    prefix: str
    imports: Sequence[str] = EVENTS
    exports: Sequence[str] = EVENTS


def link_mistakes(
    where: str, links: Sequence[LinkWish], *, name: Callable[[int, str], str], checkpoint_bucket: str | None = None
) -> list[Mistake]:
    """Every rule of FSx, and ours about the checkpoint bucket, that these links break.

    Args:
        where: What was read.
        links: The links, in order.
        name: Names a value of a link in messages, from its number (0 is the first) and key.
        checkpoint_bucket: The bucket that is never linked: what Lustre exports there late or deletes would be lost
            checkpoints.
    """
    found = [*_number(where, len(links), name)]
    for index, link in enumerate(links):
        for key, rule, got, remedy in _alone(link, checkpoint_bucket):
            found.append(Mistake(where=where, name=name(index, key), rule=rule, got=got, remedy=remedy))
    for (one, first), (other, second) in combinations(enumerate(links), 2):
        for key, rule, got in _together(first, second, name(one, "path"), name(one, "prefix")):
            found.append(Mistake(where=where, name=name(other, key), rule=rule, got=got))
    return found


def _number(where: str, count: int, name: Callable[[int, str], str]) -> Iterator[Mistake]:
    if count > MOST_LINKS:
        rule = f"at most {MOST_LINKS}: FSx links no more to one file system"
        yield Mistake(where=where, name=name(-1, ""), rule=rule, got=str(count))


def _alone(link: LinkWish, checkpoint_bucket: str | None) -> Iterator[tuple[str, str, str, str | None]]:
    if not _PATH.fullmatch(link.path):
        rule = "an absolute path of letters, digits, dots, _ and -, without a slash at the end"
        yield "path", rule, repr(link.path), "use /data"
    if link.prefix.startswith("/") or (link.prefix and not link.prefix.endswith("/")):
        rule = "a key prefix that ends with a slash and starts with none"
        yield "prefix", rule, repr(link.prefix), f"use {link.prefix.strip('/')}/"
    for key in ("imports", "exports"):
        for event in dict.fromkeys(getattr(link, key)):
            if event not in EVENTS:
                yield key, f"some of {', '.join(EVENTS)}", event, None
    if checkpoint_bucket is not None and link.bucket == checkpoint_bucket:
        yield "bucket", NOT_THE_CHECKPOINTS, link.bucket, "use the data bucket, or one of its own"


def _together(first: LinkWish, second: LinkWish, path: str, prefix: str) -> Iterator[tuple[str, str, str]]:
    if _overlap(first.path.rstrip("/") + "/", second.path.rstrip("/") + "/"):
        yield "path", f"outside of the directory of {path} ({first.path}), and not around it", second.path
    if first.bucket == second.bucket and _overlap(first.prefix, second.prefix):
        shown = first.prefix or "the whole bucket"
        yield "prefix", f"outside of {prefix} ({shown}) of the same bucket, and not around it", repr(second.prefix)


def _overlap(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)
