"""Which tags AWS takes.

Source: EC2 user guide, tag restrictions (50 tags per resource, key 128, value 256 characters), 2026.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MOST = 48
"""AWS takes 50; two are ours: environment, and role or name."""
LONGEST_KEY, LONGEST_VALUE = 128, 256
RESERVED = ("aws:", "parallelcluster:", "trainfabric:")


def tag_problems(tags: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Every tag that AWS would refuse or that would override one of ours, in the form of `environment.rules`."""
    if len(tags) > MOST:
        rule = f"at most {MOST} tags: AWS takes 50, of which trainfabric sets two"
        yield {"name": "tags", "rule": rule, "got": str(len(tags)), "remedy": "remove some"}
    for key, value in tags.items():
        name = f"tags.{key}"
        if key.lower().startswith(RESERVED):
            rule = f"a key that does not start with {', '.join(RESERVED[:-1])} or {RESERVED[-1]}"
            yield {"name": name, "rule": rule, "got": key, "remedy": "choose another key"}
        if not 1 <= len(key) <= LONGEST_KEY:
            yield {"name": name, "rule": f"a key of 1 to {LONGEST_KEY} characters", "got": str(len(key))}
        if len(value) > LONGEST_VALUE:
            yield {"name": name, "rule": f"at most {LONGEST_VALUE} characters", "got": str(len(value))}
        if not _plain(key + value):
            rule = "of letters, digits, spaces and _ . : / = + - @"
            yield {"name": name, "rule": rule, "got": repr(f"{key}: {value}")}


def _plain(text: str) -> bool:
    return all(letter.isalnum() or letter == " " or letter in "_.:/=+-@" for letter in text)
