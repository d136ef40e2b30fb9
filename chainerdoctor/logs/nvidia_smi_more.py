"""nvidia-smi's rarer forms: XML (``-q -x``) and the scrolling monitors (``dmon``, ``pmon``)."""

from __future__ import annotations

import re
from typing import Dict, List, Optional

from chainerdoctor.facts.log import LogEvent, LoggedGpu
from chainerdoctor.logs.sections import MAX_FACTS, Section

_MONITOR = re.compile(r"# gpu +(?:pwr|pid|sm|rxpci|mclk|gtemp|fb)\b")
_MONITOR_ROW = re.compile(r" +\d{1,4}(?: +(?:-|\d{1,9}|[A-Za-z+]{1,3}|N/A)){2,40}(?: +\S.{0,60})?$|# Idx ")
_FAILED = re.compile(
    r"NVIDIA-SMI has failed because|Failed to initialize NVML: |Unable to determine the device handle for |"
    r"No devices were found$"
)
_DEEPEST = 12

#: XML name → what ``-q`` calls it, where the two differ by more than underscores.
_AS_IN_Q = {
    "remapped rows.remapped row pending": "remapped rows.pending",
    "remapped rows.remapped row failure": "remapped rows.remapping failure occurred",
    "retired pages.pending blacklist": "retired pages.pending page blacklist",
    "retired pages.pending retirement": "retired pages.pending page blacklist",
    "retired pages.multiple single bit retirement.retired count": "retired pages.single bit ecc",
    "retired pages.double bit retirement.retired count": "retired pages.double bit ecc",
}
_KEPT = ("ecc errors", "retired pages", "remapped rows", "clocks event reasons", "clocks throttle reasons", "gpu reset")


def opened(text: str) -> Optional[Section]:
    """The section that this line begins, if it does."""
    start = text[:16]
    if start.startswith("<nvidia_smi_log"):
        return _Xml()
    if text[:1] in "NFU" and _FAILED.match(text):
        return _Failed()
    return _Monitor() if start[:5] == "# gpu" and _MONITOR.match(text) else None


class _Xml(Section):
    """One element a line, as nvidia-smi writes it. A real XML parser would want the whole file at once."""

    kind = "nvidia-smi xml"
    _value = re.compile(r"\s*<(\w{1,60})>([^<]{0,200})</\1>\s*$")
    _open = re.compile(r'\s*<(\w{1,60})(?: id="([^"]{1,40})")?>\s*$')
    _close = re.compile(r"\s*</(\w{1,60})>\s*$")

    def __init__(self) -> None:
        super().__init__()
        self._path: List[str] = []
        self._gpu = ""
        self._line = 0
        self._values: Dict[str, str] = {}
        self._lines: Dict[str, int] = {}

    def feed(self, text: str, number: int) -> bool:
        value = self._value.match(text)
        if value is not None:
            if self._gpu and len(self._values) < 600:
                key = ".".join([*self._path, value[1]]).replace("_", " ").lower()
                key = _AS_IN_Q.get(key, key)
                self._values[key] = value[2].strip()
                self._lines[key] = number
            return True
        begun = self._open.match(text)
        if begun is not None:
            if begun[1] == "gpu" and begun[2]:
                self._flush()
                self._gpu, self._line = begun[2], number
            elif begun[1] != "nvidia_smi_log" and len(self._path) < _DEEPEST:
                self._path.append(begun[1])
            return True
        ended = self._close.match(text)
        if ended is not None:
            if ended[1] == "gpu":
                self._flush()
            elif self._path and self._path[-1] == ended[1]:
                self._path.pop()
            return True
        return text.lstrip().startswith("<") or not text.strip()

    def _flush(self) -> None:
        if self._gpu and len(self.facts) < MAX_FACTS:
            kept = {k: v for k, v in self._values.items() if k.startswith(_KEPT)}
            lines = {k: self._lines[k] for k in kept}
            name = self._values.get("product name", "")
            self.facts.append(LoggedGpu(self.path, self._line, "-q -x", self._gpu, name, kept, lines))
        self._gpu, self._path, self._values, self._lines = "", [], {}, {}

    def close(self) -> None:
        self._flush()


class _Failed(Section):
    """nvidia-smi's own error messages."""

    kind = "nvidia-smi"

    def feed(self, text: str, number: int) -> bool:
        if _FAILED.match(text) is None or len(self.facts) >= MAX_FACTS:
            return False
        self.facts.append(LogEvent("smi.failed", self.path, number, text[:300]))
        return True

    def close(self) -> None:
        """Each line is a fact of its own already."""


class _Monitor(Section):
    """Rows of a monitor: recognised, so that they do not count as unknown; there is nothing in them to judge."""

    kind = "nvidia-smi dmon"

    def feed(self, text: str, number: int) -> bool:
        return text[:5] == "# gpu" or _MONITOR_ROW.match(text) is not None

    def close(self) -> None:
        """Nothing was gathered."""
