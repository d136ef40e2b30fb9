"""One NCCL message (what stands after ``NCCL INFO``) → what it says. No state: the same bytes mean the same thing.

Forms are those of NCCL 2.2 to 2.30 (NVIDIA/nccl: src/init.cc, src/transport/*.cc, src/misc/socket.cc, src/graph).
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, Optional, Tuple

#: Kinds of message. DULL is known to be NCCL's and says nothing that a fact needs.
(
    DULL,
    EDGE,
    RING,
    TREES,
    COMM,
    VERSION,
    BOOTSTRAP,
    IB_DEVICES,
    SOCKET_DEVICES,
    NETWORK,
    SETTING,
    PLUGIN,
    GDR_OFF,
    GDR_ON,
    NVLS,
    CHANNELS,
    TIMINGS,
    COLLECTIVE,
    EVENT,
) = range(19)

Message = Tuple[int, Any]

_DULL: Message = (DULL, None)


class Edge:
    """A connection between two ranks; equal connections are one object, so that they hash by identity."""

    __slots__ = ("source", "target", "transport", "device", "gdr", "receives", "buses")

    def __init__(
        self,
        source: int,
        target: int,
        transport: str,
        device: Optional[int],
        gdr: bool,
        receives: bool,
        buses: Tuple[str, str],
    ) -> None:
        self.source = source
        self.target = target
        self.transport = transport
        self.device = device
        self.gdr = gdr
        self.receives = receives
        self.buses = buses


_EDGE = re.compile(
    rb"(?:Channel|Ring) (\d{1,4})(?:/\d{1,4})? : (\d{1,7})(?:\[(\w{1,16})\])? -> (\d{1,7})(?:\[(\w{1,16})\])? "
    rb"(?:\[(send|receive)\] )?via ([^\r]{1,100})"
)
_NET = re.compile(r"NET/(?P<name>[^/]{1,60})/(?P<device>\d{1,4})(?:\(\d{1,7}\))?(?P<rest>.*)")
_RING = re.compile(rb"(?:Channel|Ring) (\d{1,4})(?:/(\d{1,4}))? : +(\d[\d ]*)\r?$")
_TREE = re.compile(rb"Trees? .*?->(\d{1,7})->")
_COMM = re.compile(
    rb"(?:(?P<call>\w{1,40}) )?comm (?P<pointer>0x[0-9a-f]{1,16}) rank (?P<rank>\d{1,7}) n[rR]anks (?P<nranks>\d{1,7})"
    rb"(?: cudaDev (?P<device>\d{1,4}))?(?: nvmlDev \d{1,4})?(?: busId (?P<bus>\w{1,16}))?(?P<rest>[^\r]*)"
)
_COMM_ID = re.compile(rb"commId (0x[0-9a-f]{1,16})")
_VERSION = re.compile(rb"NCCL version (\d{1,3}\.\d{1,3}(?:\.\d{1,3})?)(\+\w{1,10}[\d.]{0,8})?")
_ADDRESS = re.compile(rb"(?:\[\d{1,3}\])?([\w.@-]{1,40}):([\w.:%-]{2,90}?)<\d{1,6}>")
_HCA = re.compile(rb"\[\d{1,3}\] ?([\w.+-]{1,80}:\d{1,3}/\w{1,12})")
_SETTING = re.compile(rb"(\w{2,60}) set by environment to ([^\r]{1,200})")
_CHANNELS = re.compile(
    rb"(\d{1,4}) coll channels,(?: (\d{1,4}) collnet channels,)?(?: (\d{1,4}) nvls channels,)? (\d{1,4}) p2p channels"
)
_TIMINGS = re.compile(rb"Init timings(?: - (\w{1,40}))?: rank (\d{1,7}) nranks (\d{1,7}) total (\d{1,9}\.\d{1,6})")
_BOOT_TIME = re.compile(rb"Bootstrap timings total (\d{1,9}\.\d{1,6})")
#: INFO messages that are events of their own (the WARN forms stand in ``nccl_warnings``).
_EVENTS: Tuple[Tuple[str, re.Pattern[bytes]], ...] = (
    ("nccl.no_ibverbs", re.compile(rb"Failed to open libibverbs\.so|ibverbs.{0,40}cannot open shared object")),
    ("nccl.no_ib_device", re.compile(rb"NET/IB : No device found")),
    ("nccl.p2p_disabled", re.compile(rb"P2P is disabled between connected GPUs")),
    (
        "nccl.ib_async_event",
        re.compile(
            rb"NET/IB : (?:\S{1,60} )?[Gg]ot (?:non-fatal )?async event ?: ?(?!port active|LID|P_Key|SM change|client re|GID table|communication est)"
        ),
    ),
    ("nccl.connect_retry", re.compile(rb"(?:Call to connect|connect to \S{1,80}) returned [^,]{1,60}, retrying")),
)


class MessageParser:
    """Parses messages; equal edges come out as one object as long as the parser is not told to forget."""

    def __init__(self) -> None:
        self._edges: Dict[Tuple[Any, ...], Edge] = {}

    def forget(self) -> None:
        """Drop the table of edges (memory stays bounded on endless logs)."""
        self._edges.clear()

    def parse(self, text: bytes) -> Message:
        """What a message says, as ``(kind, payload)``."""
        first = text[:4]
        if first in (b"Chan", b"Ring"):
            return self._channel(text)
        if first == b"Tree":
            found = _TREE.match(text)
            return _DULL if found is None else (TREES, (int(found[1]), text.count(b"] ")))
        handler = _BY_START.get(first)
        if handler is not None:
            message = handler(text)
            if message is not None:
                return message
        return _search(text)

    def _channel(self, text: bytes) -> Message:
        found = _EDGE.match(text)
        if found is not None:
            edge = self._edge(found)
            return (EDGE, (edge, 1 << min(int(found[1]), 1023)))
        ring = _RING.match(text)
        if ring is not None and len(ring[3]) < 100_000:
            return (RING, (int(ring[1]), " ".join(ring[3].decode("ascii").split())))
        return _DULL

    def _edge(self, found: re.Match[bytes]) -> Edge:
        transport, device, gdr = _transport(found[7].decode("utf-8", "replace"))
        receives = found[6] == b"receive"
        buses = ((found[3] or b"").decode(), (found[5] or b"").decode())
        key = (int(found[2]), int(found[4]), transport, device, gdr, receives, buses)
        edge = self._edges.get(key)
        if edge is None:
            edge = self._edges[key] = Edge(*key)
        return edge


def _transport(via: str) -> Tuple[str, Optional[int], bool]:
    """``P2P/IPC/read`` → ``P2P/IPC``; ``NET/IB/1/GDRDMA`` → ``NET/IB``, 1, True."""
    net = _NET.match(via)
    if net is not None:
        return f"NET/{net['name']}", int(net["device"]), "GDRDMA" in net["rest"]
    if via.startswith(("SHM", "direct shared memory")):
        return "SHM", None, False
    words = via.split("/")
    if words[0] == "P2P" and len(words) > 1:
        return "P2P/" + words[1].split(" ")[0], None, False
    return words[0][:40], None, False


def _comm(text: bytes) -> Optional[Message]:
    found = _COMM.match(text)
    if found is None:
        return None
    rest = found["rest"]
    # NCCL 2.3 says "- COMPLETE", later ones "- Init COMPLETE", and "- Destroy COMPLETE" at the end.
    complete = b"Init COMPLETE" in rest or rest.lstrip().startswith(b"- COMPLETE")
    state = "complete" if complete else "start" if b"Init START" in rest else ""
    if not state:
        if b"estroy" in rest or b"Abort" in rest or b"Revoke" in rest or b"nNodes" in rest or b"Finalize" in rest:
            return _DULL
        # NCCL 2.3 prints the bare line at the beginning.
        state = "start" if not rest.strip() else ""
        if not state:
            return _DULL
    comm_id = _COMM_ID.search(rest)
    return (
        COMM,
        (
            state,
            found["pointer"].decode(),
            int(found["rank"]),
            int(found["nranks"]),
            None if found["device"] is None else int(found["device"]),
            (found["bus"] or b"").decode(),
            comm_id[1].decode() if comm_id else "",
        ),
    )


def _addresses(text: bytes) -> Tuple[Tuple[str, str], ...]:
    return tuple((a.decode(), b.decode()) for a, b in _ADDRESS.findall(text[:4000]))


def _bootstrap(text: bytes) -> Optional[Message]:
    if text.startswith((b"Bootstrap timings",)):
        found = _BOOT_TIME.match(text)
        return None if found is None else (TIMINGS, ("bootstrap", None, None, float(found[1])))
    if b"Using" in text[:20]:
        return (BOOTSTRAP, _addresses(text))
    return None


def _net(text: bytes) -> Optional[Message]:
    if text.startswith((b"NET/Socket : Using", b"NET/Socket: Using [")):
        return (SOCKET_DEVICES, _addresses(text))
    if text.startswith((b"NET : Using interface", b"NET : Using ")):
        return (BOOTSTRAP, _addresses(text))
    if text.startswith(b"NET/IB"):
        if b"GPU Direct RDMA Disabled" in text:
            return (GDR_OFF, text.decode("utf-8", "replace").strip()[:200])
        if b"GPU Direct RDMA Enabled" in text:
            return (GDR_ON, None)
        hcas = tuple(h.decode() for h in _HCA.findall(text[:8000]))
        if hcas and (b": Using" in text[:20] or text.startswith(b"NET/IB: [")):
            return (IB_DEVICES, hcas)
        return None
    for start in (
        b"NET/OFI Initializing ",
        b"NET/OFI Selected ",
        b"NET/Plugin: Loaded net plugin ",
        b"NET/Plugin: Using ",
    ):
        if text.startswith(start):
            return (PLUGIN, text.decode("utf-8", "replace").strip()[:120])
    return None


def _using(text: bytes) -> Optional[Message]:
    for start in (b"Using network ", b"Using internal Network ", b"Using internal network ", b"Using Network "):
        if text.startswith(start):
            return (NETWORK, text[len(start) :].strip().decode("utf-8", "replace")[:40])
    return None


def _assigned(text: bytes) -> Optional[Message]:
    found = re.match(rb"Assigned NET plugin (.{1,40}) to comm", text)
    return None if found is None else (NETWORK, found[1].decode("utf-8", "replace"))


def _version(text: bytes) -> Optional[Message]:
    found = _VERSION.match(text)
    return None if found is None else (VERSION, (found[1] + (found[2] or b"")).decode())


def _timings(text: bytes) -> Optional[Message]:
    found = _TIMINGS.match(text)
    return None if found is None else (TIMINGS, (found[1], int(found[2]), int(found[3]), float(found[4])))


def _nvls(text: bytes) -> Optional[Message]:
    if text.startswith(b"NVLS multicast support is "):
        return (NVLS, b"not available" not in text)
    return None


_BY_START: Dict[bytes, Callable[[bytes], Optional[Message]]] = {
    b"comm": _comm,
    b"nccl": _comm,
    b"rank": lambda text: _DULL,
    b"Boot": _bootstrap,
    b"NET/": _net,
    b"NET ": _net,
    b"Usin": _using,
    b"Assi": _assigned,
    b"NCCL": _version,
    b"Init": _timings,
    b"NVLS": _nvls,
    b"Sett": lambda text: _DULL,
    b"thre": lambda text: _DULL,
    b"Conn": lambda text: _DULL,
}


def collective(text: bytes) -> Optional[Message]:
    """A line of the COLL subsystem; these differ each time and are not worth remembering.

    The payload is the line's words: 0 name, 2 opCount, 8 count, 10 datatype, 14 root, 16 comm.
    """
    words = text.split(b" ", 18)
    if len(words) < 17 or words[7] != b"count" or words[15] != b"comm" or len(words[2]) > 16:
        return None
    return (COLLECTIVE, words)


def _search(text: bytes) -> Message:
    if b" set by environment to " in text:
        found = _SETTING.match(text)
        if found is not None:
            return (SETTING, (found[1].decode(), found[2].decode("utf-8", "replace").strip(" .")))
    if b"coll channels," in text:
        found = _CHANNELS.match(text)
        if found is not None:
            names: List[str] = ["coll", "collnet", "nvls", "p2p"]
            return (CHANNELS, {name: int(value) for name, value in zip(names, found.groups()) if value is not None})
    if text.startswith(b"GPU Direct RDMA "):
        if text.startswith(b"GPU Direct RDMA Disabled"):
            return (GDR_OFF, text.decode("utf-8", "replace").strip()[:200])
        return (GDR_ON, None)
    for event, pattern in _EVENTS:
        if pattern.search(text[:1000]):
            return (EVENT, event)
    return _DULL
