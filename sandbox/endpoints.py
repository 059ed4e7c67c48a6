"""Addresses of the sandbox and the environment variables that point an SDK at it."""

from __future__ import annotations

ACCOUNT = "123456789012"
"""moto's account: what its STS answers, whatever the credentials."""
REGION = "us-east-1"
ACCESS_KEY = "testing"
SECRET_KEY = "testing"
RESOURCES_PATH = "/trainfabric-sandbox/resources"
"""GET: JSON list of `{stack, logical_id, type, physical_id, kind}`, kind is real or record."""


def aws_endpoint(port: int) -> str:
    """The URL to call the embedded AWS by; not 127.0.0.1, see `sandbox.aws.server`."""
    return f"http://localhost:{port}"


def aws_variables(endpoint: str, s3_endpoint: str | None = None, region: str = REGION) -> dict[str, str]:
    """What an SDK, the CDK CLI or a node needs to talk to the sandbox and to nothing else."""
    variables = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    return variables if s3_endpoint is None else {**variables, "AWS_ENDPOINT_URL_S3": s3_endpoint}


def cdk_variables() -> dict[str, str]:
    """What keeps the CDK CLI and jsii quick and quiet."""
    return {
        "CDK_VALIDATION": "false",
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
    }
