"""allreduce-bench's loop against a loop in C, alternating in the same process, on the same MPI and thread level."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict

ROOT = Path(__file__).resolve().parent.parent.parent

LOOP = r"""
#include <mpi.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
int loop(void *given, void *taken, int count, int calls, double *seconds)
{
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < calls; i++) {
        double began = now();
        int code = MPI_Allreduce(given, taken, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        seconds[i] = now() - began;
        if (code) return code;
    }
    return 0;
}
"""

RANK = r"""
import ctypes, json, statistics, sys
import mpi4py; mpi4py.rc.initialize = False
from mpi4py import MPI
MPI.Init_thread(MPI.THREAD_MULTIPLE)
import numpy
from chainerdoctor.workloads.allreduce.backends import MpiBackend
world = MPI.COMM_WORLD
c = ctypes.CDLL(sys.argv[1])
backend = MpiBackend(MPI, world, "float32")
for size in (8, 65536, 4 * 2**20, 64 * 2**20):
    count = size // 4
    mine = numpy.ones(count, numpy.float32)
    batch, _, _ = backend.prepare(mine, False)
    given, taken = mine.copy(), numpy.zeros_like(mine)
    calls = {8: 2000, 65536: 400, 4 * 2**20: 15}.get(size, 3)
    seconds = (ctypes.c_double * calls)()
    ratios, ours, peers = [], [], []
    for turn in range(14):
        def by_c():
            c.loop(ctypes.c_void_p(given.ctypes.data), ctypes.c_void_p(taken.ctypes.data), count, calls, seconds)
            return statistics.median(seconds)
        if turn % 2:
            peer, own = by_c(), statistics.median(batch(calls))
        else:
            own, peer = statistics.median(batch(calls)), by_c()
        if turn > 1:
            ratios.append(own / peer); ours.append(own); peers.append(peer)
    if world.Get_rank() == 0:
        print(json.dumps([size, statistics.median(ours), statistics.median(peers), statistics.median(ratios), min(ratios), max(ratios)]), flush=True)
MPI.Finalize()
"""


def measure() -> Dict[str, Any]:
    folder = os.path.dirname(sys.executable)
    compiler = shutil.which("mpicc", path=folder) or shutil.which("mpicc")
    if compiler is None or shutil.which("gcc") is None:
        print("bench_allreduce: no mpicc or gcc, so the loop in C cannot be built")
        return {}
    with tempfile.TemporaryDirectory() as name:
        source, library, rank = (Path(name) / each for each in ("loop.c", "loop.so", "rank.py"))
        source.write_text(LOOP)
        rank.write_text(RANK)
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
        done = subprocess.run(
            [os.path.join(folder, "mpiexec"), "-n", "2", sys.executable, str(rank), str(library)],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=400,
        )  # fmt: skip
    figures: Dict[str, Any] = {}
    for line in done.stdout.splitlines():
        size, ours, peer, ratio, low, high = json.loads(line)
        bar = 2.5 if size < 65536 else 1.05
        figures[f"all-reduce of {size} bytes on 2 ranks against a loop in C"] = {
            "ours_s": ours, "peer_s": peer, "ratio": ratio, "ratio_min": low, "ratio_max": high, "bar": f"ratio <= {bar}",
        }  # fmt: skip
    if not figures:
        raise RuntimeError(done.stderr[-800:])
    return figures
