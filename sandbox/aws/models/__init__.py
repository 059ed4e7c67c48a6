"""Our CloudFormation models; importing this package registers them with moto.

moto finds its models as the *direct* subclasses of `CloudFormationModel`, once, at its first look at a template.
"""

from moto.core.common_models import CloudFormationModel

from sandbox.aws.models.base import Kind, Resource
from sandbox.aws.models.ec2 import PlacementGroup, SecurityGroupEgress
from sandbox.aws.models.fsx import DataRepositoryAssociation, FileSystem
from sandbox.aws.models.monitoring import Alarm, CdkMetadata
from sandbox.aws.models.policies import BucketPolicy, QueuePolicy, TopicPolicy

__all__ = ["MODELS", "Kind", "Resource"]


def _registered(model: type[Resource]) -> type[Resource]:
    return type(
        model.__name__, (model, CloudFormationModel), {"__module__": model.__module__, "__doc__": model.__doc__}
    )


MODELS = tuple(
    _registered(model)
    for model in (
        Alarm,
        BucketPolicy,
        CdkMetadata,
        DataRepositoryAssociation,
        FileSystem,
        PlacementGroup,
        QueuePolicy,
        SecurityGroupEgress,
        TopicPolicy,
    )
)
"""The classes that moto sees."""
