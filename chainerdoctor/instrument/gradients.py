"""Watches gradients: norms of every parameter each iteration, and the exact culprit once a number is not finite.

On the CPU a norm is a dot product. On a GPU it is one reduction kernel a parameter and one small copy to the host each
iteration, before the update: that wait is what stopping before the damage costs.
"""

from __future__ import annotations

import sys
import time
from array import array
from types import ModuleType
from typing import Any, Dict, List, Mapping, Optional, Set, Tuple

from chainerdoctor.instrument import gradient_sums as sums
from chainerdoctor.instrument.agreement import Agreement
from chainerdoctor.instrument.functions import Functions
from chainerdoctor.instrument.imports import when_imported
from chainerdoctor.instrument.optimizers import Told, hyperparameters, learning_rate
from chainerdoctor.instrument.recording import Recording
from chainerdoctor.instrument.replay import Culprit, Loss, Replayed, loss_of, replay
from chainerdoctor.instrument.spool import Stride
from chainerdoctor.instrument.training import StopTraining

#: Shares and update ratios are looked at in the first iterations and then in each so-manieth.
_SAMPLE_EVERY = 20
_SAMPLED_AT_FIRST = 3
#: Settings of optimizers and the names of their parameters are looked at as often as this, and in the first iterations.
_LOOK_EVERY = 20
_LOOKED_AT_FIRST = 5
#: Norms of the last iterations, told with a culprit.
_TREND = 10


def instrument(recording: Recording, options: Mapping[str, Any]) -> Gradients:
    """``options``: ``stop_on`` (``error`` or ``never``), ``every`` (iterations), ``across_ranks``, ``repro`` (folder)."""
    return Gradients(recording, options)


class _Table:
    """One optimizer's parameters, in the order of their paths, and what was seen of them."""

    def __init__(self, number: int, parameters: List[Tuple[str, Any]]) -> None:
        self.number = number
        self.names = [path for path, _ in parameters]
        self.parameters = [each for _, each in parameters]
        self.initialised = [each.is_initialized for each in self.parameters]
        self.all_initialised = all(self.initialised)
        self.without_gradient = [0] * len(parameters)
        self.seen = 0
        self.samples: Optional[List[Any]] = None


