"""Rules over CloudFormation templates: what EC2, FSx and Auto Scaling would say after a deploy, said before it.

The templates may be anybody's. An unresolved value is never judged: a rule speaks of what the templates at hand say.
"""

from trainfabric_plan.lint.assembly import Assembly
from trainfabric_plan.lint.cloud_assembly import read_cloud_assembly
from trainfabric_plan.lint.model import Finding, Rule, Severity
from trainfabric_plan.lint.rules import RULES, SUBJECTS
from trainfabric_plan.lint.rules.clusters import is_cluster, template_of_cluster
from trainfabric_plan.lint.run import chosen_rules, lint
from trainfabric_plan.lint.values import Template

__all__ = [
    "RULES",
    "SUBJECTS",
    "Assembly",
    "Finding",
    "Rule",
    "Severity",
    "Template",
    "chosen_rules",
    "is_cluster",
    "lint",
    "read_cloud_assembly",
    "template_of_cluster",
]
