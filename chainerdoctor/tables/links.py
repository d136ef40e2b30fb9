"""What links can carry."""

from __future__ import annotations

from typing import Dict

#: PCIe generation → GB/s of one lane in one direction: 2.5 and 5 GT/s with 8b/10b, 8 to 32 GT/s with 128b/130b coding,
#: 64 GT/s in flits of 242 bytes in 256 (PCI Express Base Specification, revisions 1 to 6).
PCIE_LANE_GBS: Dict[int, float] = {
    1: 2.5 * 8 / 10 / 8,
    2: 5.0 * 8 / 10 / 8,
    3: 8.0 * 128 / 130 / 8,
    4: 16.0 * 128 / 130 / 8,
    5: 32.0 * 128 / 130 / 8,
    6: 64.0 * 242 / 256 / 8,
}
