"""Spot nodes."""

from __future__ import annotations

from collections.abc import Iterator

from trainfabric_plan.lint.assembly import Assembly
from trainfabric_plan.lint.launches import AUTO_SCALING_GROUP, launches
from trainfabric_plan.lint.model import Broken, Rule, Severity


def _stopped_in_group(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        behaviour = launch.data.at("InstanceMarketOptions", "SpotOptions", "InstanceInterruptionBehavior")
        grouped = launch.has_placement_group or any(
            not user.properties("PlacementGroup").is_missing for user in launch.users if user.type == AUTO_SCALING_GROUP
        )
        if grouped and behaviour.text in ("stop", "hibernate"):
            yield Broken(
                at=behaviour,
                must="terminate in a placement group",
                got=behaviour.text,
                remedy="let interrupted nodes be terminated, or remove the placement group",
            )


RULES = (
    Rule(
        id="spot-stop-in-placement-group",
        severity=Severity.ERROR,
        title="Interrupted spot nodes of a placement group are terminated",
        why="EC2 launches no spot node into a placement group that stops or hibernates when interrupted.",
        source="EC2 user guide, limitations-placement-groups, read 2026-11",
        check=_stopped_in_group,
    ),
)
