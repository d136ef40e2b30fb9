"""Xid numbers of the NVIDIA driver: what they are called and what NVIDIA says to do at once.

Source: docs.nvidia.com/deploy/xid-errors (the Xid catalog, columns "Description" and "Resolution Bucket (Immediate
Action)"), as of 2025. Numbers that the catalog calls unused, and those whose row could not be read again, are left out:
to a reader they are unknown.
"""

from __future__ import annotations

from typing import Dict, Tuple

#: What to do. APPLICATION: the program did something wrong or is its victim; CONSEQUENCE: follows from another Xid;
#: RESET: reset the GPU; RESTART: restart the machine; LINK: NVLink needs looking at; SUPPORT: the hardware's vendor.
APPLICATION, CONSEQUENCE, RESET, RESTART, LINK, SUPPORT = (
    "restart the program",
    "none by itself",
    "reset the GPU",
    "restart the machine",
    "check NVLink",
    "call support",
)

XIDS: Dict[int, Tuple[str, str]] = {
    8: ("GPU stopped processing", APPLICATION),
    11: ("invalid or corrupted push buffer stream", APPLICATION),
    13: ("graphics engine exception", APPLICATION),
    25: ("invalid or illegal push buffer stream", APPLICATION),
    31: ("GPU memory page fault", APPLICATION),
    32: ("invalid or corrupted push buffer stream", APPLICATION),
    43: ("GPU stopped processing", CONSEQUENCE),
    45: ("preemptive cleanup after an earlier error", CONSEQUENCE),
    46: ("GPU stopped processing", RESET),
    48: ("double-bit ECC error", RESET),
    62: ("internal micro-controller halt", RESET),
    63: ("memory row remapping recorded", CONSEQUENCE),
    64: ("memory row remapping failed", RESET),
    74: ("NVLink error", LINK),
    79: ("GPU has fallen off the bus", RESTART),
    92: ("high rate of single-bit ECC errors", CONSEQUENCE),
    94: ("contained memory error", APPLICATION),
    95: ("uncontained memory error", RESET),
    109: ("context switch timeout", RESET),
    110: ("security fault", RESET),
    119: ("GSP firmware does not answer", RESET),
    120: ("GSP firmware error", RESET),
    136: ("link training failed", RESET),
    137: ("NVLink access by the program refused", APPLICATION),
    140: ("unrecovered ECC error", RESET),
    143: ("GPU initialisation error", RESET),
    144: ("NVLink SAW error", LINK),
    145: ("NVLink RLW error", LINK),
    146: ("NVLink TLW error", LINK),
    147: ("NVLink TREX error", LINK),
    148: ("NVLink NVLPW_CTRL error", LINK),
    149: ("NVLink NETIR error", LINK),
    150: ("NVLink MSE error", LINK),
    151: ("key rotation error", RESTART),
    155: ("NVLink software-defined error", RESET),
    156: ("resource retired", RESET),
    157: ("resource could not be retired", SUPPORT),
    158: ("GPU fatal timeout", RESET),
    171: ("uncorrectable DRAM error (goes with Xid 48)", CONSEQUENCE),
    172: ("uncorrectable SRAM error (goes with Xid 48)", CONSEQUENCE),
}

#: Retired pages from which NVIDIA replaces a GPU.
#: Source: docs.nvidia.com/deploy/dynamic-page-retirement, "RMA policy for retired pages".
RETIRED_PAGES_FOR_REPLACEMENT = 60
