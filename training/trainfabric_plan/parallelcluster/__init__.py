"""The configuration file of AWS ParallelCluster 3.16: its keys, its rules, and what changing it takes."""

from trainfabric_plan.parallelcluster.broken import Broken, Severity
from trainfabric_plan.parallelcluster.check import Found, check
from trainfabric_plan.parallelcluster.keys import Key, OnChange, keys
from trainfabric_plan.parallelcluster.queue_rules import gpu_health_rule, static_nodes_rule
from trainfabric_plan.parallelcluster.rules import RULES

__all__ = [
    "RULES",
    "Broken",
    "Found",
    "Key",
    "OnChange",
    "Severity",
    "check",
    "gpu_health_rule",
    "keys",
    "static_nodes_rule",
]
