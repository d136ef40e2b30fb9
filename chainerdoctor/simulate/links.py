"""The parts of a scenario between GPUs: topology and peer access of pairs, NVLinks, and MIG devices."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from chainerdoctor.simulate.values import ValueProblem, parse_amount

SECTIONS = ("pair", "link", "mig")
_EXAMPLES = {"pair": "[pair 0-1]", "link": "[link 2:5]", "mig": "[mig 0:1]"}
_MOST_LINKS = 18  # SIM_LINKS in csrc/scenario.h
_MOST_MIGS = 7  # SIM_MIGS

#: NVML's topology levels by nvidia-smi's names.
TOPOLOGY = {"PIX": 10, "PXB": 20, "PHB": 30, "NODE": 40, "SYS": 50}
#: NVML's peer-access states (nvml.h, nvmlGpuP2PStatus_t).
P2P = {
    "ok": 0,
    "chipset_not_supported": 1,
    "gpu_not_supported": 2,
    "topology_not_supported": 3,
    "disabled_by_regkey": 4,
    "not_supported": 5,
    "unknown": 6,
}
_P2P_KEYS = ("p2p_read", "p2p_write", "p2p_nvlink", "p2p_atomics", "p2p_pci")


class Setter(NamedTuple):
    """What a section accepts: its keys, and a function that takes one."""

    keys: Sequence[str]
    put: Callable[[str, str], None]


def select(text: str, count: int) -> List[int]:
    """The numbers that ``*``, ``2``, ``0-3`` or ``0,2`` stand for.

    Raises:
        ValueProblem: something else, or a number that is not below ``count``.
    """
    if text == "*":
        return list(range(count))
    chosen: List[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None:
            raise ValueProblem(f"{text!r} chooses nothing; write *, 2, 0-3 or 0,2")
        first = int(match.group(1))
        chosen += range(first, int(match.group(2) or first) + 1)
    outside = [index for index in chosen if index >= count]
    if outside:
        raise ValueProblem(f"there is no GPU {outside[0]}: the scenario has {count} (numbered from 0)")
    return chosen


def choice(text: str, names: Dict[str, int], what: str) -> int:
    """The number of a name.

    Raises:
        ValueProblem: not one of the names.
    """
    if text not in names:
        raise ValueProblem(f"{text!r} is no {what}; there are {', '.join(names)}")
    return names[text]


def _whole(text: str) -> int:
    if not re.fullmatch(r"\d+", text):
        raise ValueProblem(f"{text!r} is not a whole number")
    return int(text)


@dataclass
class Pair:
    """How two GPUs see each other, as NVML's numbers."""

    topology: int = TOPOLOGY["PXB"]
    p2p: Dict[str, int] = field(default_factory=lambda: dict.fromkeys(_P2P_KEYS, 0))


@dataclass
class Link:
    """One NVLink. ``remote`` is a GPU's index, or -1 for an NVSwitch."""

    remote: int
    down: bool = False
    crc_errors: int = 0
    replay_errors: int = 0
    recovery_errors: int = 0


@dataclass
class Mig:
    """One MIG device."""

    uuid: str
    gpu_instance: int
    compute_instance: int = 0
    memory_total: int = 10 << 30
    memory_used: int = 0


