"""Figures of the NVML adapter and the memory sampler on a simulated machine, as JSON: python tests/simulate/measure.py

No test asserts them: they depend on the machine and on what else it does (``load`` is its load average per core).
"""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def fastest_us(function, repeats=7, calls=20000):
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(calls):
            function()
        best = min(best, (time.perf_counter() - start) / calls)
    return best * 1e6


def adapter_figures():
    """Microseconds for one device's memory: the library alone (through a ctypes call with a ready structure), and ours."""
    import pynvml

    from chainerdoctor.adapters.nvml import open_nvml

    device = open_nvml().device(0)
    memory = pynvml.c_nvmlMemory_v2_t()
    library = ctypes.CDLL("libnvidia-ml.so.1").nvmlDeviceGetMemoryInfo_v2
    handle, pointer = device._handle, ctypes.byref(memory)
    return {"library_us": fastest_us(lambda: library(handle, pointer)), "adapter_us": fastest_us(device.memory)}


def sampler_figures(busy, seconds=5.0):
    """Samples a second at 1 kHz, the missed share and the CPU share, with or without a busy Python thread beside."""
    from chainerdoctor.instrument.gpu_sampler import GpuSampler

    ended = threading.Event()

    def work():
        while not ended.is_set():
            sum(range(50))

    thread = threading.Thread(target=work)
    with GpuSampler([0], 0.001) as sampler:
        if busy:
            thread.start()
        before, start = sampler.report(), time.monotonic()
        time.sleep(seconds)
        after, took = sampler.report(), time.monotonic() - start
    ended.set()
    return {
        "per_s": (after.taken - before.taken) / took,
        "missed_percent": 100 * (after.missed - before.missed) / (took / 0.001),
        "cpu_percent": 100 * (after.cpu_s - before.cpu_s) / took,
    }


def main():
    if len(sys.argv) < 2:
        from chainerdoctor.simulate import environment

        with tempfile.TemporaryDirectory() as folder:
            scenario = Path(folder) / "m.scn"
            scenario.write_text("gpus = 1\n[gpu 0]\nmemory_used = 4GiB + ramp(60GiB, 30s)\n")
            variables = environment(scenario, ("nvml",), shared=Path(folder))
            return subprocess.run(
                [sys.executable, __file__, "inside"], env={**os.environ, **variables}, check=False
            ).returncode
    figures = {
        "load": os.getloadavg()[0] / (os.cpu_count() or 1),
        "adapter": adapter_figures(),
        "sampler": sampler_figures(False),
        "sampler beside a busy thread": sampler_figures(True),
    }
    print(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
