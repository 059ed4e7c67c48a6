"""Every rule, by subject."""

from __future__ import annotations

from types import MappingProxyType

from trainfabric_plan.lint.model import Rule
from trainfabric_plan.lint.rules import (
    capacity,
    clusters,
    groups,
    interfaces,
    lustre,
    lustre_size,
    metadata,
    orchestrators,
    placement,
    spot,
    user_data,
)

SUBJECTS: MappingProxyType[str, tuple[Rule, ...]] = MappingProxyType(
    {
        "Network interfaces": interfaces.RULES,
        "Security groups": groups.RULES,
        "Placement": placement.RULES,
        "Capacity": capacity.RULES,
        "Spot": spot.RULES,
        "FSx for Lustre": (*lustre.RULES, *lustre_size.RULES),
        "User data": user_data.RULES,
        "Metadata and volumes": metadata.RULES,
        "Batch, PCS and ParallelCluster": orchestrators.RULES,
        "ParallelCluster's configuration": clusters.RULES,
    }
)
"""Rules by subject, in the order of the documentation."""

RULES: MappingProxyType[str, Rule] = MappingProxyType({rule.id: rule for rules in SUBJECTS.values() for rule in rules})
"""Rules by id."""
