"""Stacks of a training environment. An app is two lines: `from trainfabric_stacks import deploy_app; deploy_app()`."""

from trainfabric_stacks.app import deploy_app, environment_from_context, training_app
from trainfabric_stacks.fleet_stack import FleetStack
from trainfabric_stacks.network_stack import NetworkStack
from trainfabric_stacks.observability_stack import ObservabilityStack
from trainfabric_stacks.storage_stack import StorageStack
from trainfabric_stacks.training_environment import TrainingEnvironment

__all__ = [
    "FleetStack",
    "NetworkStack",
    "ObservabilityStack",
    "StorageStack",
    "TrainingEnvironment",
    "deploy_app",
    "environment_from_context",
    "training_app",
]
