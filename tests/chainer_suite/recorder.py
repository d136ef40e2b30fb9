"""A pytest plugin that runs Chainer's own tests so that two runs can be compared case by case.

Chainer's tests draw their parameters and data from ``numpy.random``, and their ids hold the drawn arrays as text,
which NumPy 1 and 2 print differently. So the collection is seeded, each case is seeded from its name, and a case is
named by its place: file, class without the printed parameters, function, and its number among its equals.

``CHAINER_SUITE_RESULT`` names the JSON file that is written (outcome and last error line of every case); ranks of an
MPI job add their rank to the name. With ``CHAINER_SUITE_COMPAT`` the compat layer is loaded before anything else.
"""

from __future__ import annotations

import os

if os.environ.get("CHAINER_SUITE_COMPAT"):
    import chainerdoctor.compat  # noqa: F401  (has to come before any import of chainer or numpy)

import json
import random
import re
import zlib
from collections import Counter
from typing import Any, Dict, Iterator

import pytest

_PRINTED_PARAMETERS = re.compile(r"(_param_\d+)_\{.*?(?=::|$)", re.DOTALL)
_SEED = 20191205  # the day Chainer went into maintenance; any fixed number does

_names: Dict[str, str] = {}
_results: Dict[str, Dict[str, Any]] = {}


def stable_name(nodeid: str) -> str:
    """The test's id without anything that depends on how values are printed."""
    path, _, rest = nodeid.partition("::")
    rest = _PRINTED_PARAMETERS.sub(r"\1", rest)
    return f"{path}::{rest.partition('[')[0]}"


def _seed(value: int) -> None:
    import numpy

    random.seed(value)
    numpy.random.seed(value)


def pytest_sessionstart(session: pytest.Session) -> None:
    _seed(_SEED)


@pytest.hookimpl(tryfirst=True)
def pytest_collectstart(collector: pytest.Collector) -> None:
    # Each file is seeded anew: a file that cannot be collected must not shift the draws of those behind it.
    if isinstance(collector, pytest.Module):
        _seed(zlib.crc32(collector.nodeid.encode()))


def pytest_collection_modifyitems(items: list) -> None:
    seen: Counter = Counter()
    for item in items:
        name = stable_name(item.nodeid)
        _names[item.nodeid] = f"{name}#{seen[name]}"
        seen[name] += 1


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _seed(zlib.crc32(_names[item.nodeid].encode()))
    yield


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        _record(_names[report.nodeid], report.outcome, report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _record(f"{report.nodeid}::(collection)", "failed", report)


def _record(name: str, outcome: str, report: Any) -> None:
    entry = _results.setdefault(name, {"outcome": outcome})
    if outcome == "failed":
        entry["outcome"] = "failed"
        crash = getattr(getattr(report.longrepr, "reprcrash", None), "message", None)
        entry["error"] = (crash or str(report.longrepr)).strip()[:600]


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = os.environ["CHAINER_SUITE_RESULT"]
    rank = os.environ.get("PMI_RANK") or os.environ.get("OMPI_COMM_WORLD_RANK")
    if rank is not None:
        path = f"{path}.{rank}"
    import numpy

    with open(path, "w", encoding="utf-8") as file:
        json.dump({"numpy": numpy.__version__, "cases": _results}, file, indent=0, sort_keys=True)
