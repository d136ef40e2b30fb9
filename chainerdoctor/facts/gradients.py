"""What was seen of gradients, losses and loss scales while a program trained. Norms are of unscaled gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Optional, Tuple

from chainerdoctor.facts import Fact


@dataclass(frozen=True)
class GradientSeries(Fact):
    """One optimizer on one rank over the iterations ``steps`` (thinned evenly in long runs): the loss (NaN where there
    was none), the norm of all gradients together, the learning rate and the loss scale (1: none). ``skips`` are updates
    that dynamic loss scaling left out."""

    optimizer: int
    optimizer_class: str
    steps: Tuple[int, ...]
    loss: Tuple[float, ...]
    norm: Tuple[float, ...]
    rate: Tuple[float, ...]
    scale: Tuple[float, ...]
    batch: Optional[int]
    skips: int
    ranks: int


@dataclass(frozen=True)
class ParameterGradient(Fact):
    """The gradient of one parameter. ``norm_first``, ``norm_median`` and ``norm_last`` are Euclidean norms; ``zeros`` and
    ``subnormal`` the median shares of elements that are zero, or non-zero below the smallest normal float16, estimated
    from at most 4,096 elements; ``peak`` the largest magnitude seen in them; ``update_ratio`` the median of
    ‖change of the parameter‖/‖parameter‖ (``None``: never measured); ``without`` of ``seen`` backward passes gave it no
    gradient at all."""

    optimizer: int
    path: str
    dtype: str
    shape: Tuple[int, ...]
    norm_first: float
    norm_median: float
    norm_last: float
    zeros: float
    subnormal: float
    peak: float
    update_ratio: Optional[float]
    without: int
    seen: int


@dataclass(frozen=True)
class ArrayRange(Fact):
    """An array that a culprit met: its name, dtype and shape, the range of its finite elements, and what else it holds."""

    name: str
    dtype: str
    shape: Tuple[int, ...]
    least: Optional[float]
    greatest: Optional[float]
    nan: int
    infinite: int
    zeros: int


@dataclass(frozen=True)
class NumberBroke(Fact):
    """The first iteration with a loss or gradients that are not finite, before its update.

    ``stage`` names where the replay found the first bad operation: ``input``, ``parameter``, ``forward``, ``backward``,
    ``accumulation``, or "" where it found none; ``problem`` says why there was no replay, ``same`` whether the replayed
    loss had the same bits. ``exchanged`` says that gradients had gone through an all-reduce. ``trend`` are (iteration,
    norm) before it. ``float32_survives`` and ``scale_survives`` (a loss scale; 0: none) are ``None`` where not tried."""

    iteration: int
    in_loss: bool
    parameters: Tuple[str, ...]
    count: int
    scale: Optional[float]
    exchanged: bool
    trend: Tuple[Tuple[int, float], ...]
    stage: str
    label: str
    path: str
    place: str
    inner: str
    arrays: Tuple[ArrayRange, ...]
    results: Tuple[ArrayRange, ...]
    float32_survives: Optional[bool]
    scale_survives: Optional[float]
    same: bool
    problem: str
    repro: str


@dataclass(frozen=True)
class OptimizerSettings(Fact):
    """How an optimizer is set. ``half``: some of its parameters are float16. ``scaling`` is ``none``, ``static`` or
    ``dynamic``. ``stray_loss_scale`` is an attribute ``loss_scale`` that Chainer does not read. ``scaled_hooks`` are hooks
    that see scaled gradients. ``fp32_wish`` and ``fp32_rules``: what ``use_fp32_update`` was given last and what the
    update rules do. ``eps_lost`` is an eps that float16 makes zero."""

    optimizer: int
    optimizer_class: str
    half: bool
    scaling: str
    static_scale: Optional[float]
    stray_loss_scale: Optional[str]
    scaled_hooks: Tuple[str, ...]
    fp32_wish: bool
    fp32_rules: bool
    eps_lost: Optional[float]
    values: Dict[str, float]


@dataclass(frozen=True)
class GradientsKept(Fact):
    """How often gradients were still there when the first backward pass after an update began (``times`` of ``of``), and
    a parameter of which that was true. ``times`` is 0 where they were always cleared."""

    path: str
    times: int
    of: int


@dataclass(frozen=True)
class RankComparison(Fact):
    """One thing that ranks have to agree on, compared over the captures: ``what`` is ``parameters``, ``gradients``
    (after the all-reduce), ``mask`` (parameters without gradient), ``scale``, ``initialised``, ``iterations``, ``sum``
    (the all-reduce checked by the sums of its inputs) or ``local norm``.

    ``compared`` iterations were compared; ``first`` is the first at which ranks differ (``None``: never), ``odd`` the
    ranks in the minority there, ``paths`` the parameters concerned, ``detail`` what was seen. ``exchanged`` says whether
    gradients were exchanged at all."""

    what: str
    compared: int
    first: Optional[int]
    odd: Tuple[int, ...]
    paths: Tuple[str, ...]
    detail: str
    exchanged: bool


def size_of(shape: Tuple[int, ...]) -> int:
    """Number of elements of an array of this shape."""
    size = 1
    for each in shape:
        size *= each
    return size
