"""The demo's report is computed from the files that the demo leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox.demo import __main__ as demo
from sandbox.demo.page import page
from sandbox.demo.plots import plot_losses
from sandbox.demo.report import loss_difference, make_report, read_demo

ROOT = Path(__file__).resolve().parents[2]


def _step(step: int, loss: float) -> dict[str, Any]:
    time = f"2026-11-30T10:00:{step * 2:02d}.500+00:00"
    return {"step": step, "loss": loss, "grad_norm": 1.0, "tokens": 2048, "seconds": 0.4, "time": time}


STEPS = [_step(1, 8.0), _step(2, 7.5), _step(3, 7.0)]
REFERENCE = [_step(1, 8.0), _step(2, 7.5000004), _step(3, 6.9999997)]


@pytest.fixture
def finished_demo(tmp_path: Path) -> Path:
    """A directory as a demo of three steps, one of whose nodes was taken away after the second, leaves it."""
    at = "2026-11-30T10:00:00.000+00:00"
    events = [
        {"time": at, "event": "epoch", "epoch": 1, "ranks": 8, "detail": "all 4 nodes are up"},
        {"time": at, "event": "drain", "epoch": 1, "at": "now", "detail": "i-1 goes"},
        {"time": at, "event": "commit", "step": 2, "checkpoint": "s3://bucket/2/"},
        {"time": at, "event": "epoch", "epoch": 2, "ranks": 4, "detail": "i-1 has left"},
        {"time": at, "event": "resume", "step": 2},
    ]
    resources = [
        {"stack": "demo-network", "logical_id": "Vpc", "type": "AWS::EC2::VPC", "physical_id": "vpc-1", "kind": "real"},
        {"stack": "demo-fleet", "logical_id": "A", "type": "AWS::X::Y", "physical_id": "y-1", "kind": "record"},
        {"stack": "demo-fleet", "logical_id": "B", "type": "AWS::X::Y", "physical_id": "y-2", "kind": "record"},
    ]
    deployment = {
        "stacks": [{"name": "demo-fleet", "status": "CREATE_COMPLETE"}],
        "resources": resources,
        "launch_template_network_interfaces": [
            {"card": 0, "device": 0, "type": "interface"},
            {"card": 0, "device": 1, "type": "efa-only"},
        ],
        "checkpoints_uri": "s3://bucket/jobs/demo/checkpoints/",
    }
    epochs = [{"epoch": 1, **STEPS[0]}, {"epoch": 1, **STEPS[1]}, {"epoch": 2, **STEPS[2]}]
    files = {"steps": STEPS, "epoch_steps": epochs, "reference_steps": REFERENCE, "events": events}
    for name, lines in files.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "deployment.json").write_text(json.dumps(deployment))
    (tmp_path / "seconds.json").write_text(json.dumps({"synth": 4.04, "train": 60.0}))
    (tmp_path / "corpus.json").write_text(json.dumps({"documents": 3, "tokens": 99}))
    return tmp_path


def test_the_report_says_what_the_files_say(finished_demo: Path) -> None:
    report = make_report(read_demo(finished_demo), ROOT / "environments/demo.yaml")

    assert report["resources"] == {"AWS::EC2::VPC": 1, "AWS::X::Y": 2}
    assert report["resources_real_in_moto"] == 1
    assert report["resources_checked_records"] == ["AWS::X::Y"]
    assert (report["steps"], report["loss_first"], report["loss_last"]) == (3, 8.0, 7.0)
    assert report["max_loss_difference"] == pytest.approx(4e-7, rel=1e-6)
    assert (report["interruptions"], report["steps_lost"], report["resume_seconds"]) == (1, 0, 2.0)
    assert report["epochs"] == [
        {
            "epoch": 1,
            "ended_after_step": 2,
            "planned": False,
            "steps_lost": 0,
            "seconds_to_the_next_step": 2.0,
            "ranks_before": 8,
            "ranks_after": 4,
            "why": "i-1 has left",
        }
    ]
    assert report["checkpoints"] == 1
    assert report["checkpoint_uri"] == "s3://bucket/2/"
    assert report["layout"] == {"data": 2, "pipeline": 2, "tensor": 2}
    assert report["ranks"] == 8
    assert report["seconds"] == {"synth": 4.0, "train": 60.0, "total": 64.0}
    assert report["usd_per_hour_of_the_real_environment"] > 100


def test_a_lost_or_repeated_step_is_a_failure() -> None:
    with pytest.raises(ValueError, match=r"each once, got \[1, 2, 2, 3\] against \[1, 2, 3\]"):
        loss_difference([STEPS[0], STEPS[1], STEPS[1], STEPS[2]], REFERENCE)
    with pytest.raises(ValueError, match=r"each once, got \[1, 3\] against \[1, 2, 3\]"):
        loss_difference([STEPS[0], STEPS[2]], REFERENCE)


def test_the_page_needs_nothing_beside_it_and_the_plot_is_the_same_text_each_time(finished_demo: Path) -> None:
    files = read_demo(finished_demo)
    report = make_report(files, ROOT / "environments/demo.yaml")

    plot_losses(files, finished_demo, "layout")
    html = page(report, files, (finished_demo / "loss.svg").read_text())

    assert (finished_demo / "loss.png").stat().st_size > 10_000
    assert "<svg" in html
    assert "src=" not in html
    assert "checked record" in html


def test_a_report_of_no_demo_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "BUILD", tmp_path)

    status = demo.main(["report"])

    assert status == 2
    assert "report must be made of a finished demo, got none; run make demo" in capsys.readouterr().err
