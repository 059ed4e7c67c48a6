"""`trainfabric retained`: what `cdk destroy` keeps, and what it costs."""

from __future__ import annotations

from dataclasses import asdict

from trainfabric_cli.options import EnvironmentArgument, Json


def retained(environment_file: EnvironmentArgument, as_json: Json = False) -> None:
    """What cdk destroy leaves in the account, and what that costs per month."""
    from trainfabric_cli.output import console, print_json, print_table, table, usd
    from trainfabric_plan.environment.file import read_environment
    from trainfabric_plan.planning.cost import PRICED_REGION
    from trainfabric_plan.planning.retained import retained as of

    environment = read_environment(environment_file)
    kept = of(environment)
    if as_json:
        print_json([asdict(one) for one in kept])
        return
    made = table("what stays", "why", "USD per month", "basis", numbers=("USD per month",))
    for one in kept:
        made.add_row(one.what, one.why, usd(one.usd_per_month), one.basis)
    made.add_row(*_sum([one.usd_per_month for one in kept]))
    out = console()
    print_table(out, f"{environment.name}: what cdk destroy keeps (list prices of {PRICED_REGION})", made)
    out.print("docs/how-to/destroy-an-environment.md says how to delete it as well.")


def _sum(costs: list[float | None]) -> tuple[str, str, str, str]:
    """The table's last line: what is known of the sum, and how much is not in it."""
    from trainfabric_cli.output import usd

    missing = costs.count(None)
    total = usd(sum(cost for cost in costs if cost is not None))
    basis = f"{missing} of {len(costs)} unknown, not in it" if missing else "all of them"
    return "together", "", f"at least {total}" if missing else total, basis
