"""CD801: number not finite."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts.gradients import ArrayRange, GradientSeries, NumberBroke
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

_STAGES = {
    "input": "the data that came in holds them already",
    "parameter": "a parameter held them before the iteration began",
    "accumulation": "the sum of the gradients that reach one variable is too large",
}


@rule("CD801", Severity.ERROR, needs=(GradientSeries,), since="0.1")
def number_not_finite(snapshot: Snapshot) -> Iterator[Finding]:
    """The loss or a gradient became NaN or infinite.

    Why it hurts: one update with it makes every parameter NaN, and after an all-reduce those of all ranks; what comes
    after that iteration is lost.

    How to mend it: look at the operation that is named, its inputs' ranges and the line of the program. A logarithm,
    division, square root or exponential wants its argument kept away from where it is not finite (clip, add an eps, use
    the function that fuses both, such as softmax_cross_entropy or log_softmax). float16 ends at 65504: a sum or a square
    in it wants float32, or a smaller loss scale.
    """
    broken = snapshot.all(NumberBroke)
    culprits = [seen for seen in broken if seen.fact.stage]
    first = min((seen.fact.iteration for seen in culprits), default=0)
    # What came through the all-reduce is told once, beside the rank that it came from.
    victims = [
        seen
        for seen in broken
        if culprits and not seen.fact.stage and seen.fact.exchanged and seen.fact.iteration >= first
    ]
    for seen in broken:
        if seen in victims:
            continue
        broke, evidence = seen.fact, list(_evidence(seen.fact))
        if victims and broke.stage:
            ranks = rank_list(sorted(each.rank or 0 for each in victims))
            evidence.append(Evidence("went through the all-reduce to", ranks))
        yield Finding(where=seen.where, message=_message(broke), remedy=_remedy(broke), evidence=tuple(evidence))


def _message(broke: NumberBroke) -> str:
    what = "the loss" if broke.in_loss else f"the gradient of {broke.count} parameter{'s' if broke.count != 1 else ''}"
    text = f"{what} is not finite at iteration {broke.iteration}"
    if broke.stage in _STAGES:
        return f"{text}: {_STAGES[broke.stage]}"
    if broke.stage:
        passes = "" if broke.stage == "forward" else "the backward pass of "
        return f"{text}: {passes}{broke.label}{_in(broke.path)} made it"
    if broke.exchanged and not broke.in_loss and broke.same:
        return f"{text}, though this rank's own backward pass is finite: it came through the all-reduce"
    return text


def _in(path: str) -> str:
    return f" in {path}" if path not in ("", "/") else ""


def _remedy(broke: NumberBroke) -> str:
    if broke.stage == "input":
        return "Look at the data of this batch: filter or repair the examples that hold NaN or infinities."
    if broke.stage == "parameter":
        return "Look at the update before: a learning rate or hook (clipping zero gradients) made the parameter non-finite."
    if broke.scale_survives:
        return f"Use a loss scale of {broke.scale_survives:g} or less, or optimizer.loss_scaling() which finds one."
    if broke.float32_survives:
        return "Compute this operation in float32: F.cast(x, 'float32') before it, and back to float16 after it."
    if not broke.stage and broke.exchanged and broke.same:
        return "Look at the same finding on the other ranks: one of them names the operation."
    if not broke.stage:
        return "Run again with fixed seeds and a single data worker, so that the iteration can be run a second time."
    return "Keep the operation's inputs inside of where it is finite (clip them, or add an eps), at the line named."


def _evidence(broke: NumberBroke) -> Iterator[Evidence]:
    if broke.place:
        yield Evidence("line", broke.place)
    if broke.inner:
        yield Evidence("inside of it", broke.inner)
    for each in (*broke.arrays[:4], *broke.results[:2]):
        yield Evidence(each.name, _range(each))
    if broke.parameters:
        more = f" and {broke.count - 5} more" if broke.count > 5 else ""
        yield Evidence("gradients concerned", ", ".join(broke.parameters[:5]) + more)
    if broke.scale is not None:
        yield Evidence("loss scale", f"{broke.scale:g}")
    if broke.scale_survives is not None:
        yield Evidence(
            "finite with a loss scale of", f"{broke.scale_survives:g}" if broke.scale_survives else "none down to 1"
        )
    if broke.float32_survives is not None:
        yield Evidence("the same in float32", "stays finite" if broke.float32_survives else "is not finite either")
    if broke.trend:
        yield Evidence("gradient norms before", ", ".join(f"{norm:.3g}" for _, norm in broke.trend[-8:]))
    if broke.problem:
        yield Evidence("the iteration could not be run again", broke.problem)
    elif not broke.same:
        yield Evidence("run again", "the loss was another one: something in the iteration is not deterministic")
    if broke.repro:
        yield Evidence("script that fails the same way", broke.repro)


def _range(each: ArrayRange) -> str:
    shape = "x".join(map(str, each.shape)) or "scalar"
    words = [f"{each.dtype} {shape}"]
    if each.least is not None and each.greatest is not None:
        words.append(f"from {each.least:.4g} to {each.greatest:.4g}")
    for count, name in ((each.nan, "NaN"), (each.infinite, "infinite"), (each.zeros, "zero")):
        if count:
            words.append(f"{count} {name}")
    return ", ".join(words)
