"""CD814: fp32 update against the wish."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.gradients import OptimizerSettings
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD814", Severity.WARNING, needs=(OptimizerSettings,), since="0.1")
def fp32_update_against_the_wish(snapshot: Snapshot) -> Iterator[Finding]:
    """``optimizer.use_fp32_update(False)`` was called, which switches the float32 update on.

    Why it hurts: every float16 parameter has a float32 copy, which costs memory and changes results, against the wish.

    How to mend it: leave the call out.

    Source: Optimizer.use_fp32_update of Chainer 7.8.1 calls the rules' method whatever its flag is (seen running).
    """
    for seen in snapshot.all(OptimizerSettings):
        settings = seen.fact
        if settings.fp32_rules and not settings.fp32_wish:
            yield Finding(
                where=seen.where,
                message="use_fp32_update(False) has switched the float32 update on",
                remedy="Leave the call out: without it updates are computed in the parameters' own type.",
                evidence=(
                    Evidence("asked for", "no float32 update"),
                    Evidence("update rules", "keep a float32 copy of every parameter"),
                ),
            )
