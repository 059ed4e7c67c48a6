"""The rules over a configuration, by subject."""

from collections.abc import Mapping

from trainfabric_plan.parallelcluster.rule import ClusterRule
from trainfabric_plan.parallelcluster.rules import capacity, iam, names, network, slurm, storage

RULES: Mapping[str, ClusterRule] = {
    rule.id: rule
    for rules in (names.RULES, capacity.RULES, network.RULES, storage.RULES, slurm.RULES, iam.RULES)
    for rule in rules
}
"""Every rule by its id."""
