"""NCCL's warnings by their wording (NCCL 2.2 to 2.30), the first pattern that fits names the event."""

from __future__ import annotations

import re
from typing import Dict, Tuple

WARNINGS: Tuple[Tuple[str, re.Pattern[str]], ...] = tuple(
    (event, re.compile(pattern))
    for event, pattern in (
        (
            "nccl.version_mismatch",
            r"Mismatched NCCL version detected ?: rank (?P<rank>\d+) version (?P<version>\d+) rank (?P<other>\d+) v"
            r"ersion (?P<other_version>\d+)",
        ),
        (
            "nccl.version_mismatch",
            r"NCCL version mismatch with remote peer (?P<peer>\S+) \(local: (?P<version>[^,]+), remote (?P<other_ve"
            r"rsion>[^)]+)\)",
        ),
        (
            "nccl.duplicate_gpu",
            r"Duplicate GPU detected ?: rank (?P<rank>\d+) and rank (?P<other>\d+) both on CUDA device (?P<bus>\w+)",
        ),
        ("nccl.duplicate_gpu", r"Multiple Ranks are using the same GPU"),
        ("nccl.mismatched_collective", r"Mismatched collective detected.{0,120}around rank (?P<rank>\d+)"),
        (
            "nccl.mismatched_collective",
            r"Mismatched collective detected|collective mismatch error|posted incorrect receive info",
        ),
        (
            "nccl.mismatched_collective",
            r"(?:peer (?P<peer>\S+) )?[Mm]essage truncated ?: rece\w+ (?P<got>\d+)\S* bytes instead of (?P<wanted>\d+)",
        ),
        ("nccl.mismatched_collective", r"Trying to (?:recv|send) to self without a matching"),
        (
            "nccl.ib_completion",
            r"Got completion from peer (?P<peer>\S+) with status=(?:\w+\()?(?P<status>\d+)\)? opcode=(?:\w+\()?\d+"
            r"\)? .{0,60}?vendor[ _]err[ =](?P<vendor>\d+)",
        ),
        (
            "nccl.ib_completion",
            r"Got completion (?:from peer (?P<peer>\S+) )?with error (?P<status>\d+), opcode \d+, len \d+, vendor e"
            r"rr (?P<vendor>\d+)",
        ),
        ("nccl.ib_completion", r"Got (?:completion|CQE) .{0,40}(?:status|error)"),
        # Events that only tell of a change: nothing failed.
        (
            "nccl.ib_notice",
            r"async event ?: ?(?:port active|LID change|P_Key change|SM change|client reregistration|GID table change|"
            r"communication established)|GID table changed",
        ),
        (
            "nccl.ib_async_event",
            r"NET/IB : (?:(?P<device>\S+) )?(?:[Gg]ot (?:non-fatal )?async event"
            r"|async fatal event)[^:]{0,60}: ?(?P<what>.{1,80})",
        ),
        (
            "nccl.memlock",
            r"(?:ibv_reg_mr\w*|ibv_create_cq|ibv_create_qp|ibv_alloc_pd)\S* .{0,40}(?:Cannot allocate memory"
            r"|with error Cannot allocate)",
        ),
        (
            "nccl.shm_full",
            r"(?:posix_fallocate|shm_open|ftruncate|extend|shared memory segment).{0,120}(?:No space left on device"
            r"|Cannot allocate memory|No such file or directory|File too large|Bus error)",
        ),
        (
            "nccl.shm_full",
            r"Error while (?:creating|attaching to) shared memory segment (?P<segment>\S+)(?: \(size (?P<size>\d+)\))?",
        ),
        ("nccl.ipc_failed", r"failed to open CUDA IPC handle ?: (?P<code>\d+) (?P<why>.{1,80})"),
        (
            "nccl.ipc_failed",
            r"(?:failed to peer with device|cudaIpcGetMemHandle failed|cudaIpcOpenMemHandle"
            r"|[Ff]ailed to get fd for|importing? shareable|cuMemImportFromShareableHandle).{0,120}",
        ),
        (
            "nccl.ipc_failed",
            r"Cuda failure (?P<code>\d+)? ?'?(?P<why>peer access is not supported|invalid resource handle"
            r"|mapping of buffer object failed)",
        ),
        ("nccl.nvls_failed", r"Failed to bind NVLink SHARP \(NVLS\)|NVLS.{0,60}(?:failed|CUDA error)"),
        (
            "nccl.connect_failed",
            r"(?:[Cc]onnect to|Call to connect|bootstrap.{0,30}connect).{0,140}(?P<why>Connection refused"
            r"|[Cc]onnection timed out|No route to host|Network is unreachable|Cannot assign requested address"
            r"|Operation timed out|Invalid argument|Connection reset by peer)",
        ),
        ("nccl.connect_failed", r"[Cc]onnect to (?P<peer>\S+) (?:failed|returned)"),
        (
            "nccl.no_interface",
            r"no socket interface found|No (?:usable listening|IP) interface found|no (?:interface"
            r"|device) found(?: after| matching)?",
        ),
        ("nccl.peer_closed", r"Connection closed by remote peer ?(?P<peer>\S+)?"),
        (
            "nccl.peer_closed",
            r"(?:Call to (?:recv|send|read|write)\w*.{0,60}failed ?: ?|recv.{0,40})(?:Connection reset by peer"
            r"|Broken pipe|Connection timed out)",
        ),
        (
            "nccl.outsider",
            r"(?:wrong type (?P<got>-?\d+) != (?P<wanted>-?\d+)|(?:invalid|wrong|incorrect) magic.{0,60}"
            r"|unexpected magic.{0,60}|magic .{0,40}!=)",
        ),
        (
            "nccl.bootstrap_mismatch",
            r"Bootstrap Root ?: (?:mismatch in|rank (?P<rank>\d+) of (?P<nranks>\d+) ranks has already checked in)",
        ),
        ("nccl.no_ibverbs", r"Failed to open libibverbs\.so"),
        ("nccl.no_ib_device", r"NET/IB : (?:No device found|Unable to (?:open|query))"),
        (
            "nccl.invalid_device",
            r"(?:Cuda failure.{0,12}|CUDA_?[Ee]rror.{0,12})'?invalid device ordinal|invalid device count",
        ),
        ("nccl.driver_too_old", r"CUDA driver version is insufficient|CUDA Driver version found is \d+\. Minimum"),
        (
            "nccl.out_of_memory",
            r"Cuda failure.{0,12}'?out of memory|Failed to (?:CUDA|cuda|CUDA host )\w* ?\w* ?\d+ bytes"
            r"|[Oo]ut of memory",
        ),
        ("nccl.cuda_failure", r"Cuda failure (?P<code>\d+)? ?'(?P<why>[^']{1,100})'"),
        ("nccl.no_transport", r"No transport found for rank (?P<rank>\w+)\[\w+\] -> rank (?P<other>\w+)"),
        (
            "nccl.mixed_devices",
            r"Detected mixed local (?:Net|CollNet) device counts|Attempted to (?:connect|merge) incompatible devices",
        ),
        (
            "nccl.invalid_pointer",
            r"is not a valid pointer|allocated on device (?P<got>\d+) mismatchs with NCCL device (?P<wanted>\d+)"
            r"|argument is NULL",
        ),
        ("nccl.fatal_error", r"communicator encountered a fatal error|Comm 0x\w+ is in abort state"),
    )
)


def warned(text: str) -> Tuple[str, Dict[str, str]]:
    """The event's name for the text after ``NCCL WARN``, and the parts that its wording names."""
    text = text[:1000]
    for event, pattern in WARNINGS:
        found = pattern.search(text)
        if found is not None:
            return event, {name: value for name, value in found.groupdict().items() if value}
    return "nccl.warning", {}
