"""Simulated GPUs, seen by the real probe in the real shelter, judged by the real rules."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from chainerdoctor import snapshot as snapshots
from chainerdoctor.facts.mpi import LaunchedAs, RankOutcome
from chainerdoctor.facts.stack import EnvironmentVariable
from chainerdoctor.judging import judge
from chainerdoctor.rules import all_rules, selected
from chainerdoctor.simulate import environment
from chainerdoctor.snapshot import Sighting, Snapshot

ROOT = Path(__file__).resolve().parents[2]

SEE = """
import json, sys, time
from chainerdoctor.host import LiveHost
from chainerdoctor.launch.shelter import run_probes
from chainerdoctor.probes import all_probes
from chainerdoctor.snapshot import sighting_to_json
probes = [probe for probe in all_probes() if probe.name == "gpus"]
began_s = time.monotonic()
seen = [sighting_to_json(s) for batch in run_probes(probes, LiveHost(), "node1", 0, began_s + 60) for s in batch]
print(json.dumps({"took_s": time.monotonic() - began_s, "sightings": seen}))
"""


class Seen:
    """What was seen on one simulated machine, and how long the probe took."""

    def __init__(self, sightings, took_s):
        self.sightings = sightings
        self.took_s = took_s

    def plus(self, *facts, rank=None, node="node1"):
        """The same with more facts, for what the simulated libraries do not give."""
        more = [Sighting(node, rank, "test", 0.0, 0.0, fact) for fact in facts]
        return Seen([*self.sightings, *more], self.took_s)

    def ranks(self, count, variables=()):
        """The same with so many ranks on the node; ``variables`` are their CUDA_VISIBLE_DEVICES."""
        seen = self
        for rank in range(count):
            seen = seen.plus(LaunchedAs("Open MPI", rank, count, rank, count), rank=rank)
        for rank, value in enumerate(variables):
            seen = seen.plus(EnvironmentVariable("CUDA_VISIBLE_DEVICES", value), rank=rank)
        return seen

    def on(self, node):
        """The same, as if another node had told it."""
        return Seen([Sighting(node, s.rank, s.probe, s.at_s, s.took_s, s.fact) for s in self.sightings], self.took_s)

    def facts(self, kind):
        """Facts of a kind."""
        return [s.fact for s in self.sightings if type(s.fact) is kind]

    def findings(self):
        """code → where of each finding, for the rules of the doctor, GPU and fabric families."""
        verdicts = judge(Snapshot(self.sightings), selected(all_rules(), ("CD0", "CD2", "CD3"), ()))
        assert not [v for v in verdicts if v.status == "crashed"]
        return {v.code: [finding.where for finding in v.findings] for v in verdicts if v.findings}


@pytest.fixture
def see(tmp_path):
    """see(text of a scenario) -> Seen."""

    def look(text, start_s=None):
        path = tmp_path / "machine.scn"
        path.write_text(textwrap.dedent(text))
        shared = tmp_path / "shared"
        shared.mkdir(exist_ok=True)
        variables = environment(path, ("nvml",), shared=shared, start_s=start_s)
        python_path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        done = subprocess.run(
            [sys.executable, "-c", SEE],
            env={**os.environ, **variables, "PYTHONPATH": python_path},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        sightings = [snapshots.sighting_from_json(raw) for raw in told["sightings"]]
        return Seen(sightings, told["took_s"]).plus(RankOutcome(0, "complete", ""))

    return look
