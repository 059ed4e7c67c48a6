"""Fleets of nodes."""

from trainfabric_cdk.capacity import Capacity
from trainfabric_cdk.fleet.coordinator import Coordinator
from trainfabric_cdk.fleet.node_groups import FleetGroup
from trainfabric_cdk.fleet.spot_training_fleet import SpotTrainingFleet

__all__ = ["Capacity", "Coordinator", "FleetGroup", "SpotTrainingFleet"]
