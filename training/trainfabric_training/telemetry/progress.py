"""A run's progress in words, one line each, for the log of the node that rank 0 runs on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainfabric_plan.contract import PROGRESS_MARK

if TYPE_CHECKING:
    from trainfabric_training.telemetry.records import StepRecord

_WORDS = {
    "start": "start of {recipe}: {ranks} ranks on {device}, {engine}",
    "resume": "resume after step {step} from {checkpoint}",
    "commit": "commit of step {step} in {seconds:.2f} s: {checkpoint}",
    "stop": "stop after step {step}",
    "done": "done after step {step}",
}


class Progress:
    """Prints what happens in a run of so many steps."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def step(self, record: StepRecord) -> None:
        """Prints a step."""
        self._say(
            f"step {record.step} of {self._steps}  loss {record.loss:.4f}  "
            f"grad norm {record.grad_norm:.3g}  {record.seconds:.2f} s"
        )

    def event(self, event: str, details: dict[str, Any]) -> None:
        """Prints an event."""
        self._say(_WORDS.get(event, event).format(**details))

    def _say(self, words: str) -> None:
        print(f"{PROGRESS_MARK}{words}", flush=True)
