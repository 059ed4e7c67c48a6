"""Names of instance types: every name that EC2 has, and what is none."""

from __future__ import annotations

import gzip
import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from trainfabric_plan.catalog import INSTANCE_TYPES, parse_instance_type
from trainfabric_plan.errors import InvalidInput


def names_of_ec2() -> list[str]:
    spec = find_spec("moto")
    assert spec and spec.origin
    data = Path(spec.origin).parent / "ec2" / "resources" / "instance_types.json.gz"
    return list(json.loads(gzip.decompress(data.read_bytes())))


def test_every_name_of_ec2_is_read_and_its_parts_make_the_name_again() -> None:
    names = names_of_ec2()

    assert len(names) == 1395
    for name in (*names, *INSTANCE_TYPES):
        read = parse_instance_type(name)
        assert f"{read.series}.{read.size}" == name == read.name
        assert read.series.startswith(read.family)
        assert read.series.replace("-", "").endswith(read.options.replace("-", "")) or read.family == "u"
        assert (read.generation is None) == name.startswith("mac-")
        assert read.is_metal == (".metal" in name)


@pytest.mark.parametrize(
    ("name", "family", "generation", "options", "size"),
    [
        ("p5.48xlarge", "p", 5, "", "48xlarge"),
        ("p5en.48xlarge", "p", 5, "en", "48xlarge"),
        ("p6-b300.48xlarge", "p", 6, "b300", "48xlarge"),
        ("p6e-gb200.36xlarge", "p", 6, "e-gb200", "36xlarge"),
        ("c7i-flex.large", "c", 7, "i-flex", "large"),
        ("im4gn.16xlarge", "im", 4, "gn", "16xlarge"),
        ("hpc7a.96xlarge", "hpc", 7, "a", "96xlarge"),
        ("u-6tb1.112xlarge", "u", 1, "6tb", "112xlarge"),
        ("u7in-24tb.224xlarge", "u", 7, "in-24tb", "224xlarge"),
        ("mac-m4pro.metal", "mac", None, "m4pro", "metal"),
        ("m8i.metal-48xl", "m", 8, "i", "metal-48xl"),
        ("t3.nano", "t", 3, "", "nano"),
    ],
)
def test_a_name_has_these_parts(name: str, family: str, generation: int | None, options: str, size: str) -> None:
    read = parse_instance_type(name)

    assert (read.family, read.generation, read.options, read.size) == (family, generation, options, size)


@pytest.mark.parametrize(
    ("name", "got"),
    [
        ("", "an empty text"),
        ("p5", "p5"),
        ("P5.48xlarge", "P5.48xlarge"),
        ("p5.48xlarg", "p5.48xlarg"),
        ("p5.48xlarge ", "p5.48xlarge "),
        ("ml.p5.48xlarge", "ml.p5.48xlarge"),
        ("u-p6e-gb200x72", "u-p6e-gb200x72"),
    ],
)
def test_what_is_no_name_is_refused(name: str, got: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_instance_type(name)

    assert str(caught.value) == f"catalog: instance type must be a name such as p5.48xlarge, got {got}"
