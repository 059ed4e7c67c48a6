from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.node.seaweed import running_seaweed
from tests.training.conftest import Finished, Workplace

Trained = Callable[..., tuple[int, str]]


def test_a_run_reads_its_corpus_from_a_bucket_and_goes_on_from_the_checkpoints_it_left_there(
    trained: Trained, workplace: Workplace, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_seaweed(tmp_path_factory.mktemp("weed")) as server:
        server.make_bucket("tests")
        for suffix in (".bin", ".idx", ".json"):
            body = workplace.corpus.with_suffix(suffix).read_bytes()
            server.client().put_object(Bucket="tests", Key=f"data/corpus{suffix}", Body=body)
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        where = ("--data", "s3://tests/data/corpus", "--checkpoints", "s3://tests/jobs/one/checkpoints/")

        stopped = trained(*where, "--stop-after-step", "2", name="bucket-1")
        resumed = trained(*where, "--resume", "--stop-after-step", "4", name="bucket-2")

    assert stopped == resumed == (75, "")
    runs = [
        Finished(status=0, output=workplace.output(name), stdout="", stderr="") for name in ("bucket-1", "bucket-2")
    ]
    assert [record["step"] for run in runs for record in run.steps] == [1, 2, 3, 4]
    assert runs[1].events[1]["checkpoint"] == runs[0].events[1]["checkpoint"]
    assert runs[1].events[1]["checkpoint"].startswith("s3://tests/jobs/one/checkpoints/steps/00000002-")


def test_a_run_without_credentials_says_so(
    trained: Trained, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))

    status, said = trained("--checkpoints", "s3://bucket/checkpoints/")

    assert status == 2
    assert said == (
        "s3://bucket/checkpoints/: AWS credentials must be given, got none; "
        "set AWS_PROFILE or run aws configure; on a node, check its instance profile\n"
    )