class Wiring:
    """Everything between the GPUs of one scenario."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.pairs = {(a, b): Pair() for a in range(count) for b in range(a + 1, count)}
        self.links = {
            (gpu, link): Link((gpu + 1 + link % (count - 1)) % count if count > 1 else -1)
            for gpu in range(count)
            for link in range(_MOST_LINKS)
        }
        self.migs: Dict[Tuple[int, int], Mig] = {}

    def setter(self, head: Sequence[str]) -> Optional[Setter]:
        """What a section of this module accepts; None if the section is not of this module.

        Raises:
            ValueProblem: of this module, but it names no part that there is.
        """
        kind = head[0]
        if kind not in SECTIONS:
            return None
        if len(head) != 2:
            raise ValueProblem(f"write {_EXAMPLES[kind]}")
        return {"pair": self._pair, "link": self._link, "mig": self._mig}[kind](head[1])

    def _pair(self, where: str) -> Setter:
        match = re.fullmatch(r"(\d+)-(\d+)", where)
        if where == "*":
            chosen = list(self.pairs.values())
        elif match is None or match.group(1) == match.group(2):
            raise ValueProblem(f"{where!r} is no pair; write * or 0-1")
        else:
            a, b = sorted(select(f"{match.group(1)},{match.group(2)}", self.count))
            chosen = [self.pairs[a, b]]

        def put(key: str, value: str) -> None:
            for pair in chosen:
                if key == "topology":
                    pair.topology = choice(value, TOPOLOGY, "topology")
                else:
                    pair.p2p[key] = choice(value, P2P, "state of peer access")

        return Setter(("topology", *_P2P_KEYS), put)

    def _link(self, where: str) -> Setter:
        gpu_text, _, link_text = where.partition(":")
        chosen = [
            self.links[gpu, link] for gpu in select(gpu_text, self.count) for link in _select_links(link_text or "*")
        ]

        def put(key: str, value: str) -> None:
            number = choice(value, {"up": 0, "down": 1}, "state") if key == "state" else 0
            if key == "remote":
                number = self._remote(value)
            elif key != "state":
                number = _whole(value)
            for link in chosen:
                setattr(link, {"state": "down"}.get(key, key), bool(number) if key == "state" else number)

        return Setter(("state", "remote", "crc_errors", "replay_errors", "recovery_errors"), put)

    def _remote(self, value: str) -> int:
        if value == "switch":
            return -1
        match = re.fullmatch(r"gpu (\d+)", value)
        if match is None:
            raise ValueProblem(f"{value!r} is no end of a link; write switch or gpu 1")
        return select(match.group(1), self.count)[0]

    def _mig(self, where: str) -> Setter:
        match = re.fullmatch(r"(\d+):(\d+)", where)
        if match is None:
            raise ValueProblem(f"{where!r} is no MIG device; write 0:1 (GPU 0, device 1)")
        gpu, index = select(match.group(1), self.count)[0], int(match.group(2))
        if index >= _MOST_MIGS:
            raise ValueProblem(f"a GPU has at most {_MOST_MIGS} MIG devices, numbered from 0")
        if index and (gpu, index - 1) not in self.migs:
            raise ValueProblem(f"[mig {gpu}:{index}] needs [mig {gpu}:{index - 1}] before it")
        mig = Mig(f"MIG-5111a7ed-0000-4000-{gpu:04x}-{index:012x}", index + 1)
        self.migs[gpu, index] = mig

        def put(key: str, value: str) -> None:
            if key == "uuid":
                mig.uuid = value
            elif key.startswith("memory_"):
                setattr(mig, key, int(parse_amount(value, "bytes")))
            else:
                setattr(mig, key, _whole(value))
            if mig.memory_used > mig.memory_total:
                raise ValueProblem("memory_used is more than memory_total")

        return Setter(("uuid", "gpu_instance", "compute_instance", "memory_total", "memory_used"), put)

    def as_plan(self) -> Iterable[str]:
        """The statements for csrc/scenario.c."""
        for (a, b), pair in self.pairs.items():
            yield f"pair {a} {b} {pair.topology} " + " ".join(str(pair.p2p[key]) for key in _P2P_KEYS)
        for (gpu, index), link in self.links.items():
            counters = f"{link.crc_errors} {link.replay_errors} {link.recovery_errors}"
            yield f"link {gpu} {index} {int(link.down)} {link.remote} {counters}"
        for (gpu, _), mig in sorted(self.migs.items()):
            instances = f"{mig.gpu_instance} {mig.compute_instance}"
            yield f"mig {gpu} {instances} {mig.memory_total} {mig.memory_used} {mig.uuid}"


def _select_links(text: str) -> List[int]:
    try:
        return select(text, _MOST_LINKS)
    except ValueProblem:
        raise ValueProblem(f"{text!r} chooses no NVLink; write *, 5, 0-3 or 0,2, below {_MOST_LINKS}") from None
