"""Rules about buckets and the file system that look at several values of an environment."""

from __future__ import annotations

from collections.abc import Iterator

from trainfabric_plan.catalog.lustre import lustre_mistakes
from trainfabric_plan.environment.rules.sections import Broken, Rule, Sections
from trainfabric_plan.mount_points import mount_point_problem


def _bucket_keys(given: Sections) -> Iterator[Broken]:
    if not given.storage or given.orchestrator != "parallelcluster":
        return
    for name in ("data_bucket", "checkpoint_bucket"):
        bucket = getattr(given.storage, name)
        if bucket and bucket.kms_key_arn:
            yield {
                "name": f"storage.{name}.kms_key_arn",
                "rule": "left out with parallelcluster: its nodes' role gets buckets, no keys",
                "got": bucket.kms_key_arn,
                "remedy": "use a bucket that S3's own keys encrypt, or orchestrator: fleet",
            }


def _lustre(given: Sections) -> Iterator[Broken]:
    if given.storage:
        lustre = given.storage.lustre
        for found in lustre_mistakes("", lustre.capacity_gib, lustre.throughput_mbps_per_tib, prefix="storage.lustre."):
            yield {"name": found.name, "rule": found.rule, "got": found.got, "remedy": found.remedy}


def _mount_point(given: Sections) -> Iterator[Broken]:
    problem = mount_point_problem(given.storage.lustre.mount_point) if given.storage else None
    if given.storage and problem:
        yield {
            "name": "storage.lustre.mount_point",
            "rule": problem.rule,
            "got": given.storage.lustre.mount_point,
            "remedy": problem.remedy,
        }


RULES: tuple[Rule, ...] = (_bucket_keys, _lustre, _mount_point)
