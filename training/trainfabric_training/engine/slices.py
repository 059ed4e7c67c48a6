"""The named slices of a ZeRO-1 optimizer's partitions: views into DeepSpeed's flat buffers, without communication.

DeepSpeed 0.19.8 keeps the fp32 partition of this data rank in one of two places: `DeepSpeedZeroOptimizer` (fp32, and
bf16 with bf16 gradients) in `single_partition_of_fp32_groups`, `BF16_Optimizer` (bf16 with fp32 gradients) in
`fp32_groups_flat_partition`. Where a parameter lies in it stands in its `_hp_mapping`. These names are private: the
self-test at every start holds them against what they must mean.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from trainfabric_node.checkpoint import Extent, Kind
from trainfabric_training.parallel import Mesh, ParameterInfo, Ranks, coordinates, info_of

MOMENTS: tuple[Kind, ...] = ("exp_avg", "exp_avg_sq")


@dataclass(frozen=True, kw_only=True)
class LocalSlice:
    """A part of one tensor that this rank keeps.

    Attributes:
        info: Name and geometry of the parameter.
        kind: The fp32 weights, or a moment of theirs.
        start: First element in the flattened local parameter.
        values: The elements, fp32, a view into the optimizer's buffer.
        written: Whether this rank writes it; of equal copies on several ranks one does.
    """

    info: ParameterInfo
    kind: Kind
    start: int
    values: Tensor
    written: bool

    @property
    def extent(self) -> Extent:
        """Where it lies in the parameter."""
        return Extent(geometry=self.info.geometry, start=self.start, count=self.values.numel())


@dataclass(frozen=True, kw_only=True)
class Partition:
    """What this rank keeps of one parameter group: the group's parameters, and their flat fp32 partition."""

    parameters: list[nn.Parameter]
    flat: Tensor


def partitions(optimizer: Any) -> list[Partition]:
    """The partitions of either of DeepSpeed's optimizers, one per parameter group."""
    if hasattr(optimizer, "single_partition_of_fp32_groups"):
        pairs = zip(optimizer.bit16_groups, optimizer.single_partition_of_fp32_groups, strict=True)
    else:
        pairs = zip(optimizer.bf16_groups, optimizer.fp32_groups_flat_partition, strict=True)
    return [Partition(parameters=list(parameters), flat=flat) for parameters, flat in pairs]


def ensure_moments(optimizer: Any, steps: int) -> None:
    """Gives the optimizer zero moments where it has none yet, and sets its step count; without a dummy step."""
    for partition in partitions(optimizer):
        state = optimizer.optimizer.state[partition.flat]
        for kind in MOMENTS:
            if kind not in state:
                state[kind] = torch.zeros_like(partition.flat.detach())
        state["step"] = torch.tensor(float(steps))
    optimizer._hp_optimizer_states_linked = False
    optimizer._lazy_init_hp_params_optimizer_state()


def local_slices(optimizer: Any, mesh: Mesh) -> Iterator[LocalSlice]:
    """Every slice that this rank keeps, weights and moments."""
    for partition in partitions(optimizer):
        state = optimizer.optimizer.state.get(partition.flat, {})
        tensors: dict[Kind, Tensor] = {"master": partition.flat}
        tensors |= {kind: state[kind] for kind in MOMENTS if kind in state}
        for parameter in partition.parameters:
            mapping = parameter._hp_mapping  # type: ignore[attr-defined]
            if mapping is None:
                continue
            inside, within = mapping.lp_fragment_address, mapping.hp_fragment_address
            for kind, tensor in tensors.items():
                yield LocalSlice(
                    info=info_of(parameter),
                    kind=kind,
                    start=inside.start,
                    values=tensor.detach().view(-1).narrow(0, within.start, within.numel),
                    written=_written(parameter, mesh),
                )


def _written(parameter: nn.Parameter, mesh: Mesh) -> bool:
    """Of what tensor ranks hold alike the first writes; of a tied parameter the first stage that has it."""
    whole = info_of(parameter).geometry.sharded_dimension is None
    return not (whole and mesh.tensor_rank) and not getattr(parameter, "ds_pipe_replicated", False)


def self_test(optimizer: Any, module: nn.Module, mesh: Mesh, ranks: Ranks) -> None:
    """Holds the slices against what they must be, before anything is saved or restored through them.

    Raises:
        RuntimeError: If they are no views of the flat partitions, hold other values than the model, or do not cover
            every parameter exactly once over the data ranks: this DeepSpeed keeps its state elsewhere.
    """
    slices = [one for one in local_slices(optimizer, mesh) if one.kind == "master"]
    _check_views(slices, partitions(optimizer))
    _check_values(slices, module)
    covers = [(one.info.name, one.start, one.values.numel()) for one in slices]
    sizes = {info_of(parameter).name: parameter.numel() for parameter in module.parameters()}
    for shares in _by_stage(ranks.everywhere(lambda: (covers, sizes)), mesh):
        check_cover(shares)


Share = tuple[list[tuple[str, int, int]], dict[str, int]]


def _by_stage(shares: list[Share], mesh: Mesh) -> list[list[Share]]:
    """The shares of ranks that hold the same parameters and differ in their data rank alone."""
    grouped: defaultdict[tuple[int, int], list[Share]] = defaultdict(list)
    for rank, share in enumerate(shares):
        place = coordinates(mesh.layout, rank)
        grouped[place.pipeline, place.tensor].append(share)
    return list(grouped.values())


def check_cover(shares: list[Share]) -> None:
    """Raises `RuntimeError` unless the slices of each parameter follow each other from its start to its end."""
    found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for covers, _ in shares:
        for name, start, count in covers:
            found[name].append((start, count))
    for name, size in shares[0][1].items():
        end = 0
        for start, count in sorted(found[name]):
            if start != end:
                raise RuntimeError(f"slices of {name} must follow each other, got one at {start} behind {end}")
            end += count
        if end != size:
            raise RuntimeError(f"slices of {name} must cover its {size} elements, got {end}")


def _check_views(slices: list[LocalSlice], held: list[Partition]) -> None:
    flats = {partition.flat.untyped_storage().data_ptr() for partition in held}
    for one in slices:
        if one.values.dtype != torch.float32 or one.values.untyped_storage().data_ptr() not in flats:
            raise RuntimeError(f"slice of {one.info.name} must be a view of a flat fp32 partition")


def _check_values(slices: list[LocalSlice], module: nn.Module) -> None:
    """The model's own weights are the rounded fp32 ones, at the same place."""
    weights = {info_of(parameter).name: parameter.detach().view(-1) for parameter in module.parameters()}
    for one in slices:
        weight = weights[one.info.name].narrow(0, one.start, one.values.numel())
        if not torch.equal(weight, one.values.to(weight.dtype)):
            raise RuntimeError(f"slice of {one.info.name} must hold the parameter's values")
