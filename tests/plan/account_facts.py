"""What an account may tell of its instance types that no row of the catalog says."""

from __future__ import annotations

SPOT_ALONE = {
    "region": "us-east-1",
    "date": "2026-11-30",
    "source": "DescribeInstanceTypes",
    "accelerator": None,
    "accelerators": 0,
    "accelerator_memory_mib": 0,
    "maker": None,
    "vcpus": 8,
    "memory_gib": 32,
    "nvme_gb": 0,
    "architecture": "x86_64",
    "network_gbps": 100,
    "cards": [{"interfaces": 4, "efa": True}],
    "usage_classes": ["spot"],
    "cluster_placement": True,
}
"""A type that EC2 does not sell on demand, as an account's own facts may say; the catalog has none."""
