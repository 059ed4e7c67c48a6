"""Instance metadata and volumes of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainfabric_plan.lint.assembly import Assembly
from trainfabric_plan.lint.intrinsics import text_parts
from trainfabric_plan.lint.launches import launches
from trainfabric_plan.lint.model import Broken, Rule, Severity

_CONTAINER = re.compile(r"^[^#\n]*\b(?:docker|nerdctl|podman)\s+run\b(?P<rest>.*(?:\\\n.*)*)", re.MULTILINE)
_ON_HOST = re.compile(r"--net(?:work)?[= ]host\b")
_OPTIONS = "EC2 API model of botocore 1.44.8, LaunchTemplateInstanceMetadataOptionsRequest"


def _version_one(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        tokens = launch.data.at("MetadataOptions", "HttpTokens")
        off = launch.data.at("MetadataOptions", "HttpEndpoint").text == "disabled"
        if tokens.text == "optional" and not off:
            yield Broken(at=tokens, must="required: IMDSv2 only", got="optional", remedy="set HttpTokens to required")


def _unsaid(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        options = launch.data.at("MetadataOptions")
        tokens = options.at("HttpTokens")
        off = options.at("HttpEndpoint").text == "disabled"
        if tokens.is_missing and not options.is_unknown and not off:
            yield Broken(
                at=options,
                must="given with HttpTokens required: otherwise the image or the account decides",
                got="none",
                remedy="set MetadataOptions.HttpTokens to required",
            )


def _one_hop(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        options = launch.data.at("MetadataOptions")
        hops = options.at("HttpPutResponseHopLimit")
        script = launch.data.at("UserData")
        parts = [] if script.is_missing else text_parts(assembly, script.raw, script.place.template)
        text = "".join(part for part in parts if isinstance(part, str))
        bridged = any(not _ON_HOST.search(match["rest"]) for match in _CONTAINER.finditer(text))
        if bridged and not options.is_unknown and (hops.is_missing or hops.whole == 1):
            yield Broken(
                at=hops,
                must="2 or more for containers: with 1 hop IMDSv2 does not reach them",
                got="1" if hops.whole == 1 else "none, which is 1",
                remedy="set HttpPutResponseHopLimit to 2, or run the container with --network host",
            )


def _plain_volumes(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        for mapping in launch.data.at("BlockDeviceMappings").possible_items:
            volume = mapping.at("Ebs")
            encrypted = volume.at("Encrypted")
            if not volume.is_missing and (encrypted.is_missing or encrypted.truth is False):
                yield Broken(
                    at=encrypted,
                    must="true",
                    got="none" if encrypted.is_missing else "false",
                    remedy="set Encrypted to true: it costs nothing, and no speed",
                )
    for resource in assembly.of_type("AWS::EC2::Volume"):
        encrypted = resource.properties("Encrypted")
        from_snapshot = not resource.properties("SnapshotId").is_missing
        if not from_snapshot and (encrypted.is_missing or encrypted.truth is False):
            yield Broken(
                at=encrypted,
                must="true",
                got="none" if encrypted.is_missing else "false",
                remedy="set Encrypted to true: it costs nothing, and no speed",
            )


RULES = (
    Rule(
        id="metadata-version-one",
        severity=Severity.ERROR,
        title="Instance metadata is IMDSv2 only",
        why="With HttpTokens optional, anything on the node that can be made to fetch an address gets its credentials.",
        source=_OPTIONS + "; AWS Security Hub control EC2.8",
        check=_version_one,
    ),
    Rule(
        id="metadata-unsaid",
        severity=Severity.WARNING,
        title="The launch template says that metadata is IMDSv2 only",
        why="Without it the image or the account decides, and the next image may decide otherwise.",
        source=_OPTIONS,
        check=_unsaid,
    ),
    Rule(
        id="metadata-one-hop",
        severity=Severity.WARNING,
        title="Metadata reaches containers that user data starts",
        why="A container behind a bridge is one hop further, and IMDSv2's answer does not reach it.",
        source="EC2 user guide, instancedata-data-retrieval (hop limit), read 2026-11",
        check=_one_hop,
    ),
    Rule(
        id="volume-not-encrypted",
        severity=Severity.WARNING,
        title="Volumes of nodes are encrypted",
        why="Checkpoints, data and credentials pass over them.",
        source="AWS Security Hub control EC2.3, read 2026-11",
        check=_plain_volumes,
    ),
)
