"""nvidia-smi: the table, ``-q``, ``--query-gpu … --format=csv``, ``-L`` and ``nvlink -s``."""

from __future__ import annotations

import re
from typing import Dict, List, Optional, Tuple

from chainerdoctor.facts.log import LoggedGpu
from chainerdoctor.logs.sections import MAX_FACTS, Section

_TABLE = re.compile(r"\| NVIDIA-SMI +[\d.]+")
_QUERY = re.compile(r"=+NVSMI LOG=+")
_LIST = re.compile(r"GPU +(\d{1,4}): (.{1,80}?) \(UUID: (?:GPU-[\w-]{8,60}|\S{1,80})\)")
_FIELD = r"[a-z][\w.]{1,80}(?: \[[\w%/]{1,8}\])?"
_CSV = re.compile(r"(?:" + _FIELD + r", ?){1,400}" + _FIELD + r"$")
_CSV_KNOWN = re.compile(
    r"(?:^|, ?)(?:pci\.bus_id|gpu_bus_id|uuid|gpu_uuid|gpu_name|memory\.(?:total|used|free)|utilization\.gpu"
    r"|temperature\.gpu|"
    r"driver_version|pstate|ecc\.|clocks|power\.draw|retired_pages|remapped_rows)"
)

#: Rows kept of one CSV (a logger that samples every second writes millions).
_CSV_ROWS = 256


def opened(text: str) -> Optional[Section]:
    """The section that this line begins, if it does."""
    if _TABLE.match(text):
        return _Table()
    if _QUERY.match(text):
        return _Query()
    if text.startswith("GPU ") and _LIST.match(text):
        return _Links()
    if "," in text and len(text) < 20_000 and text[:1].islower() and _CSV_KNOWN.search(text) and _CSV.match(text):
        return _Csv()
    return None


class _Table(Section):
    """The default output. Three lines a GPU; the first holds name and bus, the others the measured."""

    kind = "nvidia-smi"
    _first = re.compile(
        r"\| *(\d{1,4}) {1,8}(\S.{0,60}?) {1,30}(On|Off|N/A|ERR!) *\| *([0-9A-Fa-f]{4,8}:\w\w:\w\w\.\w"
        r"|\S{1,20}) +(\w{1,4}) *\| *([\d,]+|N/A|Off|ERR!|\S{1,8}) *\|"
    )
    _second = re.compile(
        r"\| ?(?P<fan>\S{1,6}) {1,9}(?P<temp>\S{1,6}) {1,9}(?P<perf>\S{1,6}) {1,20}(?P<power>.{1,24}?) *"
        r"\| *(?P<memory>.{1,30}?) *\| *(?P<util>\S{1,6}) +(?P<mode>.{1,20}?) *\|"
    )

    def __init__(self) -> None:
        super().__init__()
        self._gpu: Optional[Tuple[int, Dict[str, str], Dict[str, int], str, str]] = None
        self._blank = 0

    def feed(self, text: str, number: int) -> bool:
        stripped = text.strip()
        if not stripped:
            self._blank += 1
            return self._blank < 4
        if stripped[0] not in "|+":
            return False
        self._blank = 0
        if "Processes" in text or "PID" in text:
            self._flush()
        first = self._first.match(text)
        if first is not None:
            self._flush()
            values = {"persistence-m": first[3], "volatile uncorr. ecc": first[6]}
            self._gpu = (number, values, dict.fromkeys(values, number), f"GPU{first[1]} {first[4]}", first[2])
            return True
        second = self._second.match(text)
        if second is not None and self._gpu is not None:
            for name, value in second.groupdict().items():
                if name not in self._gpu[1]:
                    self._gpu[1][name] = value.strip()
                    self._gpu[2][name] = number
        return True

    def _flush(self) -> None:
        if self._gpu is not None and len(self.facts) < MAX_FACTS:
            number, values, lines, gpu, name = self._gpu
            self.facts.append(LoggedGpu(self.path, number, "table", gpu, name, values, lines))
        self._gpu = None

    def close(self) -> None:
        self._flush()


