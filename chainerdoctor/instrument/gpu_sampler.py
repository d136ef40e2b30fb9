"""Samples GPU memory from a process of its own, at a steady rate, into a file that both sides map.

A thread of the training process cannot do this: it waits for the interpreter's lock, and beside a busy thread it gets a
third of 1 kHz. The child keeps absolute deadlines, so a late sample does not delay the next ones; deadlines that it could
not keep are counted as missed. Times are CLOCK_MONOTONIC, which all processes of a machine share.

    with GpuSampler([0, 1], period_s=0.001) as sampler:
        train()
    print(sampler.report().missed, len(sampler.samples()))
"""

from __future__ import annotations

import ctypes
import gc
import json
import mmap
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import BinaryIO, List, NamedTuple, Optional, Sequence, Tuple

import chainerdoctor

#: The file: this head, then a ring of samples. A sample is its time in ns and one uint64 of used bytes per device.
_HEAD = struct.Struct("<8sQQQQQQQ")  # magic, state, devices, capacity, written, missed, cpu_ns, length of the note
_MAGIC = b"CDGPUSA1"
_HEAD_BYTES = 4096
_NOTE_AT = _HEAD.size
_STARTING, _RUNNING, _ENDED, _FAILED = range(4)
_NOT_READ = 2**64 - 1
_DEFAULT_CAPACITY = 1_000_000  # 17 minutes at 1 kHz; the file is sparse until it is written
_START_DEADLINE_S = 20.0


class SamplerFailed(RuntimeError):
    """The sampler could not start; one line that says why."""


class Sample(NamedTuple):
    """Bytes in use per device, in the order asked for (None: that reading failed), at a CLOCK_MONOTONIC time."""

    at_s: float
    used_bytes: Tuple[Optional[int], ...]


class SamplerReport(NamedTuple):
    """How well the rate was held.

    ``missed`` deadlines had no sample. ``overwritten`` samples were taken and are lost, as the ring was full. ``cpu_s``
    is what the sampling process used. ``refusal`` is the first reading that failed ("" if none did).
    """

    taken: int
    missed: int
    overwritten: int
    cpu_s: float
    refusal: str


