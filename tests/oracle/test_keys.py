"""Our table of ParallelCluster's keys against the schema of aws-parallelcluster 3.16.1."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle.conftest import asked
from trainfabric_plan.parallelcluster.keys import FORMS, Kind, OnChange, keys

KINDS = {
    ("Nested", False): Kind.SECTION,
    ("Nested", True): Kind.SECTIONS,
    ("String", False): Kind.TEXT,
    ("String", True): Kind.TEXTS,
    ("Integer", False): Kind.WHOLE,
    ("Float", False): Kind.NUMBER,
    ("Boolean", False): Kind.FLAG,
    ("Dict", False): Kind.MAP,
    ("Dict", True): Kind.MAPS,
    ("OneOrManyCustomActionField", False): Kind.ACTIONS,
    ("Raw", False): Kind.ANY,
}
POLICIES = {
    "SUPPORTED": OnChange.LIVE,
    "IGNORED": OnChange.LIVE,
    "SUPPORTED_UNLESS_ADC": OnChange.LIVE_BUT_IN_ADC,
    "QUEUE_UPDATE_STRATEGY": OnChange.QUEUE,
    "RESIZE_UPDATE_STRATEGY_ON_REMOVE": OnChange.QUEUE_IF_REMOVED,
    "MANAGED_PLACEMENT_GROUP": OnChange.PLACEMENT,
    "MANAGED_FSX": OnChange.SUBNET,
    "SHARED_STORAGE_UPDATE_POLICY": OnChange.MOUNT,
    "COMPUTE_FLEET_STOP": OnChange.FLEET_STOPPED,
    "COMPUTE_FLEET_STOP_ON_REMOVE": OnChange.FLEET_STOPPED_IF_REMOVED,
    "COMPUTE_AND_LOGIN_NODES_STOP": OnChange.ALL_STOPPED,
    "LOGIN_NODES_STOP": OnChange.LOGIN_STOPPED,
    "LOGIN_NODES_POOL_STOP": OnChange.LOGIN_STOPPED,
    "LOGIN_NODES_POOLS_UPDATE_POLICY": OnChange.LOGIN_STOPPED_IF_REMOVED,
    "EXTRA_CHEF_ATTRIBUTES": OnChange.CHEF,
    "UNSUPPORTED": OnChange.NEVER,
    "READ_ONLY_RESOURCE_BUCKET": OnChange.NEVER,
}


@pytest.fixture(scope="module")
def theirs() -> dict[str, dict[str, Any]]:
    return {row["path"]: row for row in asked("schema.py", None, "keys")}


def test_our_table_has_exactly_the_keys_of_the_schema(theirs: dict[str, Any]) -> None:
    assert set(keys()) == set(theirs)
    assert len(theirs) > 300


@pytest.mark.parametrize(
    ("ours", "of_theirs"),
    [
        ("kind", lambda row: KINDS[row["type"], row["many"]]),
        ("required", lambda row: row["required"]),
        ("values", lambda row: tuple(row["values"])),
        ("least", lambda row: row["least"]),
        ("most", lambda row: row["most"]),
        ("on_change", lambda row: POLICIES[row["policy"]]),
    ],
)
def test_every_row_says_what_the_schema_says(theirs: dict[str, Any], ours: str, of_theirs: Any) -> None:
    differing = {path for path, key in keys().items() if getattr(key, ours) != of_theirs(theirs[path])}

    assert differing == set()


def test_a_text_has_a_form_exactly_where_the_schema_has_a_pattern(theirs: dict[str, Any]) -> None:
    assert {path for path, key in keys().items() if key.form} == {p for p, row in theirs.items() if row["pattern"]}
    assert {key.form for key in keys().values() if key.form} == set(FORMS)
