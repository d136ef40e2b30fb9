"""What a change to the exchange of gradients would give at best. Pure arithmetic on a measured iteration."""

from __future__ import annotations

from typing import Dict, Tuple

from chainerdoctor.facts.comm import Scaling


def predictions(scaling: Scaling) -> Dict[str, Tuple[float, float]]:
    """Seconds per iteration and efficiency that a change would give at best: fp16 halves what is sent as float32; double
    buffering runs the exchange beside the computing; a batch of twice the size computes twice as long and sends the same.
    """
    made: Dict[str, Tuple[float, float]] = {}
    compute, transfer = scaling.compute_s, scaling.transfer_s
    rest = scaling.iteration_s - transfer

    def told(name: str, iteration_s: float, compute_s: float) -> None:
        made[name] = (iteration_s, min(1.0, compute_s / iteration_s) if iteration_s > 0 else 1.0)

    if not scaling.asynchronous:
        if scaling.dtype == "float32":
            told("float16 communication", rest + transfer / 2, compute)
        told("double buffering", max(rest, scaling.waiting_s + transfer), compute)
        told("batches of twice the size", rest + compute + transfer, 2 * compute)
    return made
