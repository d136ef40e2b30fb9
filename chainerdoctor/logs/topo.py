"""``nvidia-smi topo -m``: the matrix of paths between GPUs and network devices."""

from __future__ import annotations

import re
from typing import Dict, List, Optional

from chainerdoctor.facts.log import LoggedTopology
from chainerdoctor.logs.sections import Section

_DEVICE = re.compile(r"GPU\d{1,3}|NIC\d{1,3}|(?:mlx|hfi|bnxt|efa|rdmap|irdma|roce|hns|ib|cxi|opa)[\w.-]{0,30}")
_PATH = re.compile(r"X|NV\d{1,3}|SYS|SOC|NODE|PHB|PXB|PIX|PSB|NS|N/A|UNK|-")
_ALIAS = re.compile(r"\s*(NIC\d{1,3}): (\S{1,40})$")


def opened(text: str) -> Optional[Section]:
    """The section that this line begins, if it is the matrix' header."""
    if text[:1].isspace() and text.lstrip().startswith("GPU0") and len(text) < 20_000:
        return _Matrix()
    return None


class _Matrix(Section):
    kind = "nvidia-smi topo"

    def __init__(self) -> None:
        super().__init__()
        self._devices: List[str] = []
        self._paths: Dict[str, str] = {}
        self._numa: Dict[str, str] = {}
        self._lines: Dict[str, int] = {}
        self._alias: Dict[str, str] = {}
        self._blank = 0

    def feed(self, text: str, number: int) -> bool:
        words = text.split()
        if not self._devices:
            if words[:1] != ["GPU0"]:
                return False
            for word in words[:1024]:
                if not _DEVICE.fullmatch(word):
                    break
                self._devices.append(word)
            return True
        if not words:
            return True
        if words[0] in self._devices:
            self._row(words, text, number)
            return True
        alias = _ALIAS.match(text)
        if alias is not None:
            self._alias[alias[1]] = alias[2]
            return True
        return text.startswith(("Legend", "NIC Legend")) or (text[:2] == "  " and " = " in text[:12])

    def _row(self, words: List[str], text: str, number: int) -> None:
        name, cells = words[0], words[1 : 1 + len(self._devices)]
        if name in self._lines or not all(_PATH.fullmatch(cell) for cell in cells):
            return
        self._lines[name] = number
        for device, cell in zip(self._devices, cells):
            if cell != "X" and name != device:
                self._paths[f"{name} {device}"] = cell
        rest = text.split("\t")[1 + len(self._devices) :] if "\t" in text else words[1 + len(self._devices) :]
        if len(rest) > 1 and rest[1].strip():
            self._numa[name] = rest[1].strip()[:40]

    def close(self) -> None:
        if not self._lines:
            return

        def named(pair: str) -> str:
            return " ".join(self._alias.get(word, word) for word in pair.split(" "))

        self.facts.append(
            LoggedTopology(
                self.path,
                self.line,
                tuple(named(d) for d in self._devices),
                {named(pair): path for pair, path in self._paths.items()},
                {named(d): numa for d, numa in self._numa.items()},
                {named(d): line for d, line in self._lines.items()},
            )
        )
