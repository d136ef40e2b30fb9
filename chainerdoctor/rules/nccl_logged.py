"""What the rules about NCCL logs share: naming processes, hosts and communicators."""

from __future__ import annotations

from typing import Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from chainerdoctor.facts.log import NcclCommunicator, NcclProcess
from chainerdoctor.findings import Evidence, Finding, Location
from chainerdoctor.rules.logged import QUOTED, counted, place, shortened
from chainerdoctor.snapshot import Snapshot


def hosts_of(processes: Iterable[NcclProcess]) -> str:
    """The hosts of these processes, shortened; the file if the lines name no host."""
    processes = list(processes)
    hosts = sorted({p.host for p in processes if p.host})
    return shortened(hosts) or processes[0].path


def comm_name(communicator: NcclCommunicator) -> str:
    """How a finding calls a communicator."""
    if communicator.identified:
        return f"communicator {communicator.id} ({counted(communicator.nranks, 'rank')})"
    return f"communicator of {counted(communicator.nranks, 'rank')}" if communicator.nranks else "communicator"


def rank_hosts(communicator: NcclCommunicator) -> Dict[int, str]:
    """Rank → host, as far as the log names it."""
    return {int(rank): where.split("/")[0] for rank, where in communicator.where.items() if where.split("/")[0]}


def listed_ranks(ranks: Iterable[int], communicator: NcclCommunicator) -> str:
    """``rank 3 (gpu-b/1), rank 7 (gpu-c/0)``, shortened."""
    named = []
    for rank in ranks:
        where = "/".join(communicator.where.get(str(rank), "").split("/")[:2])
        named.append(f"rank {rank} ({where})" if where else f"rank {rank}")
    return shortened(named, 6)


def process_findings(
    snapshot: Snapshot,
    wrong: Callable[[NcclProcess], Optional[Tuple[str, str, str]]],
    message: str,
    remedy: str,
    wanted: str,
) -> Iterator[Finding]:
    """One finding for all processes for which ``wrong`` gives ``(what, seen, field whose line is quoted)``.

    Equal sights on many ranks are one piece of evidence, with the first place and their number.
    """
    groups: Dict[Tuple[str, str], List[Tuple[NcclProcess, int]]] = {}
    for sighting in snapshot.all(NcclProcess):
        told = wrong(sighting.fact)
        if told is not None:
            line = sighting.fact.lines.get(told[2], 0)
            groups.setdefault(told[:2], []).append((sighting.fact, line))
    if not groups:
        return
    evidence = []
    for (what, seen), found in list(groups.items())[:QUOTED]:
        more = f" (on {counted(len(found), 'process')})" if len(found) > 1 else ""
        evidence.append(Evidence(f"{what}, {place(found[0][0].path, found[0][1])}", seen + more, wanted))
    if len(groups) > QUOTED:
        evidence.append(Evidence("further values", shortened(seen for _, seen in list(groups)[QUOTED:])))
    everyone = [process for found in groups.values() for process, _ in found]
    first, line = next(iter(groups.values()))[0]
    yield Finding(hosts_of(everyone), message, remedy, tuple(evidence), Location(first.path, line))
