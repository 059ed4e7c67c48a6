"""Facts about EC2 instance types and prices; every row says where it comes from and of what date."""

from trainfabric_plan.catalog.instances import INSTANCE_TYPES, InstanceType, NetworkCard, instance_type
from trainfabric_plan.catalog.interfaces import Interface, InterfaceType, efa_interfaces
from trainfabric_plan.catalog.prices import Price, fsx_lustre_price, nat_gateway_price, on_demand_price, spot_saving

__all__ = [
    "INSTANCE_TYPES",
    "InstanceType",
    "Interface",
    "InterfaceType",
    "NetworkCard",
    "Price",
    "efa_interfaces",
    "fsx_lustre_price",
    "instance_type",
    "nat_gateway_price",
    "on_demand_price",
    "spot_saving",
]
