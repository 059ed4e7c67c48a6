"""How the work of the rules grows with the templates."""

from __future__ import annotations

from typing import Any

import pytest

from trainfabric_plan.lint import Assembly, Template, lint


def fleets(count: int) -> Assembly:
    interface = {"NetworkCardIndex": 0, "DeviceIndex": 0, "InterfaceType": "efa", "Groups": [{"Ref": "Group"}]}
    data = {"InstanceType": "p5.48xlarge", "NetworkInterfaces": [interface]}
    resources: dict[str, Any] = {"Group": {"Type": "AWS::EC2::SecurityGroup"}}
    for number in range(count):
        resources[f"Nodes{number}"] = {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": data}}
        named = {"LaunchTemplate": {"LaunchTemplateId": {"Ref": f"Nodes{number}"}, "Version": "1"}}
        resources[f"Fleet{number}"] = {"Type": "AWS::AutoScaling::AutoScalingGroup", "Properties": named}
    return Assembly([Template(name="stack", body={"Resources": resources})])


def test_twice_the_launch_templates_are_twice_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve, worked_out = Assembly.resolve, []

    def counted(self: Assembly, raw: Any, template: Template) -> Any:
        worked_out.append(raw)
        return resolve(self, raw, template)

    monkeypatch.setattr(Assembly, "resolve", counted)
    counts = []
    for count in (20, 40):
        worked_out.clear()
        assert lint(fleets(count))
        counts.append(len(worked_out))

    assert counts[1] <= 2.05 * counts[0]
