"""Progress on standard error, only where a person watches and only once something takes longer than two seconds."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Callable, Iterator, Optional

_PATIENCE_S = 2.0


@contextlib.contextmanager
def rank_progress() -> Iterator[Optional[Callable[[int, int], None]]]:
    """A callable ``progress(done, total)`` for ranks that have reported; ``None`` where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    began_s, shown = time.monotonic(), False

    def show(done: int, total: int) -> None:
        nonlocal shown
        if shown or time.monotonic() - began_s > _PATIENCE_S:
            shown = True
            sys.stderr.write(f"\r{done} of {total} ranks have reported… ")
            sys.stderr.flush()

    try:
        yield show
    finally:
        if shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
