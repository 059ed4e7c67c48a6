"""FSx for Lustre: what it accepts, what follows from a wish, and what may be linked to S3."""

from trainfabric_plan.lustre.facts import Deployment
from trainfabric_plan.lustre.links import LinkWish, link_mistakes
from trainfabric_plan.lustre.rules import lustre_mistakes
from trainfabric_plan.lustre.size import LustreSize, lustre_size
from trainfabric_plan.lustre.wish import LustreWish

__all__ = ["Deployment", "LinkWish", "LustreSize", "LustreWish", "link_mistakes", "lustre_mistakes", "lustre_size"]
