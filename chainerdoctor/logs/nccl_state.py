"""NCCL lines of one file, put together to processes and communicators.

What is kept is bounded by the number of ranks and communicators, never by the number of lines: edges are counted,
collectives are kept only as far as the last few of each rank, and beyond the limits below only a count is left.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Tuple

from chainerdoctor.facts.log import NcclLog
from chainerdoctor.logs import nccl
from chainerdoctor.logs.nccl import Edge
from chainerdoctor.logs.nccl_facts import Op, communicator_fact, last_calls, process_fact

MAX_PROCESSES = 6000
MAX_THREADS = 12_000
MAX_COMMUNICATORS = 512
MAX_EDGES = 60_000
MAX_OPS = 16_384
#: So many collectives of each rank are compared with those of the others.
OPS_KEPT = 32

_WHO = re.compile(
    rb"(?P<before>.{0,200}?)(?P<host>[\w][\w.-]{0,254}):(?P<pid>\d{1,10}):(?P<tid>\d{1,10})(?: \[(?P<device>-?\d{1,4"
    rb"})\])? ?$",
    re.S,
)
_TAG = re.compile(rb"\[(?:[\w.-]{1,80}@)?\d{1,9},(\d{1,7})\]|^(\d{1,7}): ")


#: Stands for the channels of an edge that is not kept.
_DROPPED: List[int] = [0, 0]


class Process:
    """A process that spoke; fields as in :class:`NcclProcess`."""

    def __init__(self, host: str, pid: int, device: Optional[int]) -> None:
        self.host = host
        self.pid = pid
        self.device = device
        self.rank: Optional[int] = None
        self.values: Dict[str, Any] = {}
        self.lines: Dict[str, int] = {}
        self.settings: Dict[str, str] = {}
        self.plugins: List[str] = []
        self.hcas: List[str] = []
        self.gdr: List[str] = []
        self.last: Optional[Communicator] = None
        self.pointers: Dict[str, Tuple[Communicator, int]] = {}

    def note(self, name: str, value: Any, number: int) -> None:
        """Keep the latest value and the line where the first one stood."""
        self.values[name] = value
        self.lines.setdefault(name, number)


class Thread:
    """A thread of a process: the lines of one initialisation belong together by it."""

    __slots__ = ("process", "edges", "rank", "communicator", "started", "rings", "trees", "channels", "line")

    def __init__(self, process: Process, line: int) -> None:
        self.process = process
        self.edges: Dict[Edge, List[int]] = {}
        self.rank: Optional[int] = None
        self.communicator: Optional[Communicator] = None
        self.started: Optional[Tuple[int, Optional[float]]] = None
        self.rings: List[str] = []
        self.trees = 0
        self.channels: Dict[str, int] = {}
        self.line = line


class Communicator:
    """What the ranks of one communicator said."""

    def __init__(self, key: str, identified: bool, nranks: int, line: int) -> None:
        self.key = key
        self.identified = identified
        self.nranks = nranks
        self.line = line
        self.started: Dict[int, int] = {}
        self.completed: Dict[int, int] = {}
        self.where: Dict[int, str] = {}
        self.mixed = False
        self.edges: Dict[Edge, List[int]] = {}
        self.hosts: Dict[Edge, str] = {}
        self.rings: List[str] = []
        self.trees = 0
        self.channels: Dict[str, int] = {}
        self.init_s: Optional[float] = None
        self.slowest: Optional[int] = None


class NcclState:
    """Takes messages in the order of the file and gives facts at the end."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.threads: Dict[bytes, Thread] = {}
        self.processes: Dict[Tuple[str, int], Process] = {}
        self.communicators: Dict[str, Communicator] = {}
        self.versions: Dict[str, int] = {}
        self.left_out = 0
        self.last_init_line = 0
        self._edges = 0
        self._dropped = 0
        self._ops: Dict[Tuple[Process, bytes], Deque[Tuple[List[bytes], int]]] = {}
        self._nobody = Process("", 0, None)
        self._nobody_thread = Thread(self._nobody, 0)

    def thread(self, head: bytes, number: int) -> Thread:
        """The thread that a line's head (all before ``NCCL INFO``) names; one shared thread if it names none."""
        # "… host:pid:tid [dev] " — a time in front differs from line to line, the last two words do not.
        parts = head.rsplit(b" ", 3)
        who = parts[-3] if len(parts) >= 3 and parts[-1] == b"" else head
        thread = self.threads.get(who)
        if thread is not None:
            return thread
        found = _WHO.match(head[-600:])
        if found is None:
            return self._nobody_thread
        key = (found["host"].decode("ascii", "replace"), int(found["pid"]))
        process = self.processes.get(key)
        if process is None:
            if len(self.processes) >= MAX_PROCESSES:
                self.left_out += 1
                return self._nobody_thread
            device = None if found["device"] is None else int(found["device"])
            process = self.processes[key] = Process(key[0], key[1], device)
            tag = _TAG.search(found["before"])
            if tag is not None:
                process.rank = int(tag[1] or tag[2])
        if len(self.threads) >= MAX_THREADS:
            # Threads whose initialisation ended have handed everything over.
            kept = {w: t for w, t in self.threads.items() if t.started or t.edges or t.rings}
            self.threads = kept if len(kept) < MAX_THREADS * 3 // 4 else {}
            if not self.threads:
                self.left_out += len(kept)
        thread = self.threads[who] = Thread(process, number)
        return thread

    def edge(self, thread: Thread, edge: Edge, bit: int, number: int) -> None:
        """Slow half of the hot path in ``scan``: the first line of an edge in its thread."""
        if self._edges >= MAX_EDGES:
            self.left_out += 1
            if self._dropped < MAX_EDGES:
                # Known to be dropped: its further channels then take the fast path.
                self._dropped += 1
                thread.edges[edge] = _DROPPED
            return
        communicator = thread.communicator
        if communicator is not None:
            slot = communicator.edges.get(edge)
            if slot is not None:
                slot[0] |= bit
                return
        self._edges += 1
        thread.edges[edge] = [bit, number]

    def apply(self, message: nccl.Message, thread: Thread, number: int, at_s: Optional[float]) -> None:
        """Note a message that is neither dull nor an edge."""
        kind, payload = message
        process = thread.process
        if kind == nccl.COMM:
            self._comm(payload, thread, number, at_s)
        elif kind == nccl.RING:
            if len(thread.rings) < 64:
                thread.rings.append(payload[1])
            thread.line = number
        elif kind == nccl.TREES:
            thread.rank, thread.trees = payload
            thread.line = number
        elif kind == nccl.VERSION:
            if len(self.versions) < 64:
                self.versions.setdefault(payload, number)
            process.note("version", payload, number)
        elif kind == nccl.BOOTSTRAP:
            process.note("bootstrap", payload, number)
        elif kind == nccl.IB_DEVICES:
            process.lines.setdefault("hcas", number)
            process.hcas.extend(h for h in payload if h not in process.hcas and len(process.hcas) < 64)
        elif kind == nccl.SOCKET_DEVICES:
            process.note("interfaces", payload, number)
        elif kind == nccl.NETWORK:
            process.note("network", payload, number)
        elif kind == nccl.SETTING:
            if len(process.settings) < 64:
                process.settings[payload[0]] = payload[1]
                process.lines.setdefault("settings." + payload[0], number)
        elif kind == nccl.PLUGIN:
            if payload not in process.plugins and len(process.plugins) < 8:
                process.plugins.append(payload)
        elif kind == nccl.GDR_OFF:
            process.lines.setdefault("gdr_disabled", number)
            if payload not in process.gdr and len(process.gdr) < 8:
                process.gdr.append(payload)
        elif kind == nccl.GDR_ON:
            process.values["gdr_enabled"] = True
        elif kind == nccl.NVLS:
            process.note("nvls", payload, number)
        elif kind == nccl.CHANNELS:
            thread.channels = payload
        elif kind == nccl.TIMINGS:
            self._timings(payload, thread)

    def _communicator(self, comm_id: str, nranks: int, number: int) -> Optional[Communicator]:
        key = comm_id or f"{nranks} ranks"
        communicator = self.communicators.get(key)
        if communicator is None:
            if len(self.communicators) >= MAX_COMMUNICATORS:
                self.left_out += 1
                return None
            communicator = self.communicators[key] = Communicator(key, bool(comm_id), nranks, number)
        return communicator

    def _open_communicator(self, number: int) -> Optional[Communicator]:
        """The one for ranks that are never seen to finish, so that nobody says how many there are."""
        known = self.communicators.get("unfinished")
        if known is None and len(self.communicators) < MAX_COMMUNICATORS:
            known = self.communicators["unfinished"] = Communicator("unfinished", False, 0, number)
        return known

    def _comm(self, payload: Tuple[Any, ...], thread: Thread, number: int, at_s: Optional[float]) -> None:
        state, pointer, rank, nranks, device, bus, comm_id = payload
        process = thread.process
        communicator = self._communicator(comm_id, nranks, number)
        thread.rank = rank
        self.last_init_line = number
        if communicator is None:
            thread.edges.clear()
            return
        if len(process.pointers) < 256:
            process.pointers[pointer] = (communicator, rank)
        shown_device = process.device if device is None else device
        self._place(communicator, rank, f"{process.host}/{'?' if shown_device is None else shown_device}/{bus}")
        if state == "start":
            communicator.started[rank] = communicator.started.get(rank, 0) + 1
            thread.started = (number, at_s)
            thread.communicator = None
            return
        communicator.completed[rank] = communicator.completed.get(rank, 0) + 1
        if thread.started is not None and at_s is not None and thread.started[1] is not None:
            self._took(communicator, rank, at_s - thread.started[1])
        process.last = communicator
        self._hand_over(thread, communicator)
        thread.communicator = communicator
        thread.started = None

    def _hand_over(self, thread: Thread, communicator: Communicator) -> None:
        for edge, slot in thread.edges.items():
            if slot is _DROPPED:
                self._dropped -= 1
                continue
            known = communicator.edges.get(edge)
            if known is None:
                communicator.edges[edge] = slot
                communicator.hosts[edge] = thread.process.host
            else:
                known[0] |= slot[0]
                self._edges -= 1
        thread.edges = {}
        if thread.rings and not communicator.rings:
            communicator.rings = thread.rings
        thread.rings = []
        communicator.trees = max(communicator.trees, thread.trees)
        for name, value in thread.channels.items():
            communicator.channels[name] = max(value, communicator.channels.get(name, 0))
            least = f"least {name}"
            communicator.channels[least] = min(value, communicator.channels.get(least, value))
        thread.channels = {}

    @staticmethod
    def _place(communicator: Communicator, rank: int, where: str) -> None:
        if communicator.where.setdefault(rank, where) != where:
            communicator.mixed = True

    def _timings(self, payload: Tuple[Any, ...], thread: Thread) -> None:
        _, rank, nranks, total = payload
        communicator = thread.communicator
        if rank is None or communicator is None or communicator.nranks != nranks:
            return
        self._took(communicator, rank, total)

    @staticmethod
    def _took(communicator: Communicator, rank: int, seconds: float) -> None:
        if seconds >= 0 and (communicator.init_s is None or seconds > communicator.init_s):
            communicator.init_s, communicator.slowest = seconds, rank

    def collective(self, words: List[bytes], process: Process, number: int) -> None:
        """Note a call; what it says is put into words only at the end, and only for the last few of each rank."""
        key = (process, words[16])
        kept = self._ops.get(key)
        if kept is None:
            if len(self._ops) >= MAX_OPS:
                self.left_out += 1
                return
            kept = self._ops[key] = deque(maxlen=OPS_KEPT)
        kept.append((words, number))

    def facts(self, lines: int, total_lines: int) -> List[Any]:
        """Everything that was put together; ``lines`` are NCCL's, ``total_lines`` the file's."""
        made: List[Any] = []
        hosts = {p.host for p in self.processes.values()}
        made.append(NcclLog(self.path, lines, dict(self.versions), len(hosts), len(self.processes), self.left_out))
        self._leftover_threads()
        for process in self.processes.values():
            made.append(process_fact(self.path, process))
        if self._nobody.values or self._nobody.settings:
            made.append(process_fact(self.path, self._nobody))
        ops = self._ops_by_communicator()
        for communicator in self.communicators.values():
            goes_on = total_lines - self.last_init_line > 200
            made.append(communicator_fact(self.path, communicator, ops.get(id(communicator), {}), goes_on))
        return made

    def _leftover_threads(self) -> None:
        """Edges of threads that are not seen to finish go to their process's communicator, or to an open one."""
        partners: List[Tuple[Communicator, int, str]] = []
        for thread in [*self.threads.values(), self._nobody_thread]:
            target = thread.communicator or thread.process.last
            if thread.edges or thread.rings:
                if target is None:
                    ring = max((len(r.split()) for r in thread.rings), default=0)
                    named = {e.source for e in thread.edges} | {e.target for e in thread.edges}
                    nranks = ring or max(named, default=0) + 1
                    same = [c for c in self.communicators.values() if not c.identified and c.nranks >= nranks]
                    target = min(same, key=lambda c: c.nranks) if same else self._open_communicator(thread.line)
                    if target is None:
                        continue
                    if target.nranks < nranks:
                        target.nranks = nranks
                for edge in thread.edges:
                    speaker = edge.target if edge.receives else edge.source
                    bus = edge.buses[1] if edge.receives else edge.buses[0]
                    host = thread.process.host
                    if target.key == "unfinished":
                        self._place(target, speaker, f"{host}/{thread.process.device}/{bus}")
                        if not edge.transport.startswith("NET/"):
                            other, there = (edge.source, 0) if edge.receives else (edge.target, 1)
                            partners.append((target, other, f"{host}/?/{edge.buses[there]}"))
                unfinished = thread.started is None and thread.communicator is None and thread.process.last is None
                if unfinished and thread.rank is not None:
                    target.started[thread.rank] = target.started.get(thread.rank, 0) + 1
                self._hand_over(thread, target)
        # Whoever is reached without the network is on the same host, even if it says nothing itself.
        for communicator, rank, where in partners:
            communicator.where.setdefault(rank, where)

    def _ops_by_communicator(self) -> Dict[int, Dict[int, List[Op]]]:
        ordered: Dict[int, Dict[int, List[Op]]] = {}
        for (process, pointer), kept in self._ops.items():
            known = process.pointers.get(pointer.decode("ascii", "replace"))
            if known is None:
                continue
            communicator, rank = known
            if communicator.identified or max(communicator.completed.values(), default=0) == 1:
                calls = last_calls(kept)
                if calls:
                    ordered.setdefault(id(communicator), {})[rank] = calls
        return ordered
