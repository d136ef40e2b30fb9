"""Runs the steps on devices in a child process, and goes on with the next device when one crashes or blocks it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any, Iterator, List, Optional, Tuple

from chainerdoctor.codec import fact_from_json
from chainerdoctor.facts import Fact
from chainerdoctor.facts.workload import GpuWorkloadFailed
from chainerdoctor.workloads.devices import CANNOT

#: Seconds without a word after which a step is given up. The first step of a process loads CUDA and the context.
PATIENCE_S = 10.0
START_PATIENCE_S = 25.0


class CannotRun(Exception):
    """There is nothing to run the steps with (no CuPy, say); the text is the reason."""


def run_steps(devices: int, steps: List[str], until_s: float) -> Iterator[Fact]:
    """Facts of every step, ``INDEX`` or ``INDEX-OTHER``; :class:`GpuWorkloadFailed` where one is given up.

    A device that has hung or crashed the process is not asked again: what is left of it, its pairs, is left out.

    Raises:
        CannotRun: there is nothing to run the steps with.
    """
    left = list(steps)
    bad: List[int] = []
    while left and time.monotonic() < until_s:
        child = _Child(devices, left)
        try:
            yield from child.facts(until_s)
        finally:
            child.end()
        failed = child.failed()
        if failed is None:
            return
        if child.cannot():
            raise CannotRun(child.last_words())
        yield failed
        bad.append(failed.index)
        step = f"{failed.index}-{failed.other}" if failed.other is not None else f"{failed.index}"
        rest = left[left.index(step) + 1 :] if step in left else []
        left = [each for each in rest if not any(int(number) in bad for number in each.split("-"))]


class _Child:
    def __init__(self, devices: int, steps: List[str]) -> None:
        self.first = steps[0]
        self.at: Optional[Tuple[int, Optional[int], str]] = None
        self.hung_s: Optional[float] = None
        self._errors = b""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "chainerdoctor.workloads.devices", str(devices), *steps],
            # So that CUDA's numbers are NVML's, and every device is looked at, whatever this rank is to use.
            env={
                **{k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"},
                "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def facts(self, until_s: float) -> Iterator[Fact]:
        """Facts as they come; ends with the process, or when it is silent for too long."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        streams = [self._process.stdout.fileno(), self._process.stderr.fileno()]
        text = b""
        patience_s = START_PATIENCE_S
        while streams:
            wait_s = min(patience_s, max(0.0, until_s - time.monotonic()))
            ready, _, _ = select.select(streams, [], [], wait_s)
            if not ready:
                self.hung_s = wait_s
                return
            for handle in ready:
                piece = os.read(handle, 65536)
                if not piece:
                    streams.remove(handle)
                elif handle == self._process.stderr.fileno():
                    self._errors = (self._errors + piece)[-4096:]
                else:
                    patience_s = PATIENCE_S
                    *lines, text = (text + piece).split(b"\n")
                    for line in lines:
                        told = json.loads(line)
                        if "at" in told:
                            self.at = (told["at"][0], told["at"][1], told["at"][2])
                        else:
                            yield fact_from_json(told["fact"])

    def end(self) -> None:
        """End the process, whatever it does; a driver call that cannot be killed is left to the kernel."""
        if self.hung_s is not None:
            self._process.kill()
        try:
            self._process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def failed(self) -> Optional[GpuWorkloadFailed]:
        """What stopped the process, ``None`` if it ended well."""
        status: Any = self._process.poll()
        if self.hung_s is None and status == 0:
            return None
        first, _, second = self.first.partition("-")
        index, other, step = self.at or (int(first), int(second) if second else None, "start")
        if self.hung_s is not None:
            return GpuWorkloadFailed(index, step, f"no answer in {self.hung_s:.0f} s", True, other)
        how = f"ended by {signal.Signals(-status).name}" if status is not None and status < 0 else f"exit code {status}"
        words = self.last_words()
        return GpuWorkloadFailed(index, step, f"{how}{f': {words}' if words else ''}", False, other)

    def last_words(self) -> str:
        """The last line on standard error."""
        lines = self._errors.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:300] if lines else ""

    def cannot(self) -> bool:
        """Whether the process itself said that there is nothing to do the steps with."""
        return self.hung_s is None and self._process.poll() == CANNOT