class Gradients:
    """The instrument of ``check-gradients``."""

    def __init__(self, recording: Recording, options: Mapping[str, Any]) -> None:
        self._recording = recording
        self._spool = recording.spool
        self._training = recording.training
        self._stop_on_error = options.get("stop_on", "error") == "error"
        self._every = max(1, int(options.get("every", 1)))
        self._repro: Optional[str] = options.get("repro")
        self._functions = Functions(recording.training)
        self._agreement = Agreement(recording, bool(options.get("across_ranks", False)))
        self._told = Told(recording.spool)
        self._losses: List[Loss] = []
        self._tables: Dict[int, _Table] = {}
        self._last_number = 0
        self._strides: Dict[int, Stride] = {}
        self._rows = array("d")
        self._rows_since = time.monotonic()
        self._trend: List[Tuple[int, float]] = []
        self._broken = 0
        self._skips = 0
        self._none_before: Set[int] = set()
        self._chainer: Any = None

    def start(self) -> None:
        """Follow the training once Chainer is there."""
        training = self._training
        when_imported("chainer", self._hook)
        training.on_backward.append(self._backward_begins)
        training.on_backward_done.append(self._backward_done)
        training.on_gradients.append(self._gradients_are_there)
        training.on_updated.append(self._updated)
        training.on_iteration.append(self._iteration)
        self._agreement.start()

    def stop(self) -> None:
        """Write what waits."""
        self._write_rows()
        for table in self._tables.values():
            self._tell_missing(table)
        self._agreement.stop()

    def _hook(self, chainer: ModuleType) -> None:
        from chainerdoctor.instrument.chainer_hooks import register_in_this_thread

        self._chainer = chainer
        try:
            self._functions.hook(chainer)
            register_in_this_thread(self._training, chainer)
        except Exception as error:
            self._training.failed("the hook on functions", error)

    # One iteration, in the order of its events.

    def _backward_begins(self, variable: Any, scale: Optional[float]) -> None:
        self._told.backward_begins(self._training)
        self._losses.append(loss_of(variable, scale))

    def _backward_done(self) -> None:
        self._none_before = {
            id(each) for target in self._training.targets for each in target.params(False) if each.grad is None
        }
        self._agreement.local_gradients(self._training.targets)

    def _gradients_are_there(self, optimizer: Any) -> None:
        losses, self._losses = self._losses, []
        self._told.update_begins(self._training, optimizer)
        number = self._training.completed + 1
        if number % self._every and number > self._every:
            self._functions.forget()
            return
        table = self._table(optimizer)
        grads = [each.grad for each in table.parameters]
        live = [at for at, each in enumerate(grads) if each is not None and _is_updated(table.parameters[at])]
        values = [loss.variable.array for loss in losses]
        squares = sums.squares([grads[at] for at in live] + [each for each in values if each.dtype.kind == "f"])
        scale = float(getattr(optimizer, "_loss_scale", None) or 1.0)
        norms = [0.0] * len(grads)
        for at, square in zip(live, squares):
            norms[at] = square**0.5 / scale
        bad = [at for at in live if norms[at] - norms[at] != 0.0]
        total = sum(norm * norm for norm in norms) ** 0.5
        loss = float(sum(float(each) for each in values)) if all(each.size == 1 for each in values) else float("nan")
        loss_is_bad = any(sums.nonfinite(each) for each in values)
        self._tell_step(optimizer, table, number, loss if values else None, total, scale)
        self._keep_row(table, number, norms)
        self._count_missing(table)
        dynamic = bool(getattr(optimizer, "_loss_scaling_is_dynamic", False))
        if (bad or loss_is_bad) and not (dynamic and not loss_is_bad):
            self._breaks(table, number, bad, loss_is_bad, losses, optimizer)
        else:
            self._skips += bool(bad)  # dynamic loss scaling leaves this update out
            if not bad:
                self._trend = [*self._trend[-_TREND:], (number, total)]
        if self._is_sampled(table):
            self._sample(table, number, grads, live, scale)
        self._agreement.gradients(number, optimizer, table.names, grads, norms)
        self._functions.forget()

    def _updated(self, optimizer: Any) -> None:
        actual = getattr(optimizer, "actual_optimizer", optimizer)
        table = self._tables.get(id(actual))
        if table is not None and table.samples is not None:
            before, table.samples = table.samples, None
            ratios = [
                sums.ratio(old, sums.sample(each.array)) if old is not None and each.array is not None else 0.0
                for old, each in zip(before, table.parameters)
            ]
            self._spool.tell("ratios", {"o": table.number, "n": self._training.completed + 1, "r": _round(ratios)})

    def _iteration(self, number: int) -> None:
        self._agreement.iteration(number, self._tables.values())
        if time.monotonic() - self._rows_since > 0.5:
            self._write_rows()

    # What is told.

    def _table(self, optimizer: Any) -> _Table:
        """The optimizer's parameters; told anew when they change."""
        known = self._tables.get(id(optimizer))
        if known is not None and not self._looks(known) and known.all_initialised:
            return known
        parameters = sorted(optimizer.target.namedparams())
        if (
            known is not None
            and known.names == [path for path, _ in parameters]
            and known.initialised == [each.is_initialized for _, each in parameters]
        ):
            return known
        if known is not None:
            self._tell_missing(known)
        table = self._tables[id(optimizer)] = _Table(self._last_number, parameters)
        self._last_number += 1
        self._strides[table.number] = Stride()
        self._spool.tell(
            "parameters",
            {
                "o": table.number,
                "n": self._training.completed + 1,
                "names": table.names,
                "shapes": [list(each.shape or ()) if each.is_initialized else None for each in table.parameters],
                "dtypes": [str(each.dtype) if each.is_initialized else "" for each in table.parameters],
                "optimizer": hyperparameters(optimizer),
            },
        )
        return table

    @staticmethod
    def _looks(table: _Table) -> bool:
        return table.seen < _LOOKED_AT_FIRST or table.seen % _LOOK_EVERY == 0

    def _tell_step(
        self, optimizer: Any, table: _Table, number: int, loss: Optional[float], total: float, scale: float
    ) -> None:
        first = next((each for each in self._functions.arguments if getattr(each, "shape", None)), None)
        if self._looks(table):
            self._told.optimizer(optimizer, table.number, self._recording.size)
        if not self._strides[table.number].keep():
            return
        self._spool.tell(
            "step",
            {
                "o": table.number,
                "n": number,
                "loss": None if loss is None else _number(loss),
                "norm": _number(total),
                "lr": learning_rate(optimizer),
                "scale": scale,
                "batch": int(first.shape[0]) if first is not None else None,
                "skips": self._skips,
            },
        )

    def _keep_row(self, table: _Table, number: int, norms: List[float]) -> None:
        if self._strides[table.number].every == 1 or number % self._strides[table.number].every == 0:
            self._rows.extend((float(table.number), float(number), float(len(norms))))
            self._rows.extend(norms)

    def _write_rows(self) -> None:
        self._rows_since = time.monotonic()
        if self._rows:
            data = self._rows.tobytes() if sys.byteorder == "little" else self._swapped()
            self._spool.tell_packed("norms", data)
            self._rows = array("d")

    def _swapped(self) -> bytes:
        turned = array("d", self._rows)
        turned.byteswap()
        return turned.tobytes()

    def _count_missing(self, table: _Table) -> None:
        """Count the parameters to which the backward pass gave nothing (before zeros were put in their place)."""
        table.seen += 1
        if self._none_before:
            for at, each in enumerate(table.parameters):
                table.without_gradient[at] += id(each) in self._none_before

    def _tell_missing(self, table: _Table) -> None:
        self._spool.tell("missing", {"o": table.number, "seen": table.seen, "none": table.without_gradient})

    def _is_sampled(self, table: _Table) -> bool:
        return table.seen <= _SAMPLED_AT_FIRST or table.seen % _SAMPLE_EVERY == 0

    def _sample(self, table: _Table, number: int, grads: List[Any], live: List[int], scale: float) -> None:
        zeros, tiny, peak = [0.0] * len(grads), [0.0] * len(grads), [0.0] * len(grads)
        for at in live:
            zeros[at], tiny[at], peak[at] = sums.shares(sums.sample(grads[at]))
        told = {"zeros": _round(zeros), "tiny": _round(tiny), "peak": _round(peak), "scale": scale}
        self._spool.tell("shares", {"o": table.number, "n": number, **told})
        table.samples = [
            sums.sample(each.array) if at in set(live) and each.array is not None else None
            for at, each in enumerate(table.parameters)
        ]

    # Once something breaks.

    def _breaks(
        self, table: _Table, number: int, bad: List[int], loss_is_bad: bool, losses: List[Loss], optimizer: Any
    ) -> None:
        self._broken += 1
        if self._broken > 3:  # without --stop-on error everything is NaN from here on
            return
        found = replay(losses, self._functions, self._chainer)
        content = {
            "n": number,
            "o": table.number,
            "loss": loss_is_bad,
            "parameters": [table.names[at] for at in bad][:50],
            "count": len(bad),
            "scale": getattr(optimizer, "_loss_scale", None),
            "multi_node": self._agreement.is_multi_node,
            "trend": self._trend,
            "replayed": _told_replay(found),
        }
        if found.culprit is not None:
            content["culprit"] = _told_culprit(found.culprit)
            if self._repro is not None:
                content["repro"] = self._write_repro(found.culprit)
        self._spool.tell("broken", content, now=True)
        if self._stop_on_error:
            self._write_rows()
            raise StopTraining

    def _write_repro(self, culprit: Culprit) -> str:
        from chainerdoctor.instrument.repro import write_repro

        try:
            return write_repro(str(self._repro), self._recording.rank, culprit)
        except Exception as error:
            return f"not written: {type(error).__name__}: {error}"


def _is_updated(parameter: Any) -> bool:
    rule = getattr(parameter, "update_rule", None)
    return rule is not None and bool(rule.enabled)


def _told_replay(found: Replayed) -> Dict[str, Any]:
    return {"same": found.same, "problem": found.problem, "functions": found.functions}


def _told_culprit(culprit: Culprit) -> Dict[str, Any]:
    names = ("stage", "label", "path", "place", "inner", "arrays", "results", "float32_survives", "scale_survives")
    return {name: getattr(culprit, name) for name in names}


def _number(value: float) -> Any:
    """JSON has no NaN or infinity."""
    return value if value - value == 0.0 else str(value)


def _round(values: List[float]) -> List[Any]:
    return [_number(float(f"{value:.6g}")) for value in values]
