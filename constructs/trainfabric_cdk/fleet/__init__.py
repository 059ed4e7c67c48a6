"""Fleets of nodes."""

from trainfabric_cdk.capacity import Capacity
from trainfabric_cdk.fleet.spot_training_fleet import SpotTrainingFleet

__all__ = ["Capacity", "SpotTrainingFleet"]
