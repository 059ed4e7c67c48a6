from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainfabric_node.jobs.code import keep, pack, unpacked
from trainfabric_node.store import open_store
from trainfabric_plan.contract import own_code_key
from trainfabric_plan.errors import InvalidInput, Unreachable


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "code"
    for name in ("train.py", "lib/model.py", ".git/HEAD", "lib/__pycache__/model.pyc", "run.sh"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(name)
    (made / "run.sh").chmod(0o700)
    (made / "alias.py").symlink_to("train.py")
    return made


def test_a_folder_comes_out_of_the_bucket_as_it_went_in(folder: Path, tmp_path: Path) -> None:
    store, archive = open_store(str(tmp_path / "bucket")), pack(folder, "demo.yaml")

    pin = keep(store, "first", archive)
    found = unpacked(store, pin, tmp_path / "node")

    assert pin.key == own_code_key("first", archive.sha256)
    files = {str(path.relative_to(found)): path.read_text() for path in found.rglob("*") if path.is_file()}
    assert files == {
        "train.py": "train.py",
        "lib/model.py": "lib/model.py",
        "run.sh": "run.sh",
        "alias.py": "train.py",
    }
    assert [os.access(found / name, os.X_OK) for name in ("run.sh", "train.py")] == [True, False]
    assert unpacked(open_store(str(tmp_path / "none")), pin, tmp_path / "node") == found
    assert [path.name for path in (tmp_path / "node").iterdir()] == [pin.sha256]


def test_the_archive_depends_on_names_contents_and_who_may_run_them_alone(folder: Path) -> None:
    first = pack(folder, "demo.yaml")
    os.utime(folder / "train.py", (1, 1))
    (folder / ".git" / "HEAD").write_text("another")
    same = pack(folder, "demo.yaml")
    (folder / "train.py").write_text("other")

    assert first == same
    assert pack(folder, "demo.yaml").sha256 != first.sha256


def test_what_cannot_be_uploaded_is_refused_all_at_once(folder: Path) -> None:
    (folder / "data").symlink_to("/usr")
    (folder / "gone").symlink_to("missing.py")

    with pytest.raises(InvalidInput) as caught:
        pack(folder, "demo.yaml")

    remedy = "put a copy in its place, or remove it"
    assert str(caught.value).splitlines() == [
        f"demo.yaml: training.code must be without links that lead out of it, got data to /usr; {remedy}",
        "demo.yaml: training.code must be without links to what is no file, "
        f"got gone to {folder.resolve()}/missing.py; {remedy}",
    ]


def test_a_folder_that_is_not_there_empty_or_too_large_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (folder / "weights").write_bytes(b"0" * (2 * 1024**2))

    def message(path: Path) -> str:
        with pytest.raises(InvalidInput) as caught:
            pack(path, "demo.yaml", limit_bytes=1024**2)
        return str(caught.value)

    assert message(tmp_path / "none") == (
        f"demo.yaml: training.code must be an existing folder, got {tmp_path}/none; "
        "it is relative to the environment file"
    )
    assert message(tmp_path / "empty") == (
        f"demo.yaml: training.code must be a folder with files, got none in {tmp_path}/empty"
    )
    assert message(folder) == (
        "demo.yaml: training.code must be at most 1 MiB and 20000 files, got 2.0 MiB in 5 files; "
        "put data into the data bucket, and large programs into an image"
    )


def test_an_archive_that_is_not_the_pinned_one_is_not_run(folder: Path, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "bucket"))
    pin = keep(store, "first", pack(folder, "demo.yaml"))
    store.put(pin.key, b"another")

    with pytest.raises(Unreachable):
        unpacked(store, pin, tmp_path / "node")

    assert not (tmp_path / "node").exists()
