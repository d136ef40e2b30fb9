"""Asking devices side by side, with patience for each, and keeping account of what they refused."""

from __future__ import annotations

import threading
import time
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Type, TypeVar, Union

from chainerdoctor.adapters.nvml import Device
from chainerdoctor.adapters.nvml_readings import GPU_IS_LOST, Refusal
from chainerdoctor.facts import TIMEOUT, Fact

T = TypeVar("T")

_RESET_REQUIRED = 16  # nvmlReturn_t
_MOST_HANGS = 2


class Asker:
    """Asks one device and notes every refusal; calling it gives the value or ``None``."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.refused: List[Tuple[Refusal, str]] = []
        self.facts: List[Fact] = []
        self.raised: Optional[BaseException] = None
        self.thread: Optional[threading.Thread] = None

    def __call__(self, read: Callable[[], Union[T, Refusal]], kind: Type[Fact]) -> Optional[T]:
        """``kind`` is the fact that lacks something if the device refuses."""
        reading = read()
        if isinstance(reading, Refusal):
            self.refused.append((reading, kind.kind))
            return None
        return reading


class Questions:
    """What devices were asked so far, and what they refused or left unanswered."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._refused: Dict[Tuple[str, str, str], Tuple[List[int], List[str]]] = {}
        #: Devices that NVML calls lost, with the first refusal that said so.
        self.lost: Dict[int, Refusal] = {}
        self._hung: Dict[int, int] = {}

    def one(
        self, call: str, ask: Callable[[], Union[T, Refusal]], patience_s: Optional[float] = None
    ) -> Union[T, Refusal]:
        """The answer, or a refusal after the patience (or ``patience_s``). What ``ask`` raises is raised here."""
        limit_s = self._patience_s if patience_s is None else patience_s
        answers: List[Union[T, Refusal]] = []
        raised: List[BaseException] = []

        def run() -> None:
            try:
                answers.append(ask())
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(limit_s)
        if raised:
            raise raised[0]
        return answers[0] if answers else Refusal(call, TIMEOUT, f"no answer in {limit_s:g} s")

    def each(
        self, devices: Iterable[Device], stage: Callable[[Asker], Iterator[Fact]], kind: Type[Fact]
    ) -> Iterator[Fact]:
        """The facts of a stage of every device that still answers, in the devices' order; ``kind`` is what it gives."""
        askers = []
        for device in devices:
            if self._hung.get(device.index, 0) >= _MOST_HANGS:
                why = Refusal("NVML", TIMEOUT, f"not asked again after {_MOST_HANGS} calls without an answer")
                self.refuse(why, device.index, kind.kind)
            elif device.index not in self.lost:
                askers.append(Asker(device))
        for asker in askers:
            asker.thread = threading.Thread(target=_run, args=(asker, stage), daemon=True)
            asker.thread.start()
        began_s = time.monotonic()
        for asker in askers:
            assert asker.thread is not None
            index = asker.device.index
            # Whoever hung before gets one more short chance: often a single call is at fault, not the device.
            patience_s = self._patience_s / 4 if index in self._hung else self._patience_s
            asker.thread.join(max(0.0, began_s + patience_s - time.monotonic()))
            hung = asker.thread.is_alive()
            for refusal, lacking in list(asker.refused):
                self.refuse(refusal, index, lacking)
            yield from list(asker.facts)
            if hung:
                self._hung[index] = self._hung.get(index, 0) + 1
                self.refuse(Refusal(asker.device.calling, TIMEOUT, f"no answer in {patience_s:g} s"), index, kind.kind)
            elif asker.raised is not None:
                raise asker.raised

    def refuse(self, refusal: Refusal, index: int, kind: str) -> None:
        """Note that device ``index`` refused a call, and which kind of fact lacks it."""
        if refusal.code in (GPU_IS_LOST, _RESET_REQUIRED):
            self.lost.setdefault(index, refusal)
            return
        indices, kinds = self._refused.setdefault((refusal.reason, refusal.call, refusal.detail), ([], []))
        if index not in indices:
            indices.append(index)
        if kind not in kinds:
            kinds.append(kind)

    def refusals(self) -> Iterator[Tuple[Tuple[str, str], Tuple[str, ...]]]:
        """((reason, detail), kinds) for each call that was refused, naming the devices."""
        for (reason, call, detail), (indices, kinds) in self._refused.items():
            numbers = ", ".join(str(index) for index in sorted(indices))
            yield (reason, f"{call}: {detail} (GPU {numbers})"), tuple(kinds)


def _run(asker: Asker, stage: Callable[[Asker], Iterator[Fact]]) -> None:
    try:
        for fact in stage(asker):
            asker.facts.append(fact)
    except BaseException as error:
        asker.raised = error
