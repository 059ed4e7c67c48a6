"""Runs an example as a user would, with cdk-nag's packs on its app: `python run_example.py EXAMPLE/app.py`."""

from __future__ import annotations

import runpy
import sys
from typing import Any

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks, NIST80053R5Checks

_synth = cdk.App.synth


def synth_with_packs(app: cdk.App, **options: Any) -> None:
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), NIST80053R5Checks(app))
    try:
        _synth(app, **options)
    except RuntimeError as failed:  # findings, which stand in the report
        if not str(failed).startswith("ValidationFailed"):
            raise


cdk.App.synth = synth_with_packs  # type: ignore[method-assign,assignment]
runpy.run_path(sys.argv[1], run_name="__main__")
