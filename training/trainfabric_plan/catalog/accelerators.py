"""Accelerators, and how those of one node are linked: what their makers say of them.

Peaks are dense: where a datasheet prints the figure with sparsity, half of it. Memory is EC2's figure
(DescribeInstanceTypes as in moto 5.2.5) unless the table of instance types says otherwise. What no source confirmed is
left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from trainfabric_plan.catalog.types import Accelerator, Links

_A100 = {"fp64": 9.7, "fp32": 19.5, "tf32": 156.0, "bf16": 312.0, "fp16": 312.0, "int8": 624.0}
_HOPPER = {"bf16": 989.0, "fp16": 989.0, "fp8": 1979.0, "int8": 1979.0}
_HGX_BLACKWELL = {"bf16": 2250.0, "fp16": 2250.0, "fp8": 4500.0}
_L4 = {"fp32": 30.3, "tf32": 60.0, "bf16": 121.0, "fp16": 121.0, "fp8": 242.0, "int8": 242.0}
_L40S = {"fp32": 91.6, "tf32": 183.0, "bf16": 362.0, "fp16": 362.0, "fp8": 733.0, "int8": 733.0}
_TRAINIUM_1 = {"fp32": 47.5, "tf32": 190.0, "bf16": 190.0, "fp16": 190.0, "fp8": 190.0, "int8": 380.0}
_TRAINIUM_2 = {"fp32": 181.0, "tf32": 667.0, "bf16": 667.0, "fp16": 667.0, "fp8": 1299.0}

_READ = "read 2026-11"
_SHEETS = "NVIDIA datasheets, as quoted in github.com/winston-zhang-orz/gpu-specs and astroC86/gpu-datasheet"
_CONSTANTS = "NVIDIA HGX and NVL72 datasheets, as quoted in the public page GPU & Network Constants of 2026-01-25"
_nvidia = partial(Accelerator, maker="nvidia", source=_SHEETS, date=_READ)
_blackwell = partial(Accelerator, maker="nvidia", source=_CONSTANTS, date=_READ)
_memory_only = partial(Accelerator, maker="nvidia", source="no source was found for its dense peaks", date=_READ)
_aws = partial(Accelerator, maker="aws", source="AWS Neuron documentation, chip architecture", date=_READ)

ACCELERATORS: Mapping[str, Accelerator] = {
    "V100": _nvidia(
        name="V100",
        memory_mib=32768,
        peak_tflops={"fp64": 7.8, "fp32": 15.7, "fp16": 125.0},
        memory_gbytes_per_s=900,
    ),
    "A100 40GB": _nvidia(name="A100", memory_mib=40960, peak_tflops=_A100, memory_gbytes_per_s=1555),
    "A100 80GB": _nvidia(name="A100", memory_mib=81920, peak_tflops=_A100, memory_gbytes_per_s=2039),
    "H100": _nvidia(name="H100", memory_mib=81920, peak_tflops=_HOPPER, memory_gbytes_per_s=3350),
    "H200": _nvidia(name="H200", memory_mib=144384, peak_tflops=_HOPPER, memory_gbytes_per_s=4800),
    "B200": _blackwell(name="B200", memory_mib=183359, peak_tflops=_HGX_BLACKWELL, memory_gbytes_per_s=7700),
    "B300": _blackwell(name="B300", memory_mib=275040, peak_tflops=_HGX_BLACKWELL, memory_gbytes_per_s=8000),
    "GB200": _blackwell(
        name="GB200",
        memory_mib=176429,
        peak_tflops={"bf16": 2500.0, "fp16": 2500.0, "fp8": 5000.0},
        memory_gbytes_per_s=8000,
    ),
    "A10G": _memory_only(name="A10G", memory_mib=22888),
    "L4": _nvidia(name="L4", memory_mib=22888, peak_tflops=_L4),
    "L40S": _nvidia(name="L40S", memory_mib=45776, peak_tflops=_L40S, memory_gbytes_per_s=864),
    "RTX PRO 4500": _memory_only(name="RTX PRO 4500", memory_mib=32768),
    "RTX PRO 6000": _memory_only(name="RTX PRO Server 6000", memory_mib=98304),
    "Trainium": _aws(name="Trainium", memory_mib=32768, peak_tflops=_TRAINIUM_1, memory_gbytes_per_s=820),
    "Trainium2": _aws(name="Trainium2", memory_mib=98304, peak_tflops=_TRAINIUM_2, memory_gbytes_per_s=2900),
}
"""By the name that the table of instance types uses. `RTX PRO Server 6000` is EC2's spelling."""

_nvlink = partial(Links, kind="NVLink", source=f"{_CONSTANTS}, one direction doubled", date=_READ)
_neuronlink = partial(Links, kind="NeuronLink", source="AWS Neuron documentation, chip architecture", date=_READ)

LINKS: Mapping[str, Links] = {
    "NVLink 3": _nvlink(generation=3, gbytes_per_s=600),
    "NVLink 4": _nvlink(generation=4, gbytes_per_s=900),
    "NVLink 5": _nvlink(generation=5, gbytes_per_s=1800),
    "NeuronLink 2": _neuronlink(generation=2),
    "NeuronLink 3": _neuronlink(generation=3),
}
"""By the name that the table of instance types uses."""
