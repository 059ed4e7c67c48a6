from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Before aws_cdk is imported. The validator costs tens of seconds a stack, cfn-lint checks the same here.
os.environ["CDK_VALIDATION"] = "false"
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks, NIST80053R5Checks

from trainfabric_plan.environment import Environment, validate_environment
from trainfabric_plan.environment.file import read_environment
from trainfabric_stacks import TrainingEnvironment, training_app

ROOT = Path(__file__).parents[2]

RESERVATION = "cr-0123456789abcdef0"
KEYS = "arn:aws:kms:us-east-1:123456789012:key"

VARIANTS: dict[str, dict[str, Any]] = {
    "existing network and buckets": {
        "network": {"vpc_id": "vpc-12345678", "subnet_id": "subnet-12345678", "route_table_id": "rtb-12345678"},
        "storage": {
            "data_bucket": {"name": "our-data", "kms_key_arn": f"{KEYS}/0f8e7d6c-0000-4000-8000-000000000000"},
            "checkpoint_bucket": {"name": "our-state"},
        },
    },
    "one node with a public address": {
        "network": {"assign_public_ips": True},
        "fleet": {"instance_type": "g6e.48xlarge", "nodes": 1, "efa": False},
    },
    "endpoints alone": {
        "network": {"egress": "endpoints", "cidr": "10.9.0.0/20"},
        "fleet": {
            "instance_type": "p5.48xlarge",
            "nodes": 2,
            "ami_id": "ami-0123456789abcdef0",
            "prepared_image": True,
        },
    },
    "Slurm with a shared home": {
        "orchestrator": "parallelcluster",
        "storage": {"shared_home": "efs"},
        "parallelcluster": {
            "static_nodes": 1,
            "gpu_health_checks": True,
            "exclusive_jobs": True,
            "ssh_from": "10.20.0.0/16",
            "permissions_boundary": "arn:aws:iam::123456789012:policy/boundary",
        },
    },
    "several groups, a coordinator that controls, customer keys": {
        "fleet": {"instance_type": "p5.48xlarge", "nodes": 6, "max_nodes_per_group": 3, "coordinator": "control"},
        "storage": {"kms_key_arn": f"{KEYS}/0f8e7d6c-0000-4000-8000-000000000000"},
    },
    "a capacity block with Intelligent-Tiering": {
        "fleet": {"instance_type": "p5.48xlarge", "nodes": 2, "workers": "capacity_block", "reservation": RESERVATION},
        "storage": {"lustre": {"deployment": "intelligent_tiering", "throughput_mbps": 4000}},
    },
    "a reservation with Lustre over EFA": {
        "fleet": {"instance_type": "p5.48xlarge", "nodes": 2, "workers": "reservation", "reservation": RESERVATION},
        "storage": {"lustre": {"capacity_gib": 9600, "throughput_mbps_per_tib": 500, "efa": True}},
    },
    "scratch, two links": {
        "storage": {
            "lustre": {
                "deployment": "scratch_2",
                "links": [{"path": "/data", "prefix": "data/"}, {"path": "/more", "prefix": "more/", "exports": []}],
            }
        },
    },
    "a shared home on EFS, not kept": {"storage": {"shared_home": "efs", "retain": False}},
    "a shared home on OpenZFS, with a customer key": {
        "storage": {"shared_home": "openzfs", "kms_key_arn": f"{KEYS}/0f8e7d6c-0000-4000-8000-000000000000"},
    },
    "an existing file system": {
        "storage": {"lustre": {"file_system_id": "fs-0123456789abcdef0", "mount_name": "abcdefgh"}},
    },
    "an existing file system whose group lets the nodes in": {
        "storage": {
            "lustre": {
                "file_system_id": "fs-0123456789abcdef0",
                "mount_name": "abcdefgh",
                "security_group_id": "sg-0123456789abcdef0",
            }
        },
    },
    "on demand, nothing kept": {
        "fleet": {"instance_type": "p4d.24xlarge", "nodes": 2, "workers": "on_demand"},
        "storage": {"retain": False},
    },
}


def _variant(given: dict[str, Any]) -> Environment:
    usual = {
        "name": "variant",
        "region": "us-east-1",
        "availability_zone": "us-east-1a",
        "fleet": {"instance_type": "p5.48xlarge", "nodes": 2},
        "training": {"recipe": "gpt_1b3_4x_p5"},
    }
    return validate_environment({**usual, **given}, "a variant")


FILES = sorted((ROOT / "environments").glob("*.yaml"))


@dataclass(frozen=True)
class Synthesised:
    """An environment, the templates of its stacks, and what cdk-nag found and nobody has explained."""

    environment: Environment
    templates: list[Path]
    findings: list[str]


def synthesise(app: cdk.App) -> list[str]:
    """Synthesise with cdk-nag; ids of its findings that nobody has explained."""
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), NIST80053R5Checks(app))
    try:
        app.synth()
    except RuntimeError as failed:
        if not str(failed).startswith("ValidationFailed"):
            raise
    report = Path(app.outdir, "validation-report.json")
    if not report.exists():
        return []
    plugins = json.loads(report.read_text())["pluginReports"]
    return [violation["ruleName"] for plugin in plugins for violation in plugin.get("violations", [])]


@pytest.fixture(scope="session", params=[*(file.stem for file in FILES), *VARIANTS])
def synthesised(request: pytest.FixtureRequest) -> Synthesised:
    """Every environment of the repository, and variants that take other ways through the stacks."""
    name = str(request.param)
    environment = _variant(VARIANTS[name]) if name in VARIANTS else read_environment(ROOT / f"environments/{name}.yaml")
    app = training_app()
    TrainingEnvironment(app, environment)
    findings = synthesise(app)
    return Synthesised(environment, sorted(Path(app.outdir).glob("*.template.json")), findings)


@pytest.fixture
def careless_findings() -> list[str]:
    """What cdk-nag finds in an app whose author thought of nothing."""
    app = training_app()
    s3.Bucket(cdk.Stack(app, "Careless"), "Bucket")
    return synthesise(app)
