"""Times of a training with and without an instrument, turn by turn in one run."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

TRAINING = Path(__file__).resolve().parent / "training.py"
ROUNDS = 9
#: what → (iterations of a run, ranks)
WORK: Mapping[str, Tuple[int, int]] = {"mlp": (300, 1), "cnn": (40, 1), "ranks": (300, 2)}


def iteration_s(what: str, head: List[str], environment: Optional[Dict[str, str]] = None) -> float:
    """Median seconds of an iteration of ``training.py``; ``head`` are the words before it."""
    iterations, ranks = WORK[what]
    words = [*head, str(TRAINING), what, str(iterations)]
    if ranks > 1:
        words = [str(Path(sys.executable).parent / "mpiexec"), "-n", str(ranks), *words]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **(environment or {})})
    if done.returncode:
        raise RuntimeError(done.stderr)
    return float(done.stdout.split()[-1])


def watched(instruments: Dict[str, Any], folder: str) -> List[str]:
    """The words that run a program under these instruments, recording into a new folder below ``folder``."""
    run = tempfile.mkdtemp(dir=folder)
    content = {"kind": "chainerdoctor run", "command": "bench", "instruments": instruments}
    Path(run, "run.json").write_text(json.dumps(content))
    return [sys.executable, "-m", "chainerdoctor.instrument", "--run", run]


def overhead(name: str, what: str, instruments: Dict[str, Any], bar: str, rounds: int = ROUNDS) -> Dict[str, Any]:
    """One figure: iterations under the instruments against plain ones, in pairs whose order alternates."""
    ratios, ours, peers = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(rounds):
            pair = {}
            for which in ("ours", "peer") if turn % 2 else ("peer", "ours"):
                head = watched(instruments, folder) if which == "ours" else [sys.executable]
                pair[which] = iteration_s(what, head)
            ours.append(pair["ours"])
            peers.append(pair["peer"])
            ratios.append(pair["ours"] / pair["peer"])
    return {name: figure(ours, peers, ratios, bar)}


def figure(ours: List[float], peers: List[float], ratios: List[float], bar: str) -> Dict[str, Any]:
    """A row of the bench's table: medians, and the ratio with its spread (quartiles)."""
    low, _, high = statistics.quantiles(ratios, n=4)
    return {
        "ours_s": statistics.median(ours),
        "peer_s": statistics.median(peers),
        "ratio": statistics.median(ratios),
        "ratio_min": low,
        "ratio_max": high,
        "bar": bar,
    }
