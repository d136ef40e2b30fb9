"""What an optimizer is set to, read from the object; and the traps of its settings that only the object shows."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Set

from chainerdoctor.instrument import gradient_sums as sums
from chainerdoctor.instrument.spool import Spool
from chainerdoctor.instrument.training import Training

#: Hooks of Chainer that see gradients before they are divided by the loss scale.
_SCALED = frozenset({"GradientClipping", "GradientHardClipping", "GradientLARS", "GradientNoise", "Lasso"})


def hyperparameters(optimizer: Any) -> Dict[str, Any]:
    """Class, hyperparameters and hooks."""
    values = {
        name: float(value)
        for name, value in sorted(optimizer.hyperparam.get_dict().items())
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    return {"class": type(optimizer).__name__, "values": values, "hooks": _hooks(optimizer)}


def learning_rate(optimizer: Any) -> Optional[float]:
    """``lr`` or ``alpha``; ``None`` for an optimizer that has neither."""
    for name in ("lr", "alpha"):
        value = getattr(optimizer.hyperparam, name, None)
        if isinstance(value, (int, float)):
            return float(value)
    return None


def _hooks(optimizer: Any) -> List[str]:
    hookable = getattr(optimizer, "_hookable", None)
    found = [
        *getattr(hookable, "_pre_update_hooks", {}).values(),
        *getattr(hookable, "_post_update_hooks", {}).values(),
    ]
    return [type(hook).__name__ for hook in found]


class Told:
    """Tells each trap once."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._known: Dict[int, Dict[str, Any]] = {}
        self._updates = self._kept = 0
        #: Numbers of targets whose gradients were cleared since their last update, and of those that had one.
        self._cleared: Set[int] = set()
        self._updated: Set[int] = set()

    def optimizer(self, optimizer: Any, number: int, ranks: int) -> None:
        """Settings of this optimizer that change only seldom; told when they do."""
        half = any(each.is_initialized and str(each.dtype) == "float16" for each in optimizer.target.params())
        scale = getattr(optimizer, "_loss_scale", None)
        dynamic = bool(getattr(optimizer, "_loss_scaling_is_dynamic", False))
        content = {
            "o": number,
            "class": type(optimizer).__name__,
            "half": half,
            "scaling": "dynamic" if dynamic else "none" if scale is None else "static",
            "static_scale": scale if not dynamic else None,
            # Chainer knows no such attribute: setting it does nothing.
            "stray_loss_scale": _plain(vars(optimizer).get("loss_scale")),
            "scaled_hooks": [name for name in _hooks(optimizer) if name in _SCALED],
            "fp32_wish": bool(getattr(optimizer, "_use_fp32_update", False)),
            "fp32_rules": any(
                bool(getattr(getattr(each, "update_rule", None), "_use_fp32_update", False))
                for each in optimizer.target.params()
            ),
            "eps_lost": _eps_lost(optimizer, half),
            "ranks": ranks,
        }
        if self._known.get(number) != content:
            self._known[number] = content
            self._spool.tell("optimizer", {**content, "settings": hyperparameters(optimizer)})

    def backward_begins(self, training: Training) -> None:
        """Before a backward pass: gradients that are not there were cleared since the last update."""
        for number, target in enumerate(training.targets):
            if number not in self._cleared and _is_clear(target):
                self._cleared.add(number)

    def update_begins(self, training: Training, optimizer: Any) -> None:
        """Gradients are complete: were they cleared in between?"""
        number = next((n for n, each in enumerate(training.targets) if each is optimizer.target), -1)
        if number in self._updated:
            self._updates += 1
            if number not in self._cleared:
                self._kept += 1
                if self._kept in (1, 10, 100, 1000):
                    path = next((path for path, each in optimizer.target.namedparams(False)), "")
                    told = {"path": path, "times": self._kept, "of": self._updates}
                    self._spool.tell("kept_gradients", told, now=True)
        self._updated.add(number)
        self._cleared.discard(number)


def _is_clear(target: Any) -> bool:
    """Whether the first gradients of a link are ``None`` or zero (a few tell it; zeros may be a dead layer's)."""
    for count, parameter in enumerate(target.params(False)):
        gradient = parameter.grad
        if gradient is not None and gradient.size and sums.squares([sums.sample(gradient)])[0] != 0.0:
            return False
        if count == 3:
            break
    return True


def _eps_lost(optimizer: Any, half: bool) -> Optional[float]:
    """An ``eps`` that float16 makes zero, where the update is computed in float16 (a master copy keeps it)."""
    eps = getattr(optimizer.hyperparam, "eps", None)
    if not half or not isinstance(eps, float) or eps <= 0 or type(optimizer).__name__ not in _EPS_IN_HALF:
        return None
    rules = [getattr(each, "update_rule", None) for each in optimizer.target.params()]
    if any(getattr(rule, "_use_fp32_update", False) for rule in rules):
        return None
    # Half of the smallest float16 number is rounded to zero (IEEE 754, round to nearest even).
    return eps if eps <= 2.0**-25 else None


#: Optimizers of Chainer 7.8.1 that add eps in the parameter's own type; Adam computes in float32 (tried, NumPy).
_EPS_IN_HALF = frozenset({"AdaGrad", "RMSprop", "SMORMS3", "RMSpropGraves", "AdaDelta"})


def _plain(value: Any) -> Any:
    return (
        value
        if isinstance(value, (int, float)) and not isinstance(value, bool)
        else None
        if value is None
        else str(value)
    )
