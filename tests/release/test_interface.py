"""The public interface of the constructs against that of the last release: names and properties stay.

`interface.json` holds it as of the last release; `python -m tests.release.interface` writes it anew, at a release.
New names and new optional properties are free. Anything that breaks an app which imports the constructs needs a line in
the changelog that names it.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.release.interface import Interface, breaks, interface
from tests.release.test_templates import unreleased

RELEASED = Path(__file__).parent / "interface.json"


def test_what_apps_use_of_the_last_release_is_still_there() -> None:
    released: Interface = json.loads(RELEASED.read_text())

    assert [one for one in breaks(released, interface()) if one.split()[0] not in unreleased()] == []


def test_the_interface_knows_what_a_property_is() -> None:
    known = interface()["DataBucket"]

    assert known["retain"] == {"needed": False}
    assert interface()["SpotTrainingFleet"]["instance_type"] == {"needed": True}


def test_what_breaks_an_app_is_found_and_what_does_not_is_not() -> None:
    before = {"Gone": {}, "Kept": {"gone": {"needed": False}, "stays": {"needed": False}}}
    after = {"Kept": {"stays": {"needed": True}, "new": {"needed": True}, "more": {"needed": False}}, "New": {}}

    assert breaks(before, after) == [
        "Gone is gone",
        "Kept.gone is gone",
        "Kept.new is needed now",
        "Kept.stays is needed now",
    ]
