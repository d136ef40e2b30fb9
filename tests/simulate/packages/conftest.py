"""Tests that need CuPy 12.3, Chainer, both MPI wheels, nvitop and gpustat: make test-simulate.

They run in the environments that environments.sh makes; CHAINERDOCTOR_SIMULATE_ENVIRONMENTS names their folder. Without
it they fail: they do not pass or skip in silence.
"""

import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in Path(item.fspath).parents:
            item.add_marker(pytest.mark.simulate)


@pytest.fixture(scope="session")
def programs():
    """programs(name, mpi="mpich") -> path of a program in that environment."""
    folder = os.environ.get("CHAINERDOCTOR_SIMULATE_ENVIRONMENTS")
    if not folder:
        pytest.fail(
            "CHAINERDOCTOR_SIMULATE_ENVIRONMENTS is not set: run these tests with make test-simulate", pytrace=False
        )

    def find(name, mpi="mpich"):
        path = Path(folder) / mpi / "bin" / name
        if not path.exists():
            pytest.fail(f"{path} is not there: run tests/simulate/packages/environments.sh {folder}", pytrace=False)
        return str(path)

    return find


@pytest.fixture(scope="session", autouse=True)
def _as_root():
    """Open MPI's wheel refuses to start as root unless it is told twice."""
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
