from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trainfabric_plan.environment.file import read_environment
from trainfabric_plan.permissions import Target, caller_policy, deploy_policies

ACCOUNT = "123456789012"


def test_json_has_the_policies_of_caller_and_execution_role(
    trainfabric: Any, environment_file: Any, no_aws: None, tmp_path: Path
) -> None:
    ended = trainfabric("policy", environment_file(), "--account", ACCOUNT, "--json")

    target = Target(environment=read_environment(tmp_path / "demo.yaml"), account=ACCOUNT)
    assert (ended.status, ended.err) == (0, "")
    assert ended.json == {
        "caller": caller_policy(target),
        "deploy": deploy_policies(target),
        "account": ACCOUNT,
        "files": [],
        "removed": [],
    }


def test_documents_are_written_and_what_to_do_with_them_is_said(
    trainfabric: Any, environment_file: Any, tmp_path: Path
) -> None:
    ended = trainfabric("policy", environment_file(), "--account", ACCOUNT, "--qualifier", "tf", "-o", "policies")

    assert (ended.status, ended.err) == (0, "")
    written = sorted((tmp_path / "policies").iterdir())
    assert [file.name for file in written] == ["demo-caller.json", "demo-deploy-1.json", "demo-deploy-2.json"]
    target = Target(environment=read_environment(tmp_path / "demo.yaml"), account=ACCOUNT)
    assert [json.loads(file.read_text()) for file in written] == [caller_policy(target, "tf"), *deploy_policies(target)]
    assert ended.out.endswith(
        """\
Once, with administrator rights:
  aws iam create-policy --policy-name trainfabric-demo-deploy-1 --policy-document file://policies/demo-deploy-1.json
  aws iam create-policy --policy-name trainfabric-demo-deploy-2 --policy-document file://policies/demo-deploy-2.json
  cdk bootstrap aws://123456789012/us-east-1 --qualifier tf --toolkit-stack-name CDKToolkit-tf \
--cloudformation-execution-policies arn:aws:iam::123456789012:policy/trainfabric-demo-deploy-1,\
arn:aws:iam::123456789012:policy/trainfabric-demo-deploy-2
Then attach policies/demo-caller.json to whoever deploys.
"""
    )


def test_people_see_what_each_statement_is_limited_to(trainfabric: Any, environment_file: Any) -> None:
    lines = [
        " ".join(line.split())
        for line in trainfabric("policy", environment_file(), "--account", ACCOUNT).out.splitlines()
    ]

    assert lines[0] == "demo: account 123456789012, us-east-1"
    assert "1 LaunchTypes 1 ec2:instance/*; ec2:InstanceType p5.48xlarge" in lines
    assert lines[-1] == "--output FOLDER writes the documents and says what to do with them, --json prints them."


def test_without_an_account_nothing_can_be_named(trainfabric: Any, environment_file: Any) -> None:
    ended = trainfabric("policy", environment_file())

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "policy: account must be known: the policies name resources in it, got none; name it in the environment file, "
        "or add --account\n"
    )


def test_another_account_than_the_files_is_refused(trainfabric: Any, environment_file: Any) -> None:
    file = environment_file({"region: us-east-1": 'region: us-east-1\naccount: "210987654321"'})

    ended = trainfabric("policy", file, "--account", ACCOUNT)

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "policy: --account must be the account of demo.yaml, 210987654321, got 123456789012; leave it out\n"
    )


def test_options_that_cannot_be_are_refused(trainfabric: Any, environment_file: Any) -> None:
    def error(*options: str) -> Any:
        return trainfabric("policy", environment_file(), *options).err

    assert error("--account", "123") == "policy: --account must be 12 digits, got 123\n"
    assert error("--account", ACCOUNT, "--boundary", "admins") == (
        "policy: --boundary must be the ARN of a managed policy, got admins\n"
    )
    assert error("--account", ACCOUNT, "--qualifier", "a-long-qualifier") == (
        "policy: --qualifier must be 1 to 10 letters, digits, hyphens or underscores, got a-long-qualifier\n"
    )


def test_a_folder_that_cannot_be_made_is_named(trainfabric: Any, environment_file: Any, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")

    ended = trainfabric("policy", environment_file(), "--account", ACCOUNT, "-o", "taken")

    assert (ended.status, ended.err) == (2, "taken: output must be a folder that can be written, got File exists\n")


def test_documents_that_an_earlier_run_wrote_and_this_one_did_not_are_removed(
    trainfabric: Any, environment_file: Any, tmp_path: Path
) -> None:
    others = {"demo-deploy-1-old.json", "demo-deploy-x-caller.json", "demo-deploy-x-deploy-9.json"}
    (tmp_path / "policies").mkdir()
    for name in {"demo-deploy-3.json", "demo-deploy-12.json", *others}:
        (tmp_path / "policies" / name).write_text("{}")

    ended = trainfabric("policy", environment_file(), "--account", ACCOUNT, "-o", "policies")

    assert (ended.status, ended.err) == (0, "")
    written = {"demo-caller.json", "demo-deploy-1.json", "demo-deploy-2.json"}
    assert {file.name for file in (tmp_path / "policies").iterdir()} == written | others
    assert ended.out.endswith(
        "Removed policies/demo-deploy-12.json of an earlier run: the policies fit into fewer documents now.\n"
        "Removed policies/demo-deploy-3.json of an earlier run: the policies fit into fewer documents now.\n"
    )
