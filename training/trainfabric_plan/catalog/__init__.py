"""Facts about EC2 instance types and prices; every row says where it comes from and of what date."""

from trainfabric_plan.catalog.instances import INSTANCE_TYPES, find_instance_type, instance_type
from trainfabric_plan.catalog.interfaces import (
    Interface,
    InterfaceMode,
    InterfaceType,
    addresses_per_node,
    efa_interfaces,
    no_bandwidth,
    offers_bandwidth,
)
from trainfabric_plan.catalog.names import InstanceName, parse_instance_type
from trainfabric_plan.catalog.prices import Price, fsx_lustre_price, nat_gateway_price, on_demand_price, spot_saving
from trainfabric_plan.catalog.types import Accelerator, InstanceType, Links, NetworkCard, UnknownFact

__all__ = [
    "INSTANCE_TYPES",
    "Accelerator",
    "InstanceName",
    "InstanceType",
    "Interface",
    "InterfaceMode",
    "InterfaceType",
    "Links",
    "NetworkCard",
    "Price",
    "UnknownFact",
    "addresses_per_node",
    "efa_interfaces",
    "find_instance_type",
    "fsx_lustre_price",
    "instance_type",
    "nat_gateway_price",
    "no_bandwidth",
    "offers_bandwidth",
    "on_demand_price",
    "parse_instance_type",
    "spot_saving",
]
