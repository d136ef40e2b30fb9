"""CD947: resume without random state."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import argument, at, leaf_of, once_a_file, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD947", Severity.INFO, needs=(ScriptFile,), since="0.1")
def resume_without_random_state(snapshot: Snapshot) -> Iterator[Finding]:
    """Training is resumed, and the state of random numbers is not.

    Why it hurts: a snapshot holds the model, the optimizer and the iterators, not the state of numpy.random:
    the resumed run shuffles and drops out otherwise than one without a stop.

    How to mend it: seed from the iteration after load_npz, or save numpy.random.get_state() beside the
    snapshot.

    Source: chainer/training/trainer.py of Chainer 7.8.1, Trainer.serialize.
    """
    scripts = scripts_of(snapshot)
    for call in once_a_file(scripts.of("chainer", "load_npz")):
        target = argument(call, 1, "obj")
        trainer = target is not None and any(leaf_of(name) == "Trainer()" for name in target.names)
        if trainer and not scripts.mentions(call.path, "get_state", "set_state", "seed", "RandomState", "default_rng"):
            yield at(
                call,
                "the resumed run draws other random numbers than one that was never stopped",
                "Seed numpy.random anew after load_npz if runs have to be comparable.",
            )
