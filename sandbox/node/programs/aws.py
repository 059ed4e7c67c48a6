"""The AWS command line on a local node: `s3 cp`, `s3 ls`, and any operation that botocore's models know.

Options are checked against the model, as the real one does. Sources: the AWS CLI's reference for `s3 cp` and `s3 ls`,
and its user guide for `--query` and `--output text`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jmespath  # type: ignore[import-untyped]
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session, get_session

GLOBAL = {"region": None, "query": None, "output": "json"}
EXIT_FAILED, EXIT_USAGE, EXIT_SERVICE = 1, 252, 254
"""Exit statuses of the AWS CLI, version 2."""


class Misused(Exception):
    """A command that the AWS CLI would refuse."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A command, understood.

    Attributes:
        service: Such as `autoscaling`, or `s3`.
        operation: As the model names it, such as `SetDesiredCapacity`; for s3 `cp` or `ls`.
        parameters: Of the operation; for s3 `paths`.
        options: Those of `GLOBAL`.
    """

    service: str
    operation: str
    parameters: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)


def understood(session: Session, arguments: Sequence[str]) -> Call:
    """The call that a command line means.

    Raises:
        Misused: If service, operation, option or value is not one of the model.
    """
    service, operation, *rest = [*arguments, "", ""][: max(2, len(arguments))]
    if service == "s3":
        return _s3_call(operation, rest)
    if service not in session.get_available_services():
        raise Misused(f"argument command: Invalid choice: {service}")
    model = session.get_service_model(service)
    operations = {xform_name(name, "-"): name for name in model.operation_names}
    if operation not in operations:
        raise Misused(f"argument operation: Invalid choice: {service} {operation}")
    options, parameters = dict(GLOBAL), {}
    shape: Any = model.operation_model(operations[operation]).input_shape
    members = {xform_name(name, "-"): (name, member) for name, member in shape.members.items()}
    for option, values in _options(rest):
        if option in GLOBAL:
            options[option] = _one(option, values)
        else:
            name, value = _parameter(members, option, values)
            parameters[name] = value
    missing = [name for name in shape.required_members if name not in parameters]
    if missing:
        raise Misused(f"the following arguments are required: --{xform_name(missing[0], '-')}")
    return Call(service=service, operation=operations[operation], parameters=parameters, options=options)


def _options(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    option, values = "", list[str]()
    for word in [*words, "--"]:
        if not word.startswith("--"):
            values.append(word)
            continue
        if option:
            yield option, values
        elif values:
            raise Misused(f"Unknown options: {', '.join(values)}")
        option, values = word[2:], []


def _one(option: str, values: Sequence[str]) -> str:
    if len(values) != 1:
        raise Misused(f"argument --{option}: expected one argument, got {len(values)}")
    return values[0]


def _parameter(members: dict[str, tuple[str, Any]], option: str, values: list[str]) -> tuple[str, Any]:
    negated = option.removeprefix("no-") in members and option not in members
    if (option.removeprefix("no-") if negated else option) not in members:
        raise Misused(f"Unknown options: --{option}")
    name, shape = members[option.removeprefix("no-") if negated else option]
    if shape.type_name == "boolean":
        return name, not negated
    if shape.type_name == "list":
        if not values:
            raise Misused(f"argument --{option}: expected at least one argument")
        return name, values
    value = _one(option, values)
    return name, int(value) if shape.type_name in ("integer", "long") else value


def _s3_call(command: str, words: Sequence[str]) -> Call:
    paths = [word for word in words if not word.startswith("--")]
    options: dict[str, Any] = dict(GLOBAL)
    if "--region" in words:
        options["region"] = words[words.index("--region") + 1]
        paths.remove(options["region"])
    unknown = [word for word in words if word.startswith("--") and word not in ("--region", "--no-progress")]
    if unknown or (command, len(paths)) not in (("cp", 2), ("ls", 1)):
        raise Misused(f"the stand-in for aws does not know: s3 {command} {' '.join(words)}")
    return Call(service="s3", operation=command, parameters={"paths": paths}, options=options)


def perform(session: Session, call: Call) -> int:
    """Call the service and print what it says; the exit status."""
    config = Config(retries={"total_max_attempts": 2}, connect_timeout=5, read_timeout=60)
    client = session.create_client(call.service, region_name=call.options["region"], config=config)
    if call.service == "s3":
        paths = call.parameters["paths"]
        return _copy(client, *paths) if call.operation == "cp" else _list(client, paths[0])
    answer = getattr(client, xform_name(call.operation))(**call.parameters)
    answer.pop("ResponseMetadata", None)
    if call.options["query"]:
        answer = jmespath.search(call.options["query"], answer)
    if answer not in ({}, None):
        print(json.dumps(answer, indent=4, default=str) if call.options["output"] == "json" else _text(answer))
    return 0


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(map(_text, value)) if any(isinstance(i, list) for i in value) else "\t".join(map(_text, value))
    return str(value)


def _bucket_and_key(address: str) -> tuple[str, str]:
    bucket, _, key = address.removeprefix("s3://").partition("/")
    return bucket, key


def _copy(client: Any, source: str, target: str) -> int:
    if source.startswith("s3://"):
        bucket, key = _bucket_and_key(source)
        body = client.get_object(Bucket=bucket, Key=key)["Body"].read()
        if target == "-":
            sys.stdout.buffer.write(body)
        else:
            Path(target).write_bytes(body)
            print(f"download: {source} to {target}")
        return 0
    bucket, key = _bucket_and_key(target)
    body = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    client.put_object(Bucket=bucket, Key=key, Body=body)
    return 0


def _list(client: Any, address: str) -> int:
    bucket, key = _bucket_and_key(address)
    found = client.list_objects_v2(Bucket=bucket, Prefix=key).get("Contents", [])
    for item in found:
        print(f"{item['LastModified']:%Y-%m-%d %H:%M:%S} {item['Size']:>10} {item['Key'].rpartition('/')[2]}")
    return 0 if found else EXIT_FAILED


def main(arguments: list[str]) -> int:
    """Run the command; exit statuses are those of the AWS CLI."""
    session = get_session()
    try:
        return perform(session, understood(session, arguments))
    except Misused as error:
        print(f"aws: [ERROR]: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (BotoCoreError, ClientError) as error:
        print(f"aws: [ERROR]: {error}", file=sys.stderr)
        return EXIT_SERVICE if isinstance(error, ClientError) else EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
