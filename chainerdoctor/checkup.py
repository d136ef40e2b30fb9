"""One check of a cluster from the wish to the report: what ``check-cluster`` calls."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Tuple

from chainerdoctor import snapshot as snapshots
from chainerdoctor.baseline import compare
from chainerdoctor.findings import Report
from chainerdoctor.judging import report_on
from chainerdoctor.launch.collect import Progress, gather
from chainerdoctor.launch.hosts import Slots, parse_hostfile, parse_hosts
from chainerdoctor.launch.join import gather_as_rank
from chainerdoctor.launch.launchers import agent_command, plan
from chainerdoctor.rules import all_rules, selected
from chainerdoctor.snapshot import Snapshot

COMMAND = "check-cluster"


@dataclass(frozen=True)
class Checkup:
    """What was seen, and what was made of it."""

    snapshot: Snapshot
    report: Report


def checkup(
    *,
    ranks: Optional[int],
    hosts: Optional[str],
    hostfile: Optional[str],
    launcher: str,
    saved: Tuple[str, ...],
    baseline: Optional[str],
    script: Optional[str],
    timeout_s: float,
    active: bool,
    select: Tuple[str, ...],
    ignore: Tuple[str, ...],
    progress: Optional[Progress] = None,
) -> Optional[Checkup]:
    """Look (or read saved snapshots) and judge. ``None`` on a rank that is not the one to report.

    Raises:
        SnapshotError, HostsError, LaunchError: the wish cannot be fulfilled; the text is one line.
    """
    expected = None if baseline is None else snapshots.load(baseline)
    if saved:
        seen: Optional[Snapshot] = snapshots.merge((snapshots.load(path) for path in saved), command=COMMAND)
    else:
        seen = _look(ranks, hosts_of(hosts, hostfile), launcher, script, timeout_s, active, progress)
    if seen is None:
        return None
    if expected is not None:
        seen = compare(seen, expected)
    return Checkup(seen, report_on(seen, selected(all_rules(), select, ignore), COMMAND))


def hosts_of(hosts: Optional[str], hostfile: Optional[str]) -> Tuple[Slots, ...]:
    if hosts is not None:
        return parse_hosts(hosts)
    if hostfile is not None:
        return parse_hostfile(Path(hostfile).read_text(encoding="utf-8", errors="replace"), hostfile)
    return ()


def _look(
    ranks: Optional[int],
    hosts: Tuple[Slots, ...],
    launcher: str,
    script: Optional[str],
    timeout_s: float,
    active: bool,
    progress: Optional[Progress],
) -> Optional[Snapshot]:
    if script is not None:
        # Agents inherit it through the launcher; there is no other way in that every launcher has.
        os.environ["CHAINERDOCTOR_SCRIPT"] = os.path.abspath(script)
    if ranks is None and not hosts and launcher == "auto":
        joined = gather_as_rank(timeout_s, COMMAND, active)
        if joined is not None:
            return joined.snapshot
    return gather(plan(launcher, ranks, hosts, agent_command(timeout_s, active)), timeout_s, COMMAND, progress)
