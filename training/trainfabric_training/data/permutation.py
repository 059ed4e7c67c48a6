"""The order of samples: a permutation per epoch, worked out for one position at a time."""

from __future__ import annotations

_MASK = (1 << 64) - 1
_ROUNDS = 6


def sample_index(seed: int, position: int, samples: int) -> int:
    """The sample at a position of an endless run over the corpus; every epoch visits every sample once.

    A Feistel network over the smallest power of four that holds `samples`, walked until it lands inside (Black and
    Rogaway 2002, "cycle walking"): constant memory, no state, the same on any machine and library version.

    Args:
        seed: Any integer; other seeds give other orders.
        position: Global count of samples before this one, from 0; epoch `position // samples`.
        samples: Number of samples of the corpus.
    """
    if samples < 1 or position < 0:
        raise ValueError(f"samples must be at least 1 and position at least 0, got {samples} and {position}")
    epoch, value = divmod(position, samples)
    half = max(1, ((samples - 1).bit_length() + 1) // 2)
    keys = _round_keys(seed, epoch)
    while True:
        value = _shuffle(value, half, keys)
        if value < samples:
            return value


def _round_keys(seed: int, epoch: int) -> list[int]:
    state = _mix(_mix(seed & _MASK) ^ epoch)
    return [_mix(state + number) for number in range(_ROUNDS)]


def _shuffle(value: int, half: int, keys: list[int]) -> int:
    mask = (1 << half) - 1
    left, right = value >> half, value & mask
    for key in keys:
        left, right = right, left ^ (_mix(right ^ key) & mask)
    return left << half | right


def _mix(value: int) -> int:
    """The finaliser of splitmix64 (Steele, Lea and Flood 2014)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & _MASK
    return value ^ value >> 31
