"""What :mod:`chainerdoctor.logs.nccl_state` gathered of one file, turned into facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Iterable, List, Optional, Tuple

from chainerdoctor.facts.log import NcclCommunicator, NcclEdge, NcclProcess

if TYPE_CHECKING:
    from chainerdoctor.logs.nccl_state import Communicator, Process

#: One collective call: opCount, what it was, line.
Op = Tuple[int, str, int]

_EDGES_KEPT_PER_FACT = 20_000


def last_calls(kept: Iterable[Tuple[List[bytes], int]]) -> List[Op]:
    """``(opCount, text, line)`` of the last calls; the text is empty for those that share an opCount (a group)."""
    calls: List[Op] = []
    for words, number in kept:
        try:
            count = int(words[2], 16)
        except ValueError:
            continue
        name, size, kind, root = (words[i].decode("ascii", "replace")[:40] for i in (0, 8, 10, 14))
        text = f"{name.rstrip(':')} count {size} datatype {kind}" + ("" if root == "0" else f" root {root}")
        if calls and calls[-1][0] == count:
            calls[-1] = (count, "", number)
        else:
            calls.append((count, text, number))
    return calls


def process_fact(path: str, process: Process) -> NcclProcess:
    """A process as its lines describe it."""
    values = process.values
    return NcclProcess(
        path=path,
        host=process.host,
        pid=process.pid,
        device=process.device,
        version=values.get("version"),
        network=values.get("network"),
        bootstrap=tuple(values.get("bootstrap", ())),
        interfaces=tuple(values.get("interfaces", ())),
        hcas=tuple(process.hcas),
        plugins=tuple(process.plugins),
        settings=dict(process.settings),
        gdr_disabled=tuple(process.gdr),
        gdr_enabled=bool(values.get("gdr_enabled")),
        nvls=values.get("nvls"),
        lines=dict(process.lines),
    )


def communicator_fact(
    path: str, communicator: Communicator, ops: Dict[int, List[Op]], goes_on: bool
) -> NcclCommunicator:
    """A communicator, with the last calls of its ranks."""
    started, completed = communicator.started, communicator.completed
    unfinished = sorted(r for r, times in started.items() if times > completed.get(r, 0))
    return NcclCommunicator(
        id=communicator.key,
        identified=communicator.identified,
        nranks=communicator.nranks,
        path=path,
        line=communicator.line,
        instances=max([1, *completed.values()]) if not communicator.identified else 1,
        mixed=communicator.mixed,
        finished=tuple(sorted(completed)),
        unfinished=tuple(unfinished),
        where={str(rank): communicator.where[rank] for rank in sorted(communicator.where)},
        edges=_edge_facts(communicator),
        rings=tuple(communicator.rings),
        trees=communicator.trees,
        channels=dict(communicator.channels),
        init_s=communicator.init_s,
        slowest=communicator.slowest,
        last_ops={str(rank): kept[-1][0] for rank, kept in sorted(ops.items())},
        last_texts={str(rank): kept[-1][1] for rank, kept in sorted(ops.items())},
        last_lines={str(rank): kept[-1][2] for rank, kept in sorted(ops.items())},
        mismatch=_mismatch(ops),
        log_goes_on=goes_on,
    )


def _edge_facts(communicator: Communicator) -> Tuple[NcclEdge, ...]:
    """Both ends of a network edge print it; they become one edge, with the sender's view where both are there."""
    merged: Dict[Tuple[int, int, str, Optional[int], bool], Tuple[int, str, int]] = {}
    for edge, (mask, line) in communicator.edges.items():
        device = None if edge.receives else edge.device
        key = (edge.source, edge.target, edge.transport, device, edge.gdr)
        if edge.receives and any(
            (edge.source, edge.target, edge.transport, d, edge.gdr) in merged for d in (None, edge.device)
        ):
            continue
        old = merged.get(key, (0, "", line))
        merged[key] = (old[0] | mask, communicator.hosts.get(edge, ""), min(old[2], line))
    senders = {(k[0], k[1]) for k in merged if k[3] is not None}
    kept = [
        NcclEdge(k[0], k[1], k[2], bin(mask).count("1"), k[3], k[4], host, line)
        for k, (mask, host, line) in merged.items()
        if k[3] is not None or not k[2].startswith("NET/") or (k[0], k[1]) not in senders
    ]
    kept.sort(key=lambda e: (e.source, e.target, e.transport, -1 if e.device is None else e.device, e.gdr))
    return tuple(kept[:_EDGES_KEPT_PER_FACT])


def _mismatch(ops: Dict[int, List[Op]]) -> Tuple[str, ...]:
    """``(rank, text, line, rank, text, line, opCount)`` of the first disagreement, or nothing."""
    first: Dict[int, Tuple[int, str, int]] = {}
    found: List[Tuple[int, Tuple[str, ...]]] = []
    for rank in sorted(ops):
        for count, text, line in ops[rank]:
            known = first.setdefault(count, (rank, text, line))
            # Broadcasts name different buffers but the same root; a text of "" stands for a group.
            if text and known[1] and known[1] != text:
                pair = (str(known[0]), known[1], str(known[2]), str(rank), text, str(line), str(count))
                found.append((count, pair))
    return min(found)[1] if found else ()
