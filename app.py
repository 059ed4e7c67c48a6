#!/usr/bin/env python3
"""The CDK app: `cdk synth -c environment=environments/NAME.yaml`; cdk.json names the default environment."""

from trainfabric_stacks import deploy_app

if __name__ == "__main__":
    deploy_app()
