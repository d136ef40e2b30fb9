"""CD804: parameter without gradient."""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Tuple

from chainerdoctor.facts.gradients import ParameterGradient
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

#: Backward passes after which it is no accident.
_ENOUGH = 10


@rule("CD804", Severity.WARNING, needs=(ParameterGradient,), since="0.1")
def parameter_without_gradient(snapshot: Snapshot) -> Iterator[Finding]:
    """A parameter never got a gradient.

    Why it hurts: it stays what it was initialised to. As a rule a layer is not called, its result is not used, or the
    graph is cut before it (unchain_backward, .array, no_backprop_mode).

    How to mend it: use the layer in forward(), or, where it is meant to stay, say so with link.disable_update().
    """
    groups: Dict[Tuple[str, Optional[int]], List[ParameterGradient]] = {}
    for seen in snapshot.all(ParameterGradient):
        fact = seen.fact
        never = fact.seen >= _ENOUGH and fact.without == fact.seen
        groups.setdefault((seen.node, seen.rank), []).extend([fact] if never else [])
    for (node, rank), dead in groups.items():
        if dead:
            names = ", ".join(each.path for each in dead[:8]) + (f" and {len(dead) - 8} more" if len(dead) > 8 else "")
            yield Finding(
                where=f"{node}/rank {rank}",
                message=f"{len(dead)} parameter{'s' if len(dead) != 1 else ''} never got a gradient",
                remedy="Use the layer in forward(), or call link.disable_update() where it is meant to stay as it is.",
                evidence=(Evidence("parameters", names), Evidence("backward passes", str(dead[0].seen))),
            )
