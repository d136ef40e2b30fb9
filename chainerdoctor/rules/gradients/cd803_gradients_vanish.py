"""CD803: gradients vanish."""

from __future__ import annotations

import math
from typing import Dict, Iterator, List, Optional, Tuple

from chainerdoctor.facts.gradients import ParameterGradient, size_of
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

#: A weight whose gradient is so many times smaller, element for element, than the largest among the weights.
_TIMES = 1e-5


@rule("CD803", Severity.WARNING, needs=(ParameterGradient,), since="0.1")
def gradients_vanish(snapshot: Snapshot) -> Iterator[Finding]:
    """Gradients of some layers are many orders of magnitude smaller than those of others.

    Why it hurts: those layers, as a rule the first ones, hardly learn, while the loss falls a little thanks to the last.

    How to mend it: ReLU in place of sigmoid or tanh, He initialisation (chainer.initializers.HeNormal()), batch
    normalisation or residual connections; for recurrent networks LSTM or GRU.
    """
    groups: Dict[Tuple[str, Optional[int], int], List[ParameterGradient]] = {}
    for seen in snapshot.all(ParameterGradient):
        # Biases are no measure: one before a batch normalisation has no gradient by construction.
        if len(seen.fact.shape) >= 2 and seen.fact.norm_median > 0:
            groups.setdefault((seen.node, seen.rank, seen.fact.optimizer), []).append(seen.fact)
    for (node, rank, _), parameters in groups.items():
        sizes = {each.path: each.norm_median / math.sqrt(size_of(each.shape)) for each in parameters}
        most = max(sizes.values())
        small = sorted((size, path) for path, size in sizes.items() if size < most * _TIMES)
        if small:
            top = max(sizes, key=lambda path: sizes[path])
            yield Finding(
                where=f"{node}/rank {rank}",
                message=f"gradients vanish in {len(small)} of {len(parameters)} weights",
                remedy="Use ReLU with He initialisation, normalisation or residual connections between these layers.",
                evidence=(
                    *(Evidence(path, f"{size:.2g} an element") for size, path in small[:5]),
                    Evidence(top, f"{most:.2g} an element", f"at most {1 / _TIMES:g} times the smallest"),
                ),
            )
