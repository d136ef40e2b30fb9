"""CD513: protobuf breaks caffe."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import groups, places
from chainerdoctor.facts.stack import Distribution, PackageSurvey
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stack.working_set import under_compat, version_tuple
from chainerdoctor.snapshot import Snapshot


@rule("CD513", Severity.INFO, needs=(PackageSurvey,), since="0.1")
def protobuf_breaks_caffe(snapshot: Snapshot) -> Iterator[Finding]:
    """protobuf 4 or newer is installed beside Chainer.

    Why it hurts: chainer.links.caffe cannot be imported ("Descriptors cannot be created directly"). Everything else
    works.

    How to mend it: pip install "protobuf<4" if Caffe models are loaded, or leave it.
    """
    with_chainer = {(s.node, s.rank) for s in snapshot.all(Distribution) if s.fact.name == "chainer"}
    with_chainer -= under_compat(snapshot)  # which mends it
    hit = [
        s
        for s in snapshot.all(Distribution)
        if s.fact.name == "protobuf" and version_tuple(s.fact.version) >= (4,) and (s.node, s.rank) in with_chainer
    ]
    for version, sightings in groups(hit, lambda fact: fact.version).items():
        yield Finding(
            where=places(sightings),
            message="loading Caffe models will fail (chainer.links.caffe)",
            remedy='Run pip install "protobuf<4" if you load Caffe models; otherwise leave it.',
            evidence=(Evidence("protobuf", version, "below 4"),),
        )
