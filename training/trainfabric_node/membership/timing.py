"""How often nodes tell each other that they live, and how long silence is believed to be a stall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Profile = Literal["production", "fast"]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """All in seconds.

    Attributes:
        beat_s: Between two beats of a supervisor.
        dead_s: Silence after which the controller counts a node as lost.
        lease_s: Without an answer of the controller, a supervisor kills its ranks; longer than a controller's restart.
        settle_s: That the controller gathers reports after the first sign of trouble.
        look_s: Between two looks of a supervisor at its ranks and files.
        notice_s: Between two looks for a notice of EC2, which recommends five seconds.
        ask_s: Between two looks at what is asked of the run in the bucket.
        publish_s: Between two uploads of what a node writes, at least.
        rank_beat_s: Between two beats of a rank.
        rank_stalled_s: Silence of a rank, while others of the node are heard, after which it counts as stopped.
        step_stalled_s: Without a step of any rank after which an epoch counts as stuck; longer than a step and a save.
        drain_s: For a step and a checkpoint, once all ranks are asked to leave.
        give_up_s: Silence after which a node is given back; longer than its supervisor takes to start anew.
    """

    beat_s: float
    dead_s: float
    lease_s: float
    settle_s: float
    look_s: float
    notice_s: float
    ask_s: float
    publish_s: float
    rank_beat_s: float
    rank_stalled_s: float
    step_stalled_s: float
    drain_s: float
    give_up_s: float = 60.0


PRODUCTION = Timing(
    beat_s=1.0,
    dead_s=20.0,
    lease_s=45.0,
    settle_s=1.0,
    look_s=0.2,
    notice_s=5.0,
    ask_s=2.0,
    publish_s=3.0,
    rank_beat_s=2.0,
    rank_stalled_s=60.0,
    step_stalled_s=1800.0,
    drain_s=600.0,
    give_up_s=60.0,
)
"""A node may stall for ten seconds, and more, without a restart."""

FAST = Timing(
    beat_s=0.1,
    dead_s=1.5,
    lease_s=10.0,
    settle_s=0.2,
    look_s=0.05,
    notice_s=0.5,
    ask_s=0.5,
    publish_s=1.0,
    rank_beat_s=0.2,
    rank_stalled_s=3.0,
    step_stalled_s=60.0,
    drain_s=60.0,
    give_up_s=14.0,
)
"""For quiet machines and tests: a lost node is noticed within two seconds, and a stall of two seconds is a loss."""

PROFILES: dict[Profile, Timing] = {"production": PRODUCTION, "fast": FAST}
