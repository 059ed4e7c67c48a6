"""`trainfabric catalog`: the instance types that trainfabric knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainfabric_cli.options import Json

if TYPE_CHECKING:
    from trainfabric_plan.catalog import InstanceType


def catalog(
    name: Annotated[str | None, typer.Argument(help="One instance type; all of them if not given.")] = None,
    as_json: Json = False,
) -> None:
    """List instance types: accelerators, network cards, EFA interfaces, price. `--json` is a list of rows."""
    from trainfabric_cli.output import print_json
    from trainfabric_plan.catalog import INSTANCE_TYPES, instance_type

    rows = list(INSTANCE_TYPES.values()) if name is None else [instance_type(name)]
    if as_json:
        print_json([_document(row) for row in rows])
    else:
        _print(rows)
        if name is not None:
            _print_interfaces(rows[0])


def _document(row: InstanceType) -> dict[str, Any]:
    from trainfabric_plan.catalog import efa_interfaces, on_demand_price

    price = on_demand_price(row.name)
    return {
        "instance_type": row.name,
        "accelerator": row.accelerator,
        "accelerators": row.accelerators,
        "accelerator_memory_mib": row.accelerator_memory_mib,
        "vcpus": row.vcpus,
        "memory_gib": row.memory_gib,
        "architecture": row.architecture,
        "network_gbps": row.network_gbps,
        "cards": len(row.known_cards),
        "efa": row.efa_interface_count,
        "efa_interfaces": [
            {"card": one.card, "device": one.device, "type": str(one.type)} for one in efa_interfaces(row)
        ],
        "source": row.source,
        "date": row.date,
        "price": None
        if price is None
        else {"usd_per_hour": price.value, "region": "us-east-1", "date": price.date, "source": price.source},
    }


def _print(rows: list[InstanceType]) -> None:
    from trainfabric_cli.output import console, print_table, table, usd
    from trainfabric_plan.catalog import on_demand_price

    numbers = ("vCPUs", "GiB", "Gbps", "cards", "EFA", "USD per hour")
    made = table("instance type", "accelerators", *numbers, "price of", numbers=numbers)
    for row in rows:
        price = on_demand_price(row.name)
        made.add_row(
            row.name,
            f"{row.accelerators} × {row.accelerator}" if row.accelerator else "none",
            str(row.vcpus),
            str(row.memory_gib),
            f"{row.network_gbps:g}",
            str(len(row.known_cards)),
            str(row.efa_interface_count),
            usd(price.value if price else None),
            f"{price.date}, us-east-1, on demand" if price else "no source found",
        )
    print_table(console(), "Instance types", made)


def _print_interfaces(row: InstanceType) -> None:
    from trainfabric_cli.output import console, print_table, table
    from trainfabric_plan.catalog import efa_interfaces

    made = table("card", "device", "type", numbers=("card", "device"))
    for one in efa_interfaces(row):
        made.add_row(str(one.card), str(one.device), str(one.type))
    out = console()
    print_table(out, "Network interfaces of a node", made)
    out.print(f"{row.source}, {row.date}")
