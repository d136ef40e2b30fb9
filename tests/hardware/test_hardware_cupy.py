"""CuPy and NCCL on real cards: what the simulation claims to stand for."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

OPERATIONS = Path(__file__).resolve().parents[1] / "simulate" / "packages" / "operations.py"


def test_operations_match_numpy(cupy):
    """Proves that the list which the simulation passes is right on a GPU too (Chainer's part where Chainer is installed)."""
    done = subprocess.run([sys.executable, str(OPERATIONS)], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    verdicts = json.loads(done.stdout.splitlines()[-1])
    assert len(verdicts) >= 60
    assert {name: verdict for name, verdict in verdicts.items() if verdict != "ok"} == {}


def test_copies_between_host_and_every_gpu(cupy):
    """Proves host-to-device and back, from pageable and pinned memory, on each GPU."""
    host = np.random.RandomState(0).rand(1 << 20).astype("f4")
    pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(host.nbytes), "f4", host.size)
    pinned[:] = host
    for index in range(cupy.cuda.runtime.getDeviceCount()):
        with cupy.cuda.Device(index):
            for source in (host, pinned):
                assert (cupy.asarray(source).get() == host).all()


def test_copies_between_gpus(cupy):
    """Proves device-to-device copies for each ordered pair, with peer access or without."""
    count = cupy.cuda.runtime.getDeviceCount()
    if count < 2:
        pytest.skip("one GPU only: no pair to copy between")
    for a in range(count):
        for b in range(count):
            if a == b:
                continue
            with cupy.cuda.Device(a):
                source = cupy.arange(1 << 18, dtype="i8")
                source.device.synchronize()
            with cupy.cuda.Device(b):
                assert bool((cupy.asarray(source) == cupy.arange(1 << 18, dtype="i8")).all())


def test_out_of_memory_is_an_error_and_no_more(cupy):
    """Proves that an allocation beyond the card fails and leaves CuPy usable."""
    total = cupy.cuda.runtime.memGetInfo()[1]
    with pytest.raises(cupy.cuda.memory.OutOfMemoryError):
        cupy.cuda.alloc(2 * total)
    assert int(cupy.arange(10).sum()) == 45


def test_all_reduce_over_every_gpu(cupy, nccl):
    """Proves NCCL between all GPUs of this machine: the sum of 1 to N, on each of them."""
    count, identity, wrong = cupy.cuda.runtime.getDeviceCount(), nccl.get_unique_id(), []

    def rank(index):
        try:
            cupy.cuda.Device(index).use()
            communicator = nccl.NcclCommunicator(count, identity, index)
            values = cupy.full(1 << 16, index + 1, "f4")
            communicator.allReduce(
                values.data.ptr,
                values.data.ptr,
                values.size,
                nccl.NCCL_FLOAT32,
                nccl.NCCL_SUM,
                cupy.cuda.Stream.null.ptr,
            )
            cupy.cuda.Stream.null.synchronize()
            if not bool((values == count * (count + 1) / 2).all()):
                wrong.append((index, float(values[0])))
        except Exception as error:
            wrong.append((index, repr(error)))

    threads = [threading.Thread(target=rank, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []
