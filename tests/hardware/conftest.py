"""Tests marked gpu need a real GPU; elsewhere each says so."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list) -> None:
    if Path("/dev/nvidiactl").exists():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU on this machine (make test-gpu)"))
