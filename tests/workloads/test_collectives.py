"""The parts of the work between ranks that need no ranks."""

import socket
import struct

import pytest

from chainerdoctor.workloads.collectives import bootstrap_address, own_device, rounds


@pytest.mark.parametrize("count", [2, 3, 4, 7, 8])
def test_everybody_meets_everybody_once_and_nobody_twice_in_a_round(count: int) -> None:
    players = list(range(10, 10 + count))
    met = []
    for pairs in rounds(players):
        seated = [player for pair in pairs for player in pair]
        assert len(seated) == len(set(seated))
        met += [frozenset(pair) for pair in pairs]
    assert len(met) == len(set(met)) == count * (count - 1) // 2


def unique_id(family: int, offset: int, address: str, port: int) -> tuple:
    """As the C library lays out a sockaddr; NCCL's id has 128 signed chars."""
    if family == socket.AF_INET:
        sockaddr = struct.pack("<H", family) + struct.pack(">H", port) + socket.inet_pton(family, address)
    else:
        sockaddr = struct.pack("<H", family) + struct.pack(">HI", port, 0) + socket.inet_pton(family, address)
    raw = (b"\x91" * offset + sockaddr).ljust(128, b"\0")
    return struct.unpack("128b", raw)


@pytest.mark.parametrize("offset", [0, 8])
@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "10.1.2.250"), (socket.AF_INET6, "fe80::1:2")])
def test_bootstrap_address_of_both_layouts(family: int, address: str, offset: int) -> None:
    assert bootstrap_address(unique_id(family, offset, address, 50001)) == (address, 50001)


def test_an_id_without_an_address_is_none() -> None:
    assert bootstrap_address((0,) * 128) is None
    assert bootstrap_address((-1,) * 128) is None


@pytest.mark.parametrize(
    ("local_rank", "gpus", "visible", "device"),
    [
        (0, 4, None, 0),
        (3, 4, None, 3),
        (4, 4, None, None),  # more ranks than GPUs
        (3, 4, "2", 0),  # the launcher gave each rank one
        (1, 4, "2,3", 1),
        (2, 4, "2,3", None),
        (0, 0, None, None),
        (0, 4, "", None),
    ],
)
def test_the_device_that_a_rank_will_use(local_rank, gpus, visible, device) -> None:
    assert own_device(local_rank, gpus, visible) == device
