"""Set-up of tests on several hosts: make test-cluster. What cannot be set up here is skipped by name, with the reason."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in Path(item.fspath).parents:
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="module")
def four_hosts(tmp_path_factory):
    """Four nodes and a head, up."""
    import hosts

    reason = hosts.missing()
    if reason:
        pytest.skip(f"several hosts: {reason}")
    with hosts.Hosts(tmp_path_factory.mktemp("hosts")) as made:
        yield made


@pytest.fixture(scope="session")
def relay(tmp_path_factory):
    """The program that delays packets."""
    import os
    import subprocess

    from chainerdoctor.simulate.build import SimulationUnavailable, compiler

    if not os.path.exists("/dev/net/tun"):
        pytest.skip("delayed links: there is no /dev/net/tun")
    try:
        command = compiler()
    except SimulationUnavailable as error:
        pytest.skip(f"delayed links: {error}")
    made = tmp_path_factory.mktemp("relay") / "delay"
    subprocess.run([*command, "-O2", str(HERE / "delay.c"), "-o", str(made)], check=True)
    return made
