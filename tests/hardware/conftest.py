"""Tests on real NVIDIA GPUs: make test-gpu. Without a GPU they fail with one line; they do not pass or skip in silence.

The same tests run on simulated GPUs: python -m chainerdoctor.simulate SCENARIO -- python -m pytest -m gpu tests/hardware
"""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in Path(item.fspath).parents:
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session")
def nvml():
    """NVML, started, with at least one GPU."""
    from chainerdoctor.adapters.nvml import open_nvml
    from chainerdoctor.adapters.nvml_readings import Refusal

    started = open_nvml()
    if isinstance(started, Refusal):
        pytest.fail(f"no NVIDIA GPU here: {started.call}: {started.detail}", pytrace=False)
    count = started.device_count()
    if isinstance(count, Refusal) or not count:
        pytest.fail(f"no NVIDIA GPU here: the driver shows {count}", pytrace=False)
    with started:
        yield started


@pytest.fixture(scope="session")
def devices(nvml):
    return [nvml.device(index) for index in range(nvml.device_count())]


@pytest.fixture(scope="session")
def cupy(nvml):
    """CuPy with a GPU; a machine without CuPy fails these tests with one line."""
    try:
        import cupy
    except ImportError as error:
        pytest.fail(f"CuPy cannot be imported: {error}", pytrace=False)
    if not cupy.cuda.runtime.getDeviceCount():
        pytest.fail("CuPy sees no GPU (CUDA_VISIBLE_DEVICES?)", pytrace=False)
    return cupy


@pytest.fixture(scope="session")
def nccl(cupy):
    try:
        from cupy.cuda import nccl
    except ImportError as error:
        pytest.fail(f"CuPy's NCCL module cannot be imported: {error}", pytrace=False)
    return nccl
