"""CD804: parameter without gradient."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts.gradients import ParameterGradient
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Sighting, Snapshot

#: Backward passes after which it is no accident.
_ENOUGH = 10


@rule("CD804", Severity.WARNING, needs=(ParameterGradient,), since="0.1")
def parameter_without_gradient(snapshot: Snapshot) -> Iterator[Finding]:
    """A parameter never got a gradient.

    Why it hurts: it stays what it was initialised to. As a rule a layer is not called, its result is not used, or the
    graph is cut before it (unchain_backward, .array, no_backprop_mode).

    How to mend it: use the layer in forward(), or, where it is meant to stay, say so with link.disable_update().
    """
    by_path: Dict[Tuple[int, str], List[Sighting[ParameterGradient]]] = {}
    for seen in snapshot.all(ParameterGradient):
        by_path.setdefault((seen.fact.optimizer, seen.fact.path), []).append(seen)
    # One that got a gradient on another rank is another finding (CD823).
    dead = [
        group
        for group in by_path.values()
        if all(seen.fact.seen >= _ENOUGH and seen.fact.without == seen.fact.seen for seen in group)
    ]
    if dead:
        paths = [group[0].fact.path for group in dead]
        names = ", ".join(paths[:8]) + (f" and {len(paths) - 8} more" if len(paths) > 8 else "")
        yield Finding(
            where=dead[0][0].where if len(dead[0]) == 1 else rank_list(sorted(seen.rank or 0 for seen in dead[0])),
            message=f"{len(dead)} parameter{'s' if len(dead) != 1 else ''} never got a gradient",
            remedy="Use the layer in forward(), or call link.disable_update() where it is meant to stay as it is.",
            evidence=(Evidence("parameters", names), Evidence("backward passes", str(dead[0][0].fact.seen))),
        )
