"""CD681: bandwidth breaks in."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclTestsTable
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import shortened
from chainerdoctor.snapshot import Snapshot

#: Sizes at which bandwidth is level on all links that NCCL knows, bytes.
LARGE_BYTES = 32 * 1024**2
#: Below this share of the best it is no noise: repeated runs of nccl-tests differ by a few per cent.
BREAK_IN = 0.7


@rule("CD681", Severity.WARNING, needs=(NcclTestsTable,), since="0.1")
def bandwidth_breaks_in(snapshot: Snapshot) -> Iterator[Finding]:
    """In nccl-tests the bus bandwidth of the largest size is far below that of a smaller one.

    Why it hurts: bandwidth should grow with the size until it is level; a break-in at large sizes means
    throttling, a full buffer, or a link that repeats transfers.

    How to mend it: watch clocks and link counters while the test runs (nvidia-smi dmon -s pct, nvidia-smi
    nvlink -e, perfquery -x).
    """
    for sighting in snapshot.all(NcclTestsTable):
        table = sighting.fact
        large = [(size, bw) for size, bw in zip(table.sizes, table.busbw_gbps) if size >= LARGE_BYTES]
        if len(large) < 3:
            continue
        size, last = max(large)
        best_size, best = max(large, key=lambda pair: pair[1])
        if last < best * BREAK_IN:
            yield Finding(
                shortened(table.devices) or table.path,
                "bandwidth breaks in at the largest size",
                "Watch nvidia-smi dmon -s pct and the link counters while the test runs.",
                (
                    Evidence(
                        f"bus bandwidth at {size:,} bytes",
                        f"{last:g} GB/s",
                        f"about {best:g} GB/s, as at {best_size:,} bytes",
                    ),
                ),
                Location(table.path, table.line),
            )
