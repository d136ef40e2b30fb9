"""Addresses of the network interfaces through the C library (the standard library has no call for them)."""

from __future__ import annotations

import ctypes
import ctypes.util
import socket
from typing import Dict, List


class _Sockaddr(ctypes.Structure):
    _fields_ = [("family", ctypes.c_uint16), ("data", ctypes.c_ubyte * 26)]


class _Ifaddrs(ctypes.Structure):
    pass


_Ifaddrs._fields_ = [
    ("next", ctypes.POINTER(_Ifaddrs)),
    ("name", ctypes.c_char_p),
    ("flags", ctypes.c_uint),
    ("address", ctypes.POINTER(_Sockaddr)),
    ("netmask", ctypes.c_void_p),
    ("broadcast", ctypes.c_void_p),
    ("data", ctypes.c_void_p),
]


def interface_addresses() -> Dict[str, List[str]]:
    """IPv4 and IPv6 addresses by interface, in the kernel's order (the order in which NCCL looks at them).

    Raises:
        OSError: the C library refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    head = ctypes.POINTER(_Ifaddrs)()
    if libc.getifaddrs(ctypes.byref(head)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, "getifaddrs failed")
    found: Dict[str, List[str]] = {}
    try:
        entry = head
        while entry:
            item = entry.contents
            name = (item.name or b"").decode("utf-8", "replace")
            if item.address:
                # IPv4: port (2 bytes), address (4). IPv6: port (2), flow label (4), address (16).
                family, data = item.address.contents.family, bytes(item.address.contents.data)
                if family == socket.AF_INET:
                    found.setdefault(name, []).append(socket.inet_ntop(socket.AF_INET, data[2:6]))
                elif family == socket.AF_INET6:
                    found.setdefault(name, []).append(socket.inet_ntop(socket.AF_INET6, data[6:22]))
            entry = item.next
    finally:
        libc.freeifaddrs(head)
    return found
