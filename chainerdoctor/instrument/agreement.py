"""What ranks have to agree on, told by each in its own capture: no message is sent in the step.

Gradients after the all-reduce and parameters are the same on every rank, bit for bit. Every so many iterations each rank
tells fingerprints of its parameters; how often is chosen so that it costs less than a hundredth of the time. Norms after
the all-reduce are told every iteration anyway, and differ where gradients do.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Dict, Iterable, List, Optional

from chainerdoctor.instrument import gradient_sums as sums
from chainerdoctor.instrument.recording import Recording

#: The share of the time that fingerprints may take.
_SHARE = 0.01
_FIRST_EVERY = 10


class Agreement:
    """Tells what can be compared. With ``across`` also each rank's own gradients, before they are exchanged."""

    def __init__(self, recording: Recording, across: bool) -> None:
        self._spool = recording.spool
        self._size = recording.size
        self._across = across and recording.size > 1
        self._began = time.monotonic()
        self._cost_s = 0.0
        self._due = 1
        self._locals: Optional[Dict[str, Any]] = None
        self._multi_node = False
        self._training = recording.training

    def start(self) -> None:
        """The clock of the cost begins."""
        self._began = time.monotonic()

    @property
    def is_multi_node(self) -> bool:
        """Whether gradients were exchanged before the update."""
        return self._multi_node

    def local_gradients(self, targets: List[Any]) -> None:
        """After ``backward()``, before the exchange: this rank's own gradients and which are missing."""
        if not self._across:
            return
        for target in targets[:1]:
            named = sorted(target.namedparams(False))
            grads = [each.grad for _, each in named]
            there = [each for each in grads if each is not None]
            self._locals = {
                "squares": sum(sums.squares(there)) if there else 0.0,
                "sums": [None if each is None else float(each.sum(dtype="float64")) for each in grads],
                "sizes": [None if each is None else float(abs(each).sum(dtype="float64")) for each in grads],
                "none": [name for (name, _), grad in zip(named, grads) if grad is None],
            }

    def gradients(self, number: int, optimizer: Any, names: List[str], grads: List[Any], norms: List[float]) -> None:
        """After the exchange: the norms, with all their digits, and the sums where the sum itself is checked."""
        if self._size < 2:
            return
        if not self._multi_node and self._training.gradient_exchanges:
            self._multi_node = True
            self._spool.tell("exchange", {"n": number, "ranks": _world_ranks(self._training.exchanged_over)})
        content: Dict[str, Any] = {"n": number, "norms": [each.hex() for each in norms]}
        scale = getattr(optimizer, "_loss_scale", None)
        content["scale"] = scale
        if self._locals is not None:
            content["local"] = {key: _json(value) for key, value in self._locals.items()}
            content["sums"] = [None if each is None else _json(float(each.sum(dtype="float64"))) for each in grads]
            self._locals = None
        self._spool.tell("exchanged", content, detail=number > 100)

    def iteration(self, number: int, tables: Iterable[Any]) -> None:
        """Tell fingerprints of the parameters, where it is time."""
        if self._size < 2 or number < self._due:
            return
        began = time.monotonic()
        for table in tables:
            prints = {
                name: sums.fingerprint(each.array)
                for name, each in zip(table.names, table.parameters)
                if each.array is not None
            }
            self._spool.tell("fingerprints", {"n": number, "o": table.number, "parameters": prints})
        took = time.monotonic() - began
        self._cost_s += took
        self._due = number + self._pause(number, took)

    def stop(self) -> None:
        """Tell what it cost."""
        if self._training.model_parallel:
            self._spool.tell("model_parallel", {})
        if self._size > 1:
            wall = time.monotonic() - self._began
            self._spool.tell("agreement_cost", {"s": self._cost_s, "of": wall})

    def _pause(self, number: int, took_s: float) -> int:
        # Every rank has to choose the same iterations: a power of ten times the first, from its own cost, grows alike on
        # equal machines; what only one rank told is not compared.
        each = (time.monotonic() - self._began) / number
        every = _FIRST_EVERY
        while took_s > _SHARE * every * each:
            every *= 10
        return every - number % every


def _world_ranks(communicator: Any) -> Optional[List[int]]:
    """The ranks of an mpi4py communicator as COMM_WORLD counts them; ``None`` where that cannot be told."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or communicator is None:
        return None
    group, world = communicator.Get_group(), mpi.COMM_WORLD.Get_group()
    try:
        return [int(rank) for rank in mpi.Group.Translate_ranks(group, list(range(group.Get_size())), world)]
    finally:
        group.Free()
        world.Free()


def _json(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0.0 else str(value)
    if isinstance(value, list):
        return [_json(each) for each in value]
    return value
