"""Reports to render in tests: healthy, sick, blind, and one whose every text is hostile."""

import dataclasses
from math import inf, nan

from chainerdoctor.facts import Missing, Unknown
from chainerdoctor.facts.host import OperatingSystem
from chainerdoctor.facts.mpi import LauncherOutcome, MpiLibrary, RankOutcome
from chainerdoctor.facts.stack import Distribution, Interpreter, PackageSurvey
from chainerdoctor.findings import (
    BarChart,
    Evidence,
    Finding,
    HeatMap,
    LineChart,
    Location,
    Report,
    Series,
    Severity,
    Table,
    Verdict,
)
from chainerdoctor.judging import report_on
from chainerdoctor.rules import all_rules, selected
from chainerdoctor.snapshot import Sighting, Snapshot

HOSTILE = "ev\x1b[2Jil\r\n<script>alert(1)</script>&\"'|`*_[x](y)\u202e@here\x00\ud800"


def snapshot(*entries) -> Snapshot:
    sightings = [Sighting(node, rank, "p", 0.0, 0.0, fact) for node, rank, fact in entries]
    return Snapshot(sightings, command="check-cluster", taken_at="2026-01-01T00:00:00Z", tool="0.1.0")


def _node(name: str, rank: int, python: str = "3.11.7", numpy: str = "1.23.5") -> list:
    site = "/env/lib/python3.11/site-packages"
    return [
        (name, None, OperatingSystem(name, "6.1.0", "Debian GNU/Linux 12", "x86_64", None)),
        (name, rank, Interpreter("/env/bin/python", python, "CPython", "ab" * 32)),
        (name, rank, PackageSurvey(40)),
        (name, rank, Distribution("chainer", "7.8.1", site)),
        (name, rank, Distribution("numpy", numpy, site)),
        (name, rank, Distribution("mpi4py", "4.1.2", site)),
        (name, rank, MpiLibrary("MPICH", "5.0.2", "/env/lib/libmpi.so.12", "4.1.2")),
        (name, rank, RankOutcome(rank, "complete", "")),
        (name, None, Missing("gpus", "absent", "NVML: NVML Shared Library Not Found", ("GpuDriver", "Gpu"))),
    ]


def healthy() -> Report:
    return _report(_node("node1", 0) + _node("node2", 1))


def sick() -> Report:
    entries = _node("node1", 0) + _node("node2", 1) + _node("node3", 2, python="3.9.18", numpy="2.1.0")
    entries += [
        ("", 3, RankOutcome(3, "silent", "not one message arrived")),
        (
            "",
            None,
            LauncherOutcome("mpiexec (MPICH 5.0.2)", None, 4, 30.0, "ssh: connect to host node4: No route to host"),
        ),
    ]
    return _report(entries)


def blind() -> Report:
    broken = Missing("gpus", "timeout", "no answer in 10.0 s", ("GpuDriver", "Gpu"))
    return _report(
        [entry for entry in _node("node1", 0) if not isinstance(entry[2], Missing)] + [("node1", None, broken)]
    )


def hostile() -> Report:
    finding = Finding(
        HOSTILE, HOSTILE, HOSTILE, (Evidence(HOSTILE, HOSTILE, HOSTILE),), Location(f"/tmp/{HOSTILE}.log", 3, 4)
    )
    verdicts = (
        Verdict("CD101", "kernel_differs", Severity.ERROR, "found", HOSTILE, findings=(finding,)),
        Verdict("CD102", "shm_too_small", Severity.ERROR, "skipped", HOSTILE, HOSTILE, True),
        Verdict("CD103", "memlock_limited", Severity.INFO, "crashed", HOSTILE, HOSTILE),
        Verdict("CD104", "clocks_apart", Severity.INFO, "skipped", HOSTILE, HOSTILE),
    )
    charts = (
        LineChart(HOSTILE, HOSTILE, HOSTILE, (Series(HOSTILE, (1, 2), (1, 2)),) * 2, marks=((1.0, HOSTILE),)),
        HeatMap(HOSTILE, (HOSTILE,), (HOSTILE,), ((1.0,),), HOSTILE),
        BarChart(HOSTILE, (HOSTILE,), (HOSTILE,), ((1.0,),), HOSTILE),
    )
    return Report(
        "chainerdoctor 0.1.0",
        HOSTILE,
        "0" * 12,
        "2026-01-01T00:00:00Z",
        verdicts,
        ((HOSTILE, HOSTILE),),
        (HOSTILE,),
        (Table(HOSTILE, (HOSTILE,), ((HOSTILE,),)),),
        charts,
    )


def measured() -> Report:
    """A healthy report with a table and a chart of every kind, with gaps, zeros, infinities and nothing at all."""
    iterations = tuple(range(1, 201))
    norms = Series("gradient norm, rank 0", iterations, tuple(5.0 / i if i != 50 else nan for i in iterations))
    bound = Series("bound", (1, 200), (4.0, 4.0), "dashed")
    sizes = (4, 1024, 1048576)
    charts = (
        LineChart("Norms", "iteration", "norm", (norms, bound), log_y=True, marks=((50.0, "first NaN"),)),
        LineChart("Times", "bytes", "s", (Series("all-reduce", sizes, (1e-5, 2e-5, 3e-3), "points"),), True, True),
        LineChart("Nothing", "iteration", "norm", ()),
        HeatMap("Layers", ("/fc1/W", "/fc2/W"), ("1", "2", "3"), ((1.0, nan, inf), (None, -inf, 0.5)), "log10"),
        HeatMap("Nothing", (), (), (), "log10"),
        BarChart("Iteration", ("rank 0", "rank 1"), ("forward", "waiting"), ((3.0, 1.0), (4.0, 0.0)), "ms"),
        BarChart("Nothing", (), (), (), "ms"),
    )
    table = Table("Sweep", ("size B", "time s"), (("4", "0.00001"), ("1024", "0.00002")))
    return dataclasses.replace(healthy(), tables=(table,), charts=charts)


def many(count: int) -> Report:
    findings = tuple(Finding(f"node{i}", "wrong", "Mend it.", (Evidence("x", str(i), "y"),)) for i in range(count))
    verdict = Verdict("CD101", "kernel_differs", Severity.WARNING, "found", "Kernels differ.", findings=findings)
    return Report("chainerdoctor 0.1.0", "check-cluster", "0" * 12, "", (verdict,))


def _report(entries) -> Report:
    # Only families that this file's facts speak to, so that a new rule elsewhere does not change these goldens.
    rules = selected(all_rules(), ("CD002", "CD201", "CD407", "CD501", "CD502", "CD520", "CD523"), ())
    report = report_on(snapshot(*entries), rules, "check-cluster")
    assert not snapshot(*entries).all(Unknown)
    return report


ALL = {"healthy": healthy, "sick": sick, "blind": blind, "hostile": hostile, "measured": measured}
