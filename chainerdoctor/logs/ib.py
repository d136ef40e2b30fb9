"""ibstat and ibstatus: state and rate of InfiniBand and RoCE ports."""

from __future__ import annotations

import re
from typing import Dict, Optional

from chainerdoctor.facts.log import LogEvent, LoggedIbPort
from chainerdoctor.logs.sections import MAX_FACTS, Section

_CA = re.compile(r"CA '([^']{1,60})'")
_DEVICE = re.compile(r"Infiniband device '([^']{1,60})' port (\d{1,3}) status:")
_ENTRY = re.compile(r"\s{1,40}([A-Za-z][\w ]{1,30}?):\s{0,40}(.{0,100})$")
_PORT = re.compile(r"\s{1,40}Port (\d{1,3}):")
_PANIC = re.compile(r"ibpanic: .{1,200}")
_RATE = re.compile(r"(\d{1,5}(?:\.\d{1,3})?)")


def opened(text: str) -> Optional[Section]:
    """The section that this line begins, if it does."""
    return _Ports() if _CA.match(text) or _DEVICE.match(text) or _PANIC.match(text) else None


class _Ports(Section):
    kind = "ibstat"

    def __init__(self) -> None:
        super().__init__()
        self._device = ""
        self._port: Optional[int] = None
        self._line = 0
        self._values: Dict[str, str] = {}

    def feed(self, text: str, number: int) -> bool:
        if not text.strip():
            return True
        ca = _CA.match(text)
        device = None if ca else _DEVICE.match(text)
        if ca is not None or device is not None:
            self._flush()
            self._line = number
            if ca is not None:
                self._device, self._port = ca[1], None
            elif device is not None:
                self._device, self._port = device[1], int(device[2])
            return True
        if _PANIC.match(text):
            self.facts.append(LogEvent("ib.panic", self.path, number, text[:300]))
            return len(self.facts) < MAX_FACTS
        port = _PORT.match(text)
        if port is not None:
            self._flush()
            self._port, self._line = int(port[1]), number
            return True
        entry = _ENTRY.match(text)
        if entry is None:
            return False
        if self._port is not None and len(self._values) < 40:
            self._values[entry[1].strip().lower()] = entry[2].strip()
        return True

    def _flush(self) -> None:
        values = self._values
        if self._port is not None and values and len(self.facts) < MAX_FACTS:
            rate = _RATE.match(values.get("rate", ""))
            self.facts.append(
                LoggedIbPort(
                    self.path,
                    self._line,
                    self._device,
                    self._port,
                    values.get("state", "").split(": ")[-1],
                    (values.get("physical state") or values.get("phys state", "")).split(": ")[-1],
                    float(rate[1]) if rate is not None else None,
                    values.get("link layer") or values.get("link_layer", ""),
                )
            )
        self._values = {}

    def close(self) -> None:
        self._flush()