class GpuSampler:
    """Samples memory of NVML devices every ``period_s`` seconds until closed."""

    def __init__(self, devices: Sequence[int], period_s: float = 0.001, capacity: int = _DEFAULT_CAPACITY) -> None:
        if not devices:
            raise ValueError("no devices to sample")
        if period_s <= 0 or capacity < 1:
            raise ValueError("period_s and capacity have to be above 0")
        self.devices = tuple(devices)
        self.period_s = period_s
        self._capacity = capacity
        self._record = struct.Struct(f"<{1 + len(self.devices)}Q")
        self._map: Optional[mmap.mmap] = None
        self._child: Optional[subprocess.Popen[bytes]] = None

    def start(self) -> None:
        """Start sampling, and return when the first deadline is set.

        Raises:
            SamplerFailed: NVML or a device cannot be read, or the process did not start.
        """
        size = _HEAD_BYTES + self._capacity * self._record.size
        with tempfile.TemporaryFile() as file:
            file.truncate(size)
            self._map = mmap.mmap(file.fileno(), size)
            _HEAD.pack_into(self._map, 0, _MAGIC, _STARTING, len(self.devices), self._capacity, 0, 0, 0, 0)
            package = str(Path(chainerdoctor.__file__).resolve().parent.parent)
            path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
            arguments = [str(file.fileno()), repr(self.period_s), str(os.getpid()), *map(str, self.devices)]
            self._child = subprocess.Popen(
                [sys.executable, "-m", "chainerdoctor.instrument.gpu_sampler", *arguments],
                env={**os.environ, "PYTHONPATH": path},
                pass_fds=[file.fileno()],
                # Linux shares CPUs out by session first (autogroup): in the busy training's own it would wait its turn. Nor
                # does it get the terminal's Ctrl-C, which is the training's to handle.
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        deadline = time.monotonic() + _START_DEADLINE_S
        while self._state() == _STARTING and self._child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        if self._state() != _RUNNING:
            said = self._note() or f"its process did not start within {_START_DEADLINE_S:.0f} s"
            self.close()
            raise SamplerFailed(f"cannot sample GPU memory: {said}")

    def __enter__(self) -> GpuSampler:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End sampling. What was sampled stays readable."""
        if self._child is None:
            return
        self._child.terminate()
        try:
            self._child.wait(5)
        except subprocess.TimeoutExpired:  # blocked in a driver call: it may not even die of SIGKILL
            self._child.kill()
        self._child = None

    def samples(self) -> List[Sample]:
        """Everything sampled so far, oldest first (the newest ``capacity`` samples)."""
        if self._map is None:
            return []
        written = self._field(4)
        first = max(0, written - self._capacity)
        out = []
        for number in range(first, written):
            at_ns, *used = self._record.unpack_from(self._map, _place(number, self._capacity, self._record))
            out.append(Sample(at_ns * 1e-9, tuple(None if value == _NOT_READ else value for value in used)))
        return out

    def report(self) -> SamplerReport:
        """How well the rate was held so far."""
        if self._map is None:
            return SamplerReport(0, 0, 0, 0.0, "")
        written = self._field(4)
        overwritten = max(0, written - self._capacity)
        return SamplerReport(written, self._field(5), overwritten, self._field(6) * 1e-9, self._note())

    def _field(self, index: int) -> int:
        assert self._map is not None
        return int(_HEAD.unpack_from(self._map, 0)[index])

    def _state(self) -> int:
        return self._field(1)

    def _note(self) -> str:
        assert self._map is not None
        return bytes(self._map[_NOTE_AT : _NOTE_AT + self._field(7)]).decode(errors="replace")


def _place(number: int, capacity: int, record: struct.Struct) -> int:
    return _HEAD_BYTES + number % capacity * record.size


class _Writer:
    """The child's side of the file."""

    def __init__(self, file: BinaryIO) -> None:
        self.map = mmap.mmap(file.fileno(), os.fstat(file.fileno()).st_size)
        _, _, self.devices, self.capacity, *_ = _HEAD.unpack_from(self.map, 0)
        self.record = struct.Struct(f"<{1 + self.devices}Q")
        self.written = self.missed = 0
        self.note = b""

    def put(self, at_ns: int, used: List[int]) -> None:
        self.record.pack_into(self.map, _place(self.written, self.capacity, self.record), at_ns, *used)
        self.written += 1

    def publish(self, state: int) -> None:
        values = (self.devices, self.capacity, self.written, self.missed, time.process_time_ns(), len(self.note))
        _HEAD.pack_into(self.map, 0, _MAGIC, state, *values)

    def say(self, text: str) -> None:
        if not self.note:
            self.note = text.encode()[: _HEAD_BYTES - _NOTE_AT]
            self.map[_NOTE_AT : _NOTE_AT + len(self.note)] = self.note


class _SchedAttr(ctypes.Structure):
    """struct sched_attr of Linux (sched.h), its first version."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime_ns", ctypes.c_uint64),
        ("deadline_ns", ctypes.c_uint64),
        ("period_ns", ctypes.c_uint64),
    ]


_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_SHORTEST_SLICE_NS = 100_000


def _ask_to_wake_early() -> None:
    """Ask for the scheduler's shortest time slice, so that busy processes are interrupted when a sample is due.

    Needs no privilege and takes no time from others: the share of the CPU stays what it was. Kernels before 6.12 refuse,
    and then samples beside busy cores are later; the report's ``missed`` tells how often.
    """
    number = _SCHED_SETATTR.get(os.uname().machine)
    if number is None:
        return
    nice = os.getpriority(os.PRIO_PROCESS, 0)  # stays what it is
    attributes = _SchedAttr(size=ctypes.sizeof(_SchedAttr), nice=nice, runtime_ns=_SHORTEST_SLICE_NS)
    ctypes.CDLL(None, use_errno=True).syscall(number, 0, ctypes.byref(attributes), 0)


def _sample(writer: _Writer, devices: Sequence[int], period_s: float, parent: int) -> int:
    from chainerdoctor.adapters.nvml import open_nvml
    from chainerdoctor.adapters.nvml_readings import Refusal

    nvml = open_nvml()
    if isinstance(nvml, Refusal):
        writer.say(f"{nvml.call}: {nvml.detail}")
        return _FAILED
    handles = []
    for index in devices:
        device = nvml.device(index)
        if isinstance(device, Refusal):
            writer.say(f"GPU {index}: {device.call}: {device.detail}")
            return _FAILED
        handles.append(device)
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    _ask_to_wake_early()
    gc.disable()  # nothing below makes cycles, and a collection would be a late sample
    period_ns = max(1, round(period_s * 1e9))
    writer.publish(_RUNNING)
    start_ns, number = time.monotonic_ns(), 0
    while not ended:
        wait_ns = start_ns + number * period_ns - time.monotonic_ns()
        if wait_ns > 0:
            time.sleep(wait_ns * 1e-9)
        used = []
        at_ns = time.monotonic_ns()
        for device in handles:
            memory = device.memory()
            if isinstance(memory, Refusal):
                writer.say(f"GPU {device.index}: {memory.call}: {memory.detail}")
                used.append(_NOT_READ)
            else:
                used.append(memory.used)
        writer.put(at_ns, used)
        number += 1
        late = (time.monotonic_ns() - start_ns) // period_ns - number
        if late > 0:
            writer.missed += late
            number += late
        writer.publish(_RUNNING)
        if not writer.written % 64 and os.getppid() != parent:
            break  # the training process is gone
    nvml.close()
    return _ENDED


def main(arguments: Sequence[str]) -> int:
    """The sampling process: FILE_DESCRIPTOR PERIOD_S PARENT DEVICE…"""
    with os.fdopen(int(arguments[0]), "r+b") as file:
        writer = _Writer(file)
        try:
            state = _sample(writer, [int(word) for word in arguments[3:]], float(arguments[1]), int(arguments[2]))
        except Exception as error:  # told to the parent, whatever it is
            writer.say(json.dumps(f"{type(error).__name__}: {error}"))
            state = _FAILED
        writer.publish(state)
    return 0 if state == _ENDED else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
