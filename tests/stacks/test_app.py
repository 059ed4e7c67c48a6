from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import trainfabric_stacks
from trainfabric_plan.errors import InvalidInput, NotFound
from trainfabric_stacks import deploy_app, environment_from_context, training_app
from trainfabric_stacks.app import FEATURE_FLAGS

ROOT = Path(__file__).parents[2]


def run_app(directory: Path, environment: Path) -> subprocess.CompletedProcess[str]:
    """`python app.py` as the CDK command line runs it: context and output directory in the environment."""
    context = json.dumps({"environment": str(environment)})
    variables = {**os.environ, "CDK_OUTDIR": str(directory / "out"), "CDK_CONTEXT_JSON": context}
    return subprocess.run(
        [sys.executable, ROOT / "app.py"], cwd=directory, env=variables, text=True, capture_output=True, check=False
    )


def test_the_app_synthesises_the_environment_that_the_context_names(tmp_path: Path) -> None:
    done = run_app(tmp_path, ROOT / "environments/p5_spot.yaml")

    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(file.name for file in (tmp_path / "out").glob("*.template.json")) == [
        "p5-spot-Fleet.template.json",
        "p5-spot-Network.template.json",
        "p5-spot-Observability.template.json",
        "p5-spot-Storage.template.json",
    ]


def test_all_mistakes_in_the_file_are_told_without_a_traceback_and_nothing_is_synthesised(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(
        "name: bad\nregion: us-east-1\navailability_zone: us-east-1a\n"
        "fleet:\n  instance_type: m7i.large\n  nodes: 4\ntraining:\n  recipe: tiny_cpu\n  ranks: 2\n"
    )

    done = run_app(tmp_path, tmp_path / "bad.yaml")

    assert (done.returncode, done.stdout) == (2, "")
    bad = tmp_path / "bad.yaml"
    assert done.stderr.splitlines() == [
        f"{bad}:5: fleet.instance_type must be a type with EFA while fleet.efa is on, got m7i.large; "
        "choose a type with EFA (trainfabric catalog lists them) or set fleet.efa: false",
        f"{bad}:9: training.ranks must be a known key, got ranks; did you mean ranks_per_node?",
        f"{bad}:7: training.ranks_per_node must be given for m7i.large, which has no accelerators, got nothing; "
        "say how many ranks run on a node",
    ]
    assert not list((tmp_path / "out").glob("*.template.json"))


def test_a_mistake_that_a_construct_finds_ends_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "environments/p4d_parallelcluster.yaml").read_text()
    (tmp_path / "old.yaml").write_text(f'{text}\nparallelcluster:\n  version: "3.14.0"\n')
    app = training_app()
    app.node.set_context("environment", str(tmp_path / "old.yaml"))
    monkeypatch.setattr("trainfabric_stacks.app.training_app", lambda: app)

    with pytest.raises(SystemExit) as left:
        deploy_app()

    assert left.value.code == 2
    assert capsys.readouterr().err == (
        "p4d-slurm-Cluster: version must be a release 3.x.y from 3.14.1 on: "
        "Lambda refuses the Python of earlier ones, got 3.14.0; use 3.16.1\n"
    )


def test_without_an_environment_the_user_is_told_how_to_name_one() -> None:
    with pytest.raises(InvalidInput) as refused:
        environment_from_context(training_app())

    assert str(refused.value) == (
        "app: context environment must be the path of an environment file, got nothing; "
        "add -c environment=environments/NAME.yaml, or the key to the context in cdk.json"
    )


def test_a_missing_file_is_named() -> None:
    app = training_app()
    app.node.set_context("environment", "environments/absent.yaml")

    with pytest.raises(NotFound) as refused:
        environment_from_context(app)

    assert str(refused.value) == (
        "environments/absent.yaml: environment file must be an existing file, got none; trainfabric init writes one"
    )


def test_cdk_json_has_the_feature_flags_of_the_library_and_names_the_demo() -> None:
    settings = json.loads((ROOT / "cdk.json").read_text())

    assert settings["context"] == {"environment": "environments/demo.yaml", **FEATURE_FLAGS}
    assert settings["versionReporting"] is False


@pytest.mark.parametrize("name", trainfabric_stacks.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(trainfabric_stacks, name).__name__ == name


def test_the_public_names_of_the_stacks_are_these() -> None:
    assert trainfabric_stacks.__all__ == [
        "FleetStack",
        "NetworkStack",
        "ObservabilityStack",
        "StorageStack",
        "TrainingEnvironment",
        "deploy_app",
        "environment_from_context",
        "training_app",
    ]
