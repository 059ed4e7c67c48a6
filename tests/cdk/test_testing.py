from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_s3_assets as assets

from trainfabric_cdk.testing import normalised_template


def test_templates_that_differ_in_asset_hashes_alone_are_equal(tmp_path: Path) -> None:
    templates = []
    for content in ("one", "two"):
        (tmp_path / "file.txt").write_text(content)
        stack = cdk.Stack(cdk.App(analytics_reporting=False), "Demo")
        asset = assets.Asset(stack, "Code", path=str(tmp_path / "file.txt"))
        cdk.CfnOutput(stack, "Key", value=f"{asset.s3_object_key} of {asset.asset_hash}")
        templates.append(normalised_template(stack))

    assert templates[0] == templates[1]
    assert templates[0]["Outputs"]["Key"]["Value"] == "ASSET.txt of ASSET"
