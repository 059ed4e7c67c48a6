"""Numbers and truths as ParallelCluster reads them: CloudFormation hands both on as text."""

from __future__ import annotations

_TRUE = frozenset(["t", "T", "true", "True", "TRUE", "on", "On", "ON", "y", "Y", "yes", "Yes", "YES", "1"])
_FALSE = frozenset(["f", "F", "false", "False", "FALSE", "off", "Off", "OFF", "n", "N", "no", "No", "NO", "0"])
"""What marshmallow 3.26, with which ParallelCluster reads its file, takes for true and for false."""


def as_number(value: object) -> float | None:
    """A number, or the number that a text is; `None` if it is neither."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def as_flag(value: object) -> bool | None:
    """A truth, or the truth that a text is; `None` if it is neither."""
    if isinstance(value, bool):
        return value
    return None if str(value) not in _TRUE | _FALSE else str(value) in _TRUE