class _Query(Section):
    """``nvidia-smi -q``: indentation makes a tree, a GPU's part begins with its bus id."""

    kind = "nvidia-smi -q"
    _gpu_line = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:\w\w:\w\w\.\w|\S{4,40})\s*$")
    _entry = re.compile(r"( {2,60})(\S.{0,80}?) *(?: : ?(.{0,200}))?$")
    _head = re.compile(r"(?:Timestamp|Driver Version|CUDA Version|Attached GPUs) +:")

    def __init__(self) -> None:
        super().__init__()
        self._gpu = ""
        self._line = 0
        self._values: Dict[str, str] = {}
        self._lines: Dict[str, int] = {}
        self._open: List[Tuple[int, str]] = []

    def feed(self, text: str, number: int) -> bool:
        if not text.strip() or self._head.match(text):
            return True
        gpu = self._gpu_line.match(text)
        if gpu is not None:
            self._flush()
            self._gpu, self._line = gpu[1], number
            return True
        entry = self._entry.match(text)
        if entry is None or not self._gpu:
            return entry is not None or number <= self.line + 2
        depth = len(entry[1])
        while self._open and self._open[-1][0] >= depth:
            self._open.pop()
        name = entry[2].strip().lower()
        if entry[3] is None:
            if len(self._open) < 12:
                self._open.append((depth, name))
        elif len(self._values) < 600:
            path = ".".join([o[1] for o in self._open] + [name])
            self._values[path] = entry[3].strip()
            self._lines[path] = number
            # A key with a value can have children all the same ("HW Slowdown : Active").
            self._open.append((depth, name))
        return True

    def _flush(self) -> None:
        if self._gpu and len(self.facts) < MAX_FACTS:
            name = self._values.get("product name", "")
            kept = {k: v for k, v in self._values.items() if _wanted(k)}
            lines = {k: self._lines[k] for k in kept}
            self.facts.append(LoggedGpu(self.path, self._line, "-q", self._gpu, name, kept, lines))
        self._gpu, self._values, self._lines, self._open = "", {}, {}, []

    def close(self) -> None:
        self._flush()


#: Parts of ``-q`` that are worth keeping: what health is judged by, not fan speeds and encoder statistics.
_WANTED = (
    "ecc errors", "retired pages", "remapped rows", "clocks event reasons", "clocks throttle reasons",
    "gpu reset status",
    "gpu recovery action", "performance state", "pci.gpu link info", "fabric", "persistence mode", "mig mode",
    "pci.replays since reset", "ecc mode", "product architecture",
)  # fmt: skip


def _wanted(key: str) -> bool:
    return key.startswith(_WANTED)


class _Csv(Section):
    """``--query-gpu=… --format=csv``: one row a GPU (and sample)."""

    kind = "nvidia-smi csv"

    def __init__(self) -> None:
        super().__init__()
        self._names: List[str] = []
        self._rows: Dict[str, LoggedGpu] = {}

    def feed(self, text: str, number: int) -> bool:
        cells = [cell.strip() for cell in text.split(",")]
        if not self._names:
            self._names = [cell.split(" [")[0].lower() for cell in cells]
            return True
        if len(cells) != len(self._names):
            return False
        values = dict(zip(self._names, cells))
        gpu = next((values[n] for n in ("pci.bus_id", "gpu_bus_id", "uuid", "gpu_uuid", "index") if n in values), "?")
        if gpu in self._rows or len(self._rows) < _CSV_ROWS:
            # The newest sample counts: counters only grow, states change.
            lines = dict.fromkeys(values, number)
            name = values.get("name", values.get("gpu_name", ""))
            self._rows[gpu] = LoggedGpu(self.path, number, "csv", gpu, name, values, lines)
        return True

    def close(self) -> None:
        self.facts.extend(self._rows.values())


class _Links(Section):
    """``nvlink -s`` and ``-L``, which begin alike."""

    kind = "nvidia-smi nvlink"
    _link = re.compile(r"\s*Link (\d{1,3}): (.{1,40})$")
    _off = re.compile(r"NVML: Unable to retrieve NVLink information.{0,80}")

    def __init__(self) -> None:
        super().__init__()
        self._gpu: Optional[Tuple[int, str, str]] = None
        self._links: List[Tuple[int, str]] = []
        self._values: Dict[str, str] = {}
        self._lines: Dict[str, int] = {}

    def feed(self, text: str, number: int) -> bool:
        if not text.strip():
            return number < self.line + 100_000 and self._gpu is not None
        gpu = _LIST.match(text)
        if gpu is not None:
            self._flush()
            self._gpu = (number, f"GPU{gpu[1]}", gpu[2])
            return True
        link = self._link.match(text)
        if link is not None:
            if len(self._links) < 64:
                self._links.append((int(link[1]), link[2].strip()))
                self._lines.setdefault(f"link {link[1]}", number)
            return True
        off = self._off.match(text.strip())
        if off is not None:
            self._values["nvlink"] = off[0]
            self._lines["nvlink"] = number
            return True
        return text.lstrip().startswith("MIG ")

    def _flush(self) -> None:
        if self._gpu is not None and len(self.facts) < MAX_FACTS:
            number, gpu, name = self._gpu
            self.facts.append(
                LoggedGpu(self.path, number, "nvlink", gpu, name, self._values, self._lines, tuple(self._links))
            )
        self._gpu, self._links, self._values, self._lines = None, [], {}, {}

    def close(self) -> None:
        self._flush()
