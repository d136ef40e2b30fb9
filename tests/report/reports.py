"""Reports to render in tests: healthy, sick, blind, and one whose every text is hostile."""

from chainerdoctor.facts import Missing, Unknown
from chainerdoctor.facts.host import OperatingSystem
from chainerdoctor.facts.mpi import LauncherOutcome, MpiLibrary, RankOutcome
from chainerdoctor.facts.stack import Distribution, Interpreter, PackageSurvey
from chainerdoctor.findings import Evidence, Finding, Location, Report, Severity, Verdict
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
    return Report(
        "chainerdoctor 0.1.0", HOSTILE, "0" * 12, "2026-01-01T00:00:00Z", verdicts, ((HOSTILE, HOSTILE),), (HOSTILE,)
    )


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


ALL = {"healthy": healthy, "sick": sick, "blind": blind, "hostile": hostile}
