"""Progress on standard error, only where a person watches and only once something takes longer than two seconds."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Callable, ContextManager, Iterator, Optional

_PATIENCE_S = 2.0


def rank_progress() -> ContextManager[Optional[Callable[[int, int], None]]]:
    """A callable ``progress(done, total)`` for ranks that have reported; ``None`` where nobody watches."""
    return counting_progress("ranks have reported")


@contextlib.contextmanager
def counting_progress(what: str) -> Iterator[Optional[Callable[[int, int], None]]]:
    """A callable ``progress(done, total)``; ``None`` where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    began_s, shown = time.monotonic(), False

    def show(done: int, total: int) -> None:
        nonlocal shown
        if shown or time.monotonic() - began_s > _PATIENCE_S:
            shown = True
            sys.stderr.write(f"\r{done} of {total} {what}… ")
            sys.stderr.flush()

    try:
        yield show
    finally:
        if shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


@contextlib.contextmanager
def reading_progress() -> Iterator[Optional[Callable[[str, int], None]]]:
    """A callable ``progress(path, bytes read)`` for large files; ``None`` where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    due_s, shown = time.monotonic() + _PATIENCE_S, False

    def show(path: str, size: int) -> None:
        nonlocal due_s, shown
        now_s = time.monotonic()
        if now_s >= due_s:
            due_s, shown = now_s + 0.5, True
            sys.stderr.write(f"\rreading {path[-50:]}: {size / 1e6:,.0f} MB\033[K")
            sys.stderr.flush()

    try:
        yield show
    finally:
        if shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
