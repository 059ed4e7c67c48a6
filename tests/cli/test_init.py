from __future__ import annotations

import ast
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from trainfabric_plan.environment.file import read_environment
from trainfabric_plan.environment.schema import schema_text

ROOT = Path(__file__).parents[2]
FILES = [
    "app.py",
    "cdk.json",
    "requirements.txt",
    "README.md",
    ".gitignore",
    "environments/mine.yaml",
    "environments/environment.schema.json",
]


def test_an_app_is_written_into_a_new_directory(trainfabric: Any) -> None:
    ended = trainfabric("init", "mine", "--json")

    assert (ended.status, ended.err) == (0, "")
    assert ended.json == {"directory": "mine", "environment": "mine", "files": FILES}
    assert sorted(str(file.relative_to("mine")) for file in Path("mine").rglob("*") if file.is_file()) == sorted(FILES)


def test_the_environment_is_valid_and_can_be_planned(trainfabric: Any) -> None:
    trainfabric("init", "apps/any", "--name", "big-run", "--region", "us-west-2")

    environment = read_environment("apps/any/environments/big-run.yaml")
    assert (environment.name, environment.region, environment.availability_zone) == (
        "big-run",
        "us-west-2",
        "us-west-2a",
    )
    plan = trainfabric("plan", "apps/any/environments/big-run.yaml", "--json").json
    assert (plan["fits"], plan["ranks"]) == (True, 32)


def test_the_app_is_that_of_this_repository_and_names_the_new_environment(trainfabric: Any) -> None:
    trainfabric("init", "mine")

    assert ast.dump(ast.parse(Path("mine/app.py").read_text())) == ast.dump(ast.parse((ROOT / "app.py").read_text()))
    assert json.loads(Path("mine/cdk.json").read_text()) == {
        "app": "python3 app.py",
        "versionReporting": False,
        "context": {"environment": "environments/mine.yaml"},
    }


def test_versions_are_those_of_this_installation(trainfabric: Any) -> None:
    trainfabric("init", "mine")

    cdk = json.loads((ROOT / "package.json").read_text())["devDependencies"]["aws-cdk"]
    readme = Path("mine/README.md").read_text()
    assert Path("mine/requirements.txt").read_text() == f"trainfabric=={version('trainfabric')}\n"
    assert f"npx aws-cdk@{cdk} deploy --all" in readme
    assert readme.count("aws-cdk@") == readme.count(f"aws-cdk@{cdk}")
    assert Path("mine/environments/environment.schema.json").read_text() == schema_text()


def test_the_readme_prepares_a_corpus_before_the_first_job_and_keeps_the_network_of_kept_data(trainfabric: Any) -> None:
    trainfabric("init", "mine")

    readme = Path("mine/README.md").read_text()
    prepare = "python -m trainfabric_training.data prepare --sources TEXTS --vocabulary 50304 --output s3://DATA_BUCKET/data/corpus"
    assert readme.index("deploy --all") < readme.index(prepare) < readme.index("job start")
    assert f'pip install "trainfabric[training]=={version("trainfabric")}"' in readme
    assert "destroy mine-Observability mine-Fleet mine-Storage" in readme
    assert "The stack `mine-Network` has to stay as long as the file system does" in readme


def test_people_are_told_what_was_written_and_what_comes_next(trainfabric: Any) -> None:
    assert trainfabric("init", "mine").out.splitlines() == [
        *(f"wrote mine/{file}" for file in FILES),
        "",
        "next: edit mine/environments/mine.yaml, then follow mine/README.md",
    ]


def test_the_working_directory_gives_its_own_name(trainfabric: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("here").mkdir()
    monkeypatch.chdir("here")

    assert trainfabric("init", ".", "--json").json["environment"] == "here"


def test_existing_files_are_never_overwritten_and_nothing_else_is_written(trainfabric: Any) -> None:
    Path("mine").mkdir()
    Path("mine/cdk.json").write_text("precious")
    Path("mine/notes.txt").write_text("unrelated")

    ended = trainfabric("init", "mine")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "mine: cdk.json must not exist yet, got existing files; choose another directory or move them away\n"
    )
    assert sorted(file.name for file in Path("mine").iterdir()) == ["cdk.json", "notes.txt"]
    assert Path("mine/cdk.json").read_text() == "precious"


def test_a_directory_beside_unrelated_files_is_taken(trainfabric: Any) -> None:
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("unrelated")

    assert trainfabric("init", "mine").status == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("My App",), "trainfabric init: --name must be text that matches ^[a-z][a-z0-9-]{1,29}$, got 'My App'\n"),
        (
            ("mine", "--name", "a/b"),
            "trainfabric init: --name must be text that matches ^[a-z][a-z0-9-]{1,29}$, got 'a/b'\n",
        ),
        (
            ("mine", "--region", "here"),
            "trainfabric init: --region must be text that matches ^[a-z]{2,4}(-[a-z]+)+-\\d$, got 'here'\n",
        ),
    ],
)
def test_a_name_or_region_that_cannot_be_used_is_refused(
    trainfabric: Any, arguments: tuple[str, ...], message: str
) -> None:
    ended = trainfabric("init", *arguments)

    assert (ended.status, ended.out, ended.err) == (2, "", message)
    assert list(Path().iterdir()) == []


def test_a_directory_that_is_a_file_is_refused(trainfabric: Any) -> None:
    Path("mine").write_text("a file")

    ended = trainfabric("init", "mine")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == "mine: the directory must be one that can be written, got File exists\n"
