"""Log files → one snapshot. What other commands call too: ``allreduce-bench`` and ``profile-comm`` hand over the
files that NCCL wrote for them (``NCCL_DEBUG_FILE``) and judge the snapshot with :func:`log_rules`."""

from __future__ import annotations

import time
from typing import Callable, Dict, Iterable, List, Optional, Tuple

from chainerdoctor.facts import ERROR, Fact, Missing
from chainerdoctor.facts import log as log_facts
from chainerdoctor.facts.log import LogFile, LogsRecognised, NcclCommunicator, NcclLog
from chainerdoctor.logs.prefixes import Prefixes
from chainerdoctor.logs.scan import Scanner
from chainerdoctor.logs.stages import StageReader, Stages
from chainerdoctor.rules import Rule, all_rules
from chainerdoctor.rules.logged import counted
from chainerdoctor.snapshot import Sighting, Snapshot

Progress = Callable[[str, int], None]


def read_logs(
    paths: Iterable[str],
    *,
    stage_log: Optional[str] = None,
    utc_offset_s: Optional[int] = None,
    now_s: Optional[float] = None,
    progress: Optional[Progress] = None,
) -> Snapshot:
    """Read log files (``-`` is standard input) into one snapshot; the node of each sighting is the file's path.

    ``stage_log`` is a stage log (see :mod:`chainerdoctor.logs.stages`); ``utc_offset_s`` places times without a zone
    (default: this machine's zone). ``progress`` is called with path and bytes read. A file that is of none of the known
    kinds becomes a ``Missing`` fact, so that nothing is judged healthy that was not understood.

    Raises:
        LogReadError: a file cannot be opened or read.
        StageLogError: the stage log is malformed.
    """
    now_s = time.time() if now_s is None else now_s
    stages: Optional[Stages] = None
    year = time.gmtime(now_s).tm_year
    if stage_log is not None:
        stages = StageReader(stage_log).read()
        year = time.gmtime(stages.from_s).tm_year
    prefixes = Prefixes(utc_offset_s, year)
    sightings: List[Sighting[Fact]] = []
    paths = tuple(dict.fromkeys(paths))
    recognised = 0
    for path in paths:
        laid = None if stages is None else stages.beside(path)
        scanner = Scanner(path, prefixes, None if laid is None else laid.line)
        scanner.scan(None if progress is None else _told(progress, path))
        facts = scanner.facts()
        if laid is not None:
            facts += laid.facts(facts)
        file = facts[0]
        assert isinstance(file, LogFile)
        if file.kinds:
            recognised += 1
        else:
            # Without its kind a file must not count as looked at by any rule.
            facts = [_unknown(file)]
        sightings.extend(Sighting(path, None, "log", now_s, 0.0, fact) for fact in facts)
    if stages is not None:
        sightings.append(Sighting(stages.path, None, "stage-log", now_s, 0.0, stages.fact()))
    if recognised == len(paths):
        sightings.append(Sighting("", None, "log", now_s, 0.0, LogsRecognised(recognised)))
    taken = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_s))
    return Snapshot(sightings, command="check-log", taken_at=taken)


def _told(progress: Progress, path: str) -> Callable[[int], None]:
    return lambda size: progress(path, size)


#: What rules about logs need.
LOG_KINDS = tuple(
    value
    for name, value in sorted(vars(log_facts).items())
    if isinstance(value, type) and issubclass(value, Fact) and value is not Fact
)


def _unknown(file: LogFile) -> Missing:
    size = f"{file.lines} lines" if file.lines else "empty"
    return Missing(
        f"log {file.path}",
        ERROR,
        f"no log of a known kind ({size}): neither NCCL, a launcher's output, a kernel log, nvidia-smi, ibstat, "
        "nccl-tests nor a Python traceback",
        # One rule says it; the others were simply not concerned, which is no fault of theirs.
        (LogsRecognised.__name__,),
    )


def log_rules() -> Tuple[Rule, ...]:
    """The rules that judge logs: those that need a fact of :mod:`chainerdoctor.facts.log`."""
    kinds = frozenset(LOG_KINDS)
    return tuple(rule for rule in all_rules() if kinds.intersection(rule.needs))


#: Communicators that a report's head names.
COMMUNICATORS_NAMED = 3


def checked(snapshot: Snapshot) -> Tuple[Tuple[str, str], ...]:
    """(label, value) pairs that say what was read, for a report's head."""
    pairs = []
    for sighting in snapshot.all(LogFile):
        file = sighting.fact
        lines = f"{file.lines:,} lines, {file.unknown_lines:,} of them unknown"
        pairs.append((file.path if file.path != "-" else "standard input", f"{', '.join(file.kinds)} ({lines})"))
    for log in snapshot.all(NcclLog):
        if log.fact.left_out:
            pairs.append(("left out", f"{log.fact.left_out:,} NCCL lines beyond what is kept of one log"))
    for communicator in snapshot.all(NcclCommunicator)[:COMMUNICATORS_NAMED]:
        pairs.append(("communicator", summary(communicator.fact)))
    more = len(snapshot.all(NcclCommunicator)) - COMMUNICATORS_NAMED
    if more > 0:
        pairs.append(("communicators", f"{more} more"))
    return tuple(pairs)


def summary(communicator: NcclCommunicator) -> str:
    """A communicator in a few words: ranks, nodes, transports, duration of its set-up."""
    hosts = {where.split("/")[0] for where in communicator.where.values()}
    transports: Dict[str, int] = {}
    for edge in communicator.edges:
        name = edge.transport + ("/GDRDMA" if edge.gdr else "")
        transports[name] = transports.get(name, 0) + 1
    ranks = communicator.nranks or len(communicator.where)
    parts = [f"{counted(ranks, 'rank')} on {counted(len(hosts), 'host')}"]
    parts += [f"{counted(transports[name], 'edge')} by {name}" for name in sorted(transports)]
    if communicator.init_s is not None:
        parts.append(f"set up in {communicator.init_s:.1f} s")
    if communicator.unfinished:
        parts.append(f"{counted(len(communicator.unfinished), 'rank')} not finished")
    return ", ".join(parts)
