"""Kernel and system log: Xid, SXid, the OOM killer, links, machine checks; also NVIDIA's fabric manager."""

from __future__ import annotations

import re
from typing import Tuple

from chainerdoctor.logs.wordings import Wording, wording

WORDINGS: Tuple[Wording, ...] = (
    wording(
        "kernel.sxid",
        "sxid",
        r"SXid \((?:PCI:)?(?P<gpu>[\w:.]{4,20})\): (?P<sxid>\d+), (?P<what>(?P<severity>Fatal|Non-fatal)\b.{0,80})",
        "sxid",
        "gpu",
        "severity",
    ),
    wording(
        "kernel.sxid",
        "sxid",
        r"SXid \((?:PCI:)?(?P<gpu>[\w:.]{4,20})\): (?P<sxid>\d+), (?P<what>(?!Data|Severity).{0,80})",
        "sxid",
        "gpu",
    ),
    wording(
        "kernel.xid_action",
        "recovery action changed",
        r"Xid \((?:PCI:)?(?P<gpu>[\w:.]{4,20})\): (?P<xid>\d+),.{0,80}recovery action changed from \S+ \((?P<old>[^"
        r")]{1,40})\) to \S+ \((?P<action>[^)]{1,40})\)",
        "gpu",
        "action",
    ),
    wording(
        "kernel.xid",
        "xid (",
        r"(?<!S)Xid \((?:PCI:)?(?P<gpu>[\w:.]{4,20})\): (?P<xid>\d+)(?:,\s?(?P<what>.{0,120}))?",
        "xid",
        "gpu",
    ),
    wording(
        "kernel.fabric_manager",
        "nvswitch",
        r"\[ERROR\].{0,40}detected NVSwitch (?P<severity>non-fatal"
        r"|fatal) error (?P<sxid>\d+).{0,80}?(?:pci bus id (?P<gpu>[\w:.]{4,20}))?",
        "sxid",
        "severity",
    ),
    wording("kernel.fabric_manager", "[error]", r"\[ERROR\] \[tid \d+\] (?P<what>.{1,120})", "severity"),
    wording("kernel.peermem", "nvidia-peermem", r"nvidia-peermem .{0,80}ERROR (?P<what>.{1,100})"),
    wording(
        "kernel.fell_off_bus",
        "fallen off the bus",
        r"GPU (?:at )?(?P<gpu>[\w:.]{4,20}).{0,40}has fallen off the bus",
        "gpu",
    ),
    wording("kernel.rm_init_failed", "adapter failed", r"RmInitAdapter failed|rm_init_adapter failed"),
    wording("kernel.nvidia_mismatch", "api mismatch", r"API mismatch: .{0,120}"),
    wording(
        "kernel.oom",
        "killed process",
        r"(?:Out of memory|Memory cgroup out of memory).{0,40}Killed process (?P<pid>\d+) \((?P<name>[^)]{1,40})\)",
        "name",
    ),
    wording(
        "kernel.oom",
        "killed process",
        r"(?<!: )(?<!memory: )Killed process (?P<pid>\d+) \((?P<name>[^)]{1,40})\)",
        "name",
    ),
    wording(
        "kernel.oom", "out of memory", r"Out of memory: Kill process (?P<pid>\d+) \((?P<name>[^)]{1,40})\)", "name"
    ),
    wording("kernel.oom_invoked", "oom-killer", r"invoked oom-killer|oom-kill:constraint"),
    wording(
        "kernel.link_down",
        "lost carrier",
        r"(?P<device>(?:ib|mlx|roce|hsn|opa|rdma)[\w.]{0,20}): [Ll]ost carrier",
        "device",
    ),
    wording(
        "kernel.link_down",
        "down",
        r"(?P<device>(?:mlx\d_core|mlx\d_ib|hfi\d|ib\d{1,3}|bnxt_en"
        r"|ice) ?[\w.: ]{0,40}?):? .{0,40}(?:[Ll]ink (?:is )?[Dd]own|port \d+ (?:is )?[Dd]own"
        r"|link state.{0,20}[Dd]own)",
        "device",
    ),
    wording(
        "kernel.machine_check",
        "hardware error",
        r"\[Hardware Error\]: .{0,80}(?:[Uu]ncorrect|[Ff]atal|Machine Check Exception)",
    ),
    wording("kernel.machine_check", "edac", r"EDAC .{0,60}\b(?P<count>\d+) UE\b"),
    wording(
        "kernel.pcie_error",
        "pcie bus error",
        r"(?P<device>[\w:.]{7,20}: )?.{0,20}PCIe Bus Error: severity=Uncorrect\w*(?: \((?P<what>[\w-]{1,20})\))?",
        "device",
    ),
    wording(
        "kernel.hung_task",
        "blocked for more than",
        r"task (?P<name>[\w.:/@+-]{1,60}) blocked for more than (?P<seconds>\d+) seconds",
        "name",
    ),
    wording("kernel.soft_lockup", "soft lockup", r"soft lockup - CPU#\d+ stuck for (?P<seconds>\d+)s"),
    wording("kernel.segfault", "segfault at", r"(?P<name>[\w.:/@+-]{1,60})\[\d+\]: segfault at", "name"),
)

#: Lines that are surely a kernel's or a system service's although they say nothing here.
PLAIN = re.compile(
    r"NVRM: |nvidia-nvswitch\d|nvidia-peermem |nvidia \d{4}:|nvidia-uvm:|nvidia-modeset:|mlx\d_core |\[(?:INFO"
    r"|WARNING|ERROR)\] \[tid \d"
)
