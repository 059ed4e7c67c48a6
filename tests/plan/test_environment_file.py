from __future__ import annotations

from pathlib import Path

import pytest

from trainfabric_plan.environment.file import read_environment
from trainfabric_plan.errors import InvalidInput, NotFound

VALID = """\
name: demo
region: us-east-1
availability_zone: us-east-1a
fleet:
  instance_type: p5.48xlarge
  nodes: 4
training:
  recipe: tiny_cpu
"""

COMMITTED = sorted((Path(__file__).parents[2] / "environments").glob("*.yaml"))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`demo.yaml` in the working directory, so that messages hold no path of this machine."""
    monkeypatch.chdir(tmp_path)
    return Path("demo.yaml")


def test_a_valid_file_is_read(file: Path) -> None:
    file.write_text(VALID)

    assert read_environment(file).fleet.nodes == 4


@pytest.mark.parametrize("committed", COMMITTED, ids=lambda path: path.name)
def test_every_environment_of_this_repository_is_valid(committed: Path) -> None:
    assert read_environment(committed).name


def test_a_missing_file_is_named(file: Path) -> None:
    with pytest.raises(NotFound) as caught:
        read_environment(file)

    assert str(caught.value) == (
        "demo.yaml: environment file must be an existing file, got none; trainfabric init writes one"
    )


def test_a_directory_is_refused(tmp_path: Path, file: Path) -> None:
    file.mkdir()

    with pytest.raises(InvalidInput, match=r"^demo\.yaml: the file must be a readable UTF-8 file, got a directory$"):
        read_environment(file)


def test_a_file_that_is_not_utf_8_is_refused(file: Path) -> None:
    file.write_bytes(b"name: \xff\n")

    with pytest.raises(InvalidInput, match=r"^demo\.yaml: the file must be a readable UTF-8 file, got .*0xff"):
        read_environment(file)


@pytest.mark.parametrize(
    "text",
    [
        "name: [demo",
        "name: demo\n\tregion: x\n",
        "? [a, b]\n: c\n",
        "--- {}\n--- {}\n",
        "name: !!python/name:os.system",
    ],
    ids=["unclosed list", "tab", "key that is a list", "two documents", "python object"],
)
def test_what_is_no_plain_yaml_is_refused_with_its_line(file: Path, text: str) -> None:
    file.write_text(text)

    with pytest.raises(InvalidInput, match=r"^demo\.yaml: the file must be valid YAML, got .*line \d"):
        read_environment(file)


def test_an_empty_file_is_refused(file: Path) -> None:
    file.write_text("# nothing yet\n")

    with pytest.raises(InvalidInput) as caught:
        read_environment(file)

    assert str(caught.value) == (
        "demo.yaml: the file must be a mapping with the keys name, region, fleet, training, got nothing"
    )


def test_a_mistake_carries_the_line_of_its_key(file: Path) -> None:
    file.write_text(VALID.replace("nodes: 4", "nodes: 0").replace("tiny_cpu", "huge"))

    with pytest.raises(InvalidInput) as caught:
        read_environment(file)

    assert str(caught.value).splitlines() == [
        "demo.yaml:6: fleet.nodes must be at least 1, got 0",
        "demo.yaml:8: training.recipe must be one of gpt_1b3_4x_p5, tiny_cpu, got huge; choose one of these",
    ]


def test_a_mistake_about_an_absent_key_carries_the_line_of_its_section(file: Path) -> None:
    file.write_text(VALID.replace("  nodes: 4\n", ""))

    with pytest.raises(InvalidInput) as caught:
        read_environment(file)

    assert str(caught.value) == "demo.yaml:4: fleet.nodes must be given, got nothing; add nodes"


def test_a_key_given_twice_is_refused_because_yaml_would_drop_the_first(file: Path) -> None:
    file.write_text(VALID.replace("  nodes: 4\n", "  nodes: 4\n  nodes: 400\n") + "name: other\n")

    with pytest.raises(InvalidInput) as caught:
        read_environment(file)

    assert str(caught.value).splitlines() == [
        "demo.yaml:7: fleet.nodes must be given once, got twice; remove one of them",
        "demo.yaml:10: name must be given once, got twice; remove one of them",
    ]


def test_aliases_that_run_in_a_circle_do_not_hang_the_reader(file: Path) -> None:
    file.write_text(VALID + "tags: &tags\n  again: *tags\n")

    with pytest.raises(InvalidInput) as caught:
        read_environment(file)

    assert str(caught.value) == "demo.yaml:10: tags.again must be text, got {'again': {...}}"


def test_unquoted_numbers_and_flags_are_named_with_the_remedy(file: Path) -> None:
    file.write_text(VALID + "account: 123456789012\ntags:\n  keep: no\n")

    with pytest.raises(InvalidInput) as caught:
        read_environment(file)

    assert str(caught.value).splitlines() == [
        "demo.yaml:9: account must be text, got 123456789012; put it in quotes",
        "demo.yaml:11: tags.keep must be text, got False; put it in quotes",
    ]
