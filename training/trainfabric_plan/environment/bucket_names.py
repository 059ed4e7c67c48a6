"""Which names S3 refuses though their characters are right.

Source: S3 user guide, general purpose bucket naming rules, 2026.
"""

from __future__ import annotations

import re

RESERVED_PREFIXES = ("xn--", "sthree-", "amzn-s3-demo-")
RESERVED_SUFFIXES = ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+")


def checked_bucket_name(name: str) -> str:
    """The name itself.

    Raises:
        ValueError: If no bucket of that name can exist; the text is the rule.
    """
    if any(pair in name for pair in ("..", ".-", "-.")):
        raise ValueError(f"a bucket name without a dot beside a dot or a hyphen, got {name!r}")
    if _ADDRESS.fullmatch(name):
        raise ValueError(f"a bucket name, not an IP address, got {name!r}")
    if name.startswith(RESERVED_PREFIXES):
        raise ValueError(f"a bucket name without a prefix that S3 reserves ({_words(RESERVED_PREFIXES)}), got {name!r}")
    if name.endswith(RESERVED_SUFFIXES):
        raise ValueError(f"a bucket name without a suffix that S3 reserves ({_words(RESERVED_SUFFIXES)}), got {name!r}")
    return name


def _words(parts: tuple[str, ...]) -> str:
    return ", ".join(parts)
