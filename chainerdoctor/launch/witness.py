"""The launcher's own child does nothing but watch the agent, which is forked from it.

If the agent dies (the OOM killer, a signal), its witness says so and by which signal. And it stays: Hydra ends every
rank, and drops what they still print, as soon as a process of its own ends without finalising.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import time
from typing import Callable

from chainerdoctor.launch.frames import frames

#: Number of the witness's only message; the agent's own never get that far.
_MESSAGE = 999_999


#: From linux/prctl.h.
_PR_SET_PDEATHSIG = 1
#: Exit status by which the agent asks its witness to stay.
_STAY = 7


def witnessed(agent: Callable[[], bool], rank: int, until_s: float) -> int:
    """Run the agent in a forked child; the exit status for this process, 0 also if the agent died and that was told.

    ``agent()`` says whether this process may end at once: not after an MPI_Init that did not finalise, since the
    launcher takes that for a crash. ``until_s`` is on the monotonic clock: all ends by then, whatever hangs.
    """
    # Hydra tells ranks by SIGUSR1 that another one has ended, on a busy machine even when that one ended well. MPI has a
    # handler for it; this process and the agent would die of it.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            die_with(parent)
            end_at(until_s)
            os._exit(0 if agent() else _STAY)
        finally:
            # An exception has been printed by now; none may run on into the witness's code.
            os._exit(1)
    end_at(until_s)
    _, status = os.waitpid(pid, 0)
    if status == 0:
        return 0
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == _STAY:
        _wait_until_nobody_reads(1, until_s)
        return 0
    how = f"ended by {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else "failed"
    if how == "ended by SIGKILL":
        how += " (from outside, or by the kernel for want of memory: see dmesg)"
    for line in frames(rank, _MESSAGE, {"died": how, "t": time.time()}) * 2:
        os.write(1, line)
    _wait_until_nobody_reads(1, until_s)
    return 0


def end_at(until_s: float) -> None:
    """End this process by then, even while it is stuck in a library's call: SIGALRM's default action does it."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, max(0.05, until_s - time.monotonic()))


def die_with(parent: int) -> None:
    """Have the kernel end this process when the one that forked it ends, however that happens.

    A launcher that is interrupted kills its own child only; an MPI_Init in a process below it would spin on alone.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it ended before the kernel was asked
        os._exit(1)


def _wait_until_nobody_reads(handle: int, until_s: float) -> None:
    poll = select.poll()
    poll.register(handle, 0)  # errors and hang-ups are reported unasked
    while time.monotonic() < until_s and not poll.poll(0):
        time.sleep(0.1)
