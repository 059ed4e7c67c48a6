"""The commands of the sandbox that are thin enough to be tested by what they refuse."""

from __future__ import annotations

import pytest

from sandbox.__main__ import main


@pytest.mark.parametrize("missing", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_mirroring_without_both_servers_is_refused(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://localhost:2")
    monkeypatch.delenv(missing)

    status = main(["mirror"])

    assert status == 2
    assert capsys.readouterr().err == (
        f"environment variables: {missing} must be set to what `python -m sandbox up` printed, got nothing\n"
    )
