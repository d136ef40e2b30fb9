"""In which order the processes of a run's ranks are gone, seen from the process that started them.

A launcher ends all ranks within milliseconds of the first one's death; who died of itself can only be told by looking
at the moment. On Linux a pidfd tells at once; elsewhere, and before Python 3.9, processes are polled.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import threading
from pathlib import Path
from types import TracebackType
from typing import Dict, List, Optional, Type

from chainerdoctor.instrument.activity import spent_ticks
from chainerdoctor.instrument.ring import read_ring
from chainerdoctor.instrument.stall import DEATHS

_LOOK_S = 0.2
_POLL_S = 0.01


class Deaths:
    """Watches, as a context, the ranks that keep a ring in ``folder`` and run on this node."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._node = socket.gethostname()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="chainerdoctor-deaths", daemon=True)
        self._pids: Dict[int, int] = {}
        self._handles: Dict[int, int] = {}
        #: Ranks that were found gone at the same look, in the order of the looks.
        self.order: List[List[int]] = []

    def __enter__(self) -> Deaths:
        self._thread.start()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._stop.set()
        self._thread.join(5)
        if self.order:
            with contextlib.suppress(OSError):
                (self._folder / DEATHS).write_text(json.dumps({"order": self.order}), encoding="utf-8")

    def _run(self) -> None:
        while not self._stop.is_set():
            self._find()
            self._wait()
        self._wait()
        for handle in self._handles.values():
            os.close(handle)

    def _find(self) -> None:
        gone: List[int] = []
        for path in self._folder.glob("rank-*.ring"):
            with contextlib.suppress(OSError, ValueError):
                rank = int(path.stem.partition("-")[2])
                if rank in self._pids:
                    continue
                head = read_ring(path, whole=False).head
                if head.get("node") != self._node:
                    continue
                pid = self._pids[rank] = int(head["pid"])
                if hasattr(os, "pidfd_open"):
                    try:
                        self._handles[rank] = os.pidfd_open(pid)
                    except ProcessLookupError:  # it came and went between two looks
                        gone.append(rank)
        self.order += [gone] if gone else []

    def _wait(self) -> None:
        if not self._handles:
            self._stop.wait(_POLL_S if self._pids else _LOOK_S)
            known = {rank for together in self.order for rank in together}
            gone = [rank for rank, pid in self._pids.items() if rank not in known and spent_ticks(pid) is None]
            self.order += [gone] if gone else []
            return
        poll = select.poll()
        ranks = {handle: rank for rank, handle in self._handles.items()}
        for handle in ranks:
            poll.register(handle, select.POLLIN)
        gone = [ranks[handle] for handle, _ in poll.poll(_LOOK_S * 1000)]
        self.order += [gone] if gone else []
        for rank in gone:
            os.close(self._handles.pop(rank))
