"""CD925: eps zero in fp16."""

from __future__ import annotations

import ast
from typing import Dict, Iterator, Optional, Tuple

from chainerdoctor.facts.script import Operand, ScriptCall, ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import argument, at, leaf_of, scripts_of
from chainerdoctor.snapshot import Snapshot

#: Optimizers that compute in the parameter's own dtype: (place of eps among the arguments, its default).
OPTIMIZERS: Dict[str, Tuple[int, float]] = {"RMSprop": (2, 1e-8), "AdaGrad": (1, 1e-8), "SMORMS3": (1, 1e-16)}
#: Half of the smallest positive fp16 number, 2**-24: what is not larger rounds to 0.
ROUNDS_TO_ZERO = 2.0**-25


def eps_of(call: ScriptCall) -> Optional[float]:
    """The eps that an optimizer is made with, ``None`` if it cannot be told."""
    place, default = OPTIMIZERS[leaf_of(call.names[0])]
    given: Optional[Operand] = argument(call, place, "eps")
    if given is None:
        return None if call.open else default
    try:
        value = ast.literal_eval(given.literal) if given.literal is not None else None
    except ValueError:
        return None
    return float(value) if isinstance(value, (int, float)) else None


@rule("CD925", Severity.WARNING, needs=(ScriptFile,), since="0.1")
def eps_zero_in_fp16(snapshot: Snapshot) -> Iterator[Finding]:
    """An optimizer divides by a root plus an eps that fp16 cannot hold.

    Why it hurts: RMSprop refuses at the first update ("eps of RMSprop optimizer is too small for float16");
    AdaGrad and SMORMS3 divide zero gradients by zero, and the parameters turn NaN. (Adam computes in float32 since
    Chainer 6.)

    How to mend it: call `optimizer.use_fp32_update()`, or give eps=1e-4.

    Example:
        chainer.global_config.dtype = numpy.float16
        optimizer = chainer.optimizers.RMSprop()            # wrong: eps is 1e-8, which is 0 in fp16
        optimizer = chainer.optimizers.RMSprop(eps=1e-4)    # right

    Source: chainer/optimizers/rmsprop.py and ada_grad.py of Chainer 7.8.1; RMSprop's error reproduced there. Issue
    6299 of chainer/chainer.
    """
    scripts = scripts_of(snapshot)
    half = ("numpy.float16", "cupy.float16", "'float16'")
    for setting in scripts.settings:
        if not set(setting.targets) & {"chainer.global_config.dtype", "chainer.config.dtype"} or not set(half) & {
            *setting.value.names,
            setting.value.literal,
        }:
            continue
        if scripts.inside(scripts.methods("use_fp32_update"), setting.path):
            continue
        for call in scripts.inside(scripts.of("chainer", *OPTIMIZERS), setting.path):
            eps = eps_of(call)
            if eps is not None and 0 <= eps <= ROUNDS_TO_ZERO:
                yield at(
                    call,
                    f"eps={eps:g} of {leaf_of(call.names[0])} is 0 in fp16",
                    "Call optimizer.use_fp32_update(), or write eps=1e-4.",
                    Evidence("fp16", f"line {setting.line}"),
                )
