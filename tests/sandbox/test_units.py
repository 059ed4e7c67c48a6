from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.node.units import BadUnit, default_environment, escaped_path, read_unit, seconds


def install(root: Path, name: str, text: str) -> None:
    file = root / "etc/systemd/system" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_service_is_what_its_file_and_its_drop_ins_say(tmp_path: Path) -> None:
    # given
    install(
        tmp_path,
        "own.service",
        "[Unit]\nDescription=ours\nAfter=a.service b.service\n[Service]\nType=exec\n# why\n"
        "ExecStart=/bin/run \\\n  'two words'\n"
        "Environment=A=1 'B=2 3'\nRestart=always\nRestartSec=1\nTimeoutStopSec=2min 30s\nLimitMEMLOCK=infinity\n"
        "[Install]\nWantedBy=multi-user.target\n",
    )
    (tmp_path / "etc/systemd/system/own.service.d").mkdir()
    install(tmp_path, "own.service.d/more.conf", "[Unit]\nAfter=c.service\nRequiresMountsFor=/fsx\n")
    # when
    unit = read_unit(tmp_path, "own.service")
    # then
    assert unit.command == ["/bin/run", "two words"]
    assert unit.after == {"a.service", "b.service", "c.service"}
    assert unit.environment == {"A": "1", "B": "2 3"}
    assert (unit.restart, unit.restart_s, unit.stop_s, unit.mounts) == ("always", 1.0, 150.0, ("/fsx",))
    assert unit.limits == {"MEMLOCK": float("inf")}
    assert unit.wanted_by == ("multi-user.target",)


def test_a_mount_runs_the_command_of_its_kind_once(tmp_path: Path) -> None:
    install(tmp_path, "mnt-data.mount", "[Mount]\nWhat=server:/x\nWhere=/mnt/data\nType=lustre\nOptions=flock\n")

    unit = read_unit(tmp_path, "mnt-data.mount")

    assert unit.command == ["/usr/sbin/mount.lustre", "server:/x", "/mnt/data", "-o", "flock"]
    assert (unit.kind, unit.remains) == ("oneshot", True)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "own.service",
            "[Service]\nExecStart=/bin/x\nPrivateTmp=yes\n",
            "own.service: the stand-in for systemd does not know PrivateTmp in [Service]",
        ),
        ("own.service", "[Unit]\nAfter=x\n", "own.service: Service has no ExecStart= setting. Refusing."),
        ("own.mount", "[Mount]\nWhat=x\nType=lustre\n", "own.mount: the mount must have Where="),
        (
            "own.mount",
            "[Mount]\nWhat=x\nWhere=/fsx\nType=lustre\n",
            "own.mount: Where=/fsx does not match the unit's name",
        ),
        (
            "own.service",
            "[Service]\nExecStart=/bin/x\nRestartSec=5 parsecs\n",
            "a time span must be such as 100ms or 2min, got 5 parsecs",
        ),
    ],
)
def test_what_the_stand_in_cannot_do_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    install(tmp_path, name, text)

    with pytest.raises(BadUnit) as failure:
        read_unit(tmp_path, name)

    assert str(failure.value) == message


def test_a_unit_of_the_image_is_found_where_nobody_has_written_another(tmp_path: Path) -> None:
    image = tmp_path / "usr/lib/systemd/system"
    image.mkdir(parents=True)
    (image / "own.service").write_text("[Service]\nExecStart=/bin/image\n")
    assert read_unit(tmp_path, "own.service").command == ["/bin/image"]

    install(tmp_path, "own.service", "[Service]\nExecStart=/bin/ours\n")

    assert read_unit(tmp_path, "own.service").command == ["/bin/ours"]


def test_the_managers_environment_comes_from_its_settings(tmp_path: Path) -> None:
    assert default_environment(tmp_path) == {}
    (tmp_path / "etc/systemd").mkdir(parents=True)
    (tmp_path / "etc/systemd/system.conf").write_text('[Manager]\nDefaultEnvironment="A=1 2" B=3\n')

    assert default_environment(tmp_path) == {"A": "1 2", "B": "3"}


def test_times_and_paths_are_written_as_systemd_has_them() -> None:
    assert [seconds(text) for text in ("1", "250ms", "2min 30s", "infinity")] == [1.0, 0.25, 150.0, float("inf")]
    assert [escaped_path(path) for path in ("/fsx", "/mnt/a-b/", "/")] == ["fsx", "mnt-a\\x2db", "-"]
