"""What logs say: NCCL, launchers, the kernel, nvidia-smi, ibstat, nccl-tests and Python tracebacks.

These facts are read by ``chainerdoctor.logs``. Of what repeats, the first place and a count are kept.
Line numbers count from 1. Times are seconds since the epoch, ``None`` where the log prints none that can be placed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Optional, Tuple

from chainerdoctor.facts import Fact


@dataclass(frozen=True)
class LogFile(Fact):
    """One file (or standard input, ``-``) and how much of it was understood.

    ``kinds`` names what the file holds ("NCCL", "kernel", …), the most frequent first; empty if nothing was known.
    ``unknown_lines`` are lines that belong to none of the kinds, such as training output. ``damage`` says in words why
    the file was read in part (cut gzip stream, over-long lines), empty if it was read whole.
    """

    path: str
    size_bytes: int
    lines: int
    unknown_lines: int
    kinds: Tuple[str, ...]
    damage: Tuple[str, ...] = ()


@dataclass(frozen=True)
class LogsRecognised(Fact):
    """Every file that was given turned out to be of a known kind."""

    files: int


@dataclass(frozen=True)
class LogEvent(Fact):
    """A message that is known by its wording, with the place where it first stands.

    ``event`` is the message's name in ``chainerdoctor.logs`` ("nccl.ib_completion"), ``text`` the line without
    launcher prefix, at most 300 characters. ``count`` counts all lines of this event with the same ``detail`` key,
    ``hosts`` and ``ranks`` hold the first few who said it. ``detail`` holds the parts that the wording names.
    """

    event: str
    path: str
    line: int
    text: str
    count: int = 1
    hosts: Tuple[str, ...] = ()
    ranks: Tuple[int, ...] = ()
    at_s: Optional[float] = None
    detail: Dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NcclLog(Fact):
    """The NCCL part of one file. ``versions`` maps a version to the line that first names it."""

    path: str
    lines: int
    versions: Dict[str, int]
    hosts: int
    processes: int
    left_out: int = 0


@dataclass(frozen=True)
class NcclProcess(Fact):
    """One process (``host:pid``) as its NCCL lines describe it.

    ``interfaces`` and ``hcas`` are names in NCCL's order ("eth0", "mlx5_0:1/IB"); ``bootstrap`` is
    ``(interface, address)``. ``gdr_disabled`` quotes where GPUDirect RDMA was refused, ``gdr_enabled`` says that it was
    granted for some card. ``lines`` maps the name of a field to the line where it was read.
    """

    path: str
    host: str
    pid: int
    device: Optional[int]
    version: Optional[str] = None
    network: Optional[str] = None
    bootstrap: Tuple[Tuple[str, str], ...] = ()
    interfaces: Tuple[Tuple[str, str], ...] = ()
    hcas: Tuple[str, ...] = ()
    plugins: Tuple[str, ...] = ()
    settings: Dict[str, str] = field(default_factory=dict)
    gdr_disabled: Tuple[str, ...] = ()
    gdr_enabled: bool = False
    nvls: Optional[bool] = None
    lines: Dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class NcclEdge(Fact):
    """``source`` sends to ``target`` (ranks of the communicator) over ``channels`` channels by ``transport``.

    ``transport`` is as NCCL prints it without the device ("P2P/IPC", "SHM", "NET/IB"), ``device`` the number of the
    network device (``None`` inside a node) and ``gdr`` whether the edge says GDRDMA. ``host`` is that of the speaker.
    """

    source: int
    target: int
    transport: str
    channels: int
    device: Optional[int] = None
    gdr: bool = False
    host: str = ""
    line: int = 0


@dataclass(frozen=True)
class NcclCommunicator(Fact):
    """One communicator, put together from the lines of its ranks.

    ``id`` is NCCL's commId where the version prints it (2.17 and later); before, communicators of one size are told
    apart only by the order of their ranks, and ``identified`` is false; ``mixed`` then says that one rank was seen in
    two places, so that this is more than one communicator (or run). ``finished`` and ``unfinished`` are ranks
    whose initialisation did (not) come to its end in the log. ``where`` maps a rank to ``host/device/bus``.
    ``init_s`` is the longest duration of an initialisation and ``slowest`` its rank. ``last_ops`` maps a rank to
    its last collective's opCount; ``mismatch`` holds two ranks that disagree on one opCount, as ``(rank, text, line)``
    twice and the opCount. ``channels`` maps a kind of channel ("coll", "p2p", "nvls") to the largest number that a
    rank printed, and "least coll" and so on to the smallest. ``log_goes_on`` says that many lines follow the last
    one about an initialisation.
    """

    id: str
    identified: bool
    nranks: int
    path: str
    line: int
    instances: int = 1
    mixed: bool = False
    finished: Tuple[int, ...] = ()
    unfinished: Tuple[int, ...] = ()
    where: Dict[str, str] = field(default_factory=dict)
    edges: Tuple[NcclEdge, ...] = ()
    rings: Tuple[str, ...] = ()
    trees: int = 0
    channels: Dict[str, int] = field(default_factory=dict)
    init_s: Optional[float] = None
    slowest: Optional[int] = None
    last_ops: Dict[str, int] = field(default_factory=dict)
    last_texts: Dict[str, str] = field(default_factory=dict)
    last_lines: Dict[str, int] = field(default_factory=dict)
    mismatch: Tuple[str, ...] = ()
    log_goes_on: bool = False


@dataclass(frozen=True)
class LauncherLog(Fact):
    """Output of mpirun, mpiexec, prterun, Hydra or srun in one file. ``flavours`` are the launchers recognised."""

    path: str
    lines: int
    flavours: Tuple[str, ...]


@dataclass(frozen=True)
class KernelLog(Fact):
    """Kernel or system log lines (dmesg, journal, syslog, fabric manager) in one file."""

    path: str
    lines: int


@dataclass(frozen=True)
class PythonLog(Fact):
    """Output of a Python training program in one file; ``tracebacks`` counts their first lines."""

    path: str
    lines: int
    tracebacks: int


@dataclass(frozen=True)
class LoggedGpu(Fact):
    """One GPU as nvidia-smi prints it (table, ``-q``, CSV or ``nvlink -s``).

    ``values`` holds what was printed, by the dotted path of ``-q`` ("remapped rows.pending") or by the column's name;
    keys are lower case. ``lines`` maps a key to its line; ``links`` are NVLinks as ``(number, speed text)``.
    """

    path: str
    line: int
    form: str
    gpu: str
    name: str
    values: Dict[str, str] = field(default_factory=dict)
    lines: Dict[str, int] = field(default_factory=dict)
    links: Tuple[Tuple[int, str], ...] = ()


@dataclass(frozen=True)
class LoggedTopology(Fact):
    """A matrix of ``nvidia-smi topo -m``: ``paths`` maps ``"GPU0 mlx5_0"`` to ``NV12``, ``PIX``, ``SYS`` …"""

    path: str
    line: int
    devices: Tuple[str, ...]
    paths: Dict[str, str]
    numa: Dict[str, str] = field(default_factory=dict)
    lines: Dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LoggedIbPort(Fact):
    """One port as ibstat or ibstatus prints it; ``rate_gbps`` is gigabits per second."""

    path: str
    line: int
    device: str
    port: int
    state: str
    physical: str
    rate_gbps: Optional[float]
    layer: str


@dataclass(frozen=True)
class NcclTestsTable(Fact):
    """A result table of nccl-tests. ``sizes`` are bytes, ``busbw_gbps`` GB/s (1e9 bytes/s), both out of place.

    ``wrong`` counts elements that came out wrong over all rows, ``None`` if the test did not check.
    """

    path: str
    line: int
    devices: Tuple[str, ...]
    sizes: Tuple[int, ...]
    busbw_gbps: Tuple[float, ...]
    wrong: Optional[int]
    out_of_bounds: Optional[int]
    average_gbps: Optional[float]


@dataclass(frozen=True)
class StageLog(Fact):
    """A record of training stages against which log lines were laid. Times are seconds since the epoch."""

    path: str
    entries: int
    from_s: float
    to_s: float


@dataclass(frozen=True)
class StagedLine(Fact):
    """A timed line or a silence of the log, with the training stage that was running then.

    ``gap_s`` is how long the log was silent before this line, 0 for an event. ``rank`` is the stage's, ``None`` if
    the stage log does not say.
    """

    path: str
    line: int
    at_s: float
    event: str
    text: str
    gap_s: float
    iteration: int
    phase: str
    rank: Optional[int] = None
