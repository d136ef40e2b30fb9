"""A picture of nodes, GPUs and the links between them, out of the facts of a NCCL log: as text and as SVG."""

from __future__ import annotations

from html import escape
from typing import Dict, List, Optional, Tuple

from chainerdoctor.facts.log import NcclCommunicator, NcclProcess
from chainerdoctor.snapshot import Snapshot

#: Nodes and communicators that are drawn; more would be unreadable.
MOST_NODES = 64
MOST_COMMUNICATORS = 8

_Links = Dict[Tuple[str, str, str], int]


def as_topology(snapshot: Snapshot, width: int = 80) -> str:
    """The picture as plain text of at most ``width`` columns."""
    drawn = _drawn(snapshot)
    if not drawn:
        return "No topology: the logs name no ranks and no links.\n"
    lines: List[str] = []
    for communicator in drawn:
        lines += _text(communicator, snapshot, width)
        lines.append("")
    left = len(snapshot.all(NcclCommunicator)) - len(drawn)
    if left > 0:
        lines.append(f"({left} more communicators are not drawn)")
    return "\n".join(lines).rstrip() + "\n"


def _drawn(snapshot: Snapshot) -> List[NcclCommunicator]:
    """The communicators worth drawing: the largest, and of equal ones the first."""
    kept: Dict[Tuple[object, ...], NcclCommunicator] = {}
    for sighting in snapshot.all(NcclCommunicator):
        each = sighting.fact
        if each.where:
            shape = (each.nranks, tuple(sorted(each.where.items())))
            known = kept.get(shape)
            if known is None or len(each.edges) > len(known.edges):
                kept[shape] = each
    ordered = sorted(kept.values(), key=lambda c: (-c.nranks, -len(c.edges), c.id))
    return ordered[:MOST_COMMUNICATORS]


def _nodes(communicator: NcclCommunicator) -> Dict[str, List[Tuple[int, str]]]:
    """Host → (rank, GPU number) in the order of ranks."""
    nodes: Dict[str, List[Tuple[int, str]]] = {}
    for rank in sorted(int(r) for r in communicator.where):
        host, device = (communicator.where[str(rank)].split("/") + ["?"])[:2]
        nodes.setdefault(host or "?", []).append((rank, device))
    return nodes


def _links(communicator: NcclCommunicator) -> _Links:
    """(host or "within host", other host, transport) → number of edges."""
    host_of = {int(r): w.split("/")[0] or "?" for r, w in communicator.where.items()}
    links: _Links = {}
    for edge in communicator.edges:
        a, b = host_of.get(edge.source, "?"), host_of.get(edge.target, "?")
        transport = edge.transport + ("/GDRDMA" if edge.gdr else "")
        key = (min(a, b), max(a, b), transport)
        links[key] = links.get(key, 0) + 1
    return links


def _title(communicator: NcclCommunicator) -> str:
    name = f"communicator {communicator.id}" if communicator.identified else "communicator"
    if communicator.mixed or communicator.instances > 1:
        name = f"{max(communicator.instances, 2)} or more communicators that this NCCL version does not tell apart"
    ranks, nodes = communicator.nranks or len(communicator.where), len(_nodes(communicator))
    parts = [f"{ranks} rank{'' if ranks == 1 else 's'} on {nodes} node{'' if nodes == 1 else 's'}"]
    if communicator.rings:
        parts.append(f"{len(communicator.rings)} rings")
    if communicator.trees:
        parts.append(f"{communicator.trees} trees")
    if communicator.channels.get("nvls"):
        parts.append(f"{communicator.channels['nvls']} NVLS channels")
    if communicator.init_s is not None:
        parts.append(f"set up in {communicator.init_s:.1f} s")
    return f"{name}: {', '.join(parts)}"


def _cards(snapshot: Snapshot, host: str) -> str:
    for sighting in snapshot.all(NcclProcess):
        if sighting.fact.host == host and (sighting.fact.hcas or sighting.fact.interfaces):
            process = sighting.fact
            return ", ".join(process.hcas or [name for name, _ in process.interfaces])
    return ""


def _wrapped(text: str, width: int, indent: str) -> List[str]:
    import textwrap

    return textwrap.wrap(text, max(width, 20), subsequent_indent=indent, break_on_hyphens=False) or [text]


def _text(communicator: NcclCommunicator, snapshot: Snapshot, width: int) -> List[str]:
    lines = _wrapped(_title(communicator), width, "  ")
    nodes = _nodes(communicator)
    links = _links(communicator)
    for host, ranks in list(nodes.items())[:MOST_NODES]:
        gpus = " ".join(f"{rank}:GPU{device}" for rank, device in ranks)
        lines += _wrapped(f"  [{host}] {gpus}", width, "      ")
        inside = [(t, n) for (a, b, t), n in sorted(links.items()) if a == b == host]
        cards = _cards(snapshot, host)
        about = ", ".join(f"{count} edges by {transport}" for transport, count in inside)
        if about:
            lines += _wrapped(f"      within: {about}", width, "        ")
        if cards:
            lines += _wrapped(f"      cards:  {cards}", width, "        ")
    if len(nodes) > MOST_NODES:
        lines.append(f"  ({len(nodes) - MOST_NODES} more nodes)")
    between = [(a, b, t, n) for (a, b, t), n in sorted(links.items()) if a != b]
    if between:
        lines.append("  between nodes:")
        for a, b, transport, count in between[: MOST_NODES * 2]:
            lines += _wrapped(f"    [{a}] == {transport} x{count} == [{b}]", width, "        ")
        if len(between) > MOST_NODES * 2:
            lines.append(f"    ({len(between) - MOST_NODES * 2} more pairs)")
    if communicator.unfinished:
        unfinished = ", ".join(str(r) for r in communicator.unfinished[:16])
        lines += _wrapped(f"  never finished: ranks {unfinished}", width, "    ")
    return lines


#: Colours of transports, readable for the colour-blind (Okabe and Ito) and told apart by their dashes as well.
_STYLES = (
    ("P2P", "#0072B2", ""),
    ("SHM", "#E69F00", "4 3"),
    ("NET/IB", "#009E73", ""),
    ("NET/Socket", "#D55E00", "2 3"),
    ("", "#666666", "6 2"),
)
_GPU = 46
_ROW = 96


def as_topology_svg(snapshot: Snapshot) -> str:
    """The largest communicator as an SVG: a box for each node, its GPUs in a row, lines for edges."""
    drawn = _drawn(snapshot)
    if not drawn:
        return _svg(
            360, 40, ['<text x="10" y="24">No topology: the logs name no ranks and no links.</text>'], "No topology"
        )
    communicator = drawn[0]
    nodes = dict(list(_nodes(communicator).items())[:MOST_NODES])
    columns = max(1, min(4, round((len(nodes) / 2) ** 0.5) or 1))
    widest = max(len(ranks) for ranks in nodes.values())
    box = max(150, 20 + _GPU * widest)
    place: Dict[int, Tuple[float, float]] = {}
    parts: List[str] = []
    boxes: List[str] = []
    gpus: List[str] = []
    for index, (host, ranks) in enumerate(nodes.items()):
        x, y = 20 + index % columns * (box + 60), 60 + index // columns * (_ROW + 44)
        boxes.append(f'<rect x="{x}" y="{y}" width="{box}" height="{_ROW}" rx="6" class="node"/>')
        boxes.append(f'<text x="{x + 8}" y="{y + 18}">{escape(_short(host, box))}</text>')
        for at, (rank, device) in enumerate(ranks):
            cx, cy = x + 10 + _GPU * at + _GPU / 2 - 4, y + 58
            place[rank] = (cx, cy)
            label = f"rank {rank}, GPU {device} of {host}"
            gpus.append(
                f'<g><title>{escape(label)}</title><circle cx="{cx:.0f}" cy="{cy}" r="15" class="gpu"/>'
                f'<text x="{cx:.0f}" y="{cy + 4}" class="rank">{rank}</text></g>'
            )
    for pair, (transport, count) in sorted(_pairs(communicator).items()):
        line = _line(pair, transport, count, place)
        if line:
            parts.append(line)
    rows = (len(nodes) + columns - 1) // columns
    width = 40 + columns * (box + 60) - 60
    height = 60 + rows * (_ROW + 44) + 20
    used = sorted({_style(transport) for transport, _ in _pairs(communicator).values()})
    legend = []
    for index, (name, colour, dash) in enumerate(used):
        x = 20 + index * 120
        legend.append(
            f'<line x1="{x}" y1="44" x2="{x + 24}" y2="44" stroke="{colour}" stroke-width="3" '
            f'stroke-dasharray="{dash}"/>'
            f'<text x="{x + 30}" y="48">{escape(name or "other")}</text>'
        )
    title = _title(communicator)
    head = f'<text x="20" y="24" class="title">{escape(title)}</text>'
    return _svg(max(width, 20 + 7 * len(title)), height, [head, *legend, *boxes, *parts, *gpus], title)


def _pairs(communicator: NcclCommunicator) -> Dict[Tuple[int, int], Tuple[str, int]]:
    """Unordered pair of ranks → (transport, channels of both directions)."""
    pairs: Dict[Tuple[int, int], Tuple[str, int]] = {}
    for edge in communicator.edges:
        pair = (min(edge.source, edge.target), max(edge.source, edge.target))
        pairs[pair] = (edge.transport, pairs.get(pair, ("", 0))[1] + edge.channels)
    return pairs


def _style(transport: str) -> Tuple[str, str, str]:
    return next(style for style in _STYLES if transport.startswith(style[0]))


def _line(pair: Tuple[int, int], transport: str, count: int, place: Dict[int, Tuple[float, float]]) -> Optional[str]:
    if pair[0] not in place or pair[1] not in place:
        return None
    (x1, y1), (x2, y2) = place[pair[0]], place[pair[1]]
    _, colour, dash = _style(transport)
    # Neighbours are joined straight, others by an arc below, so that lines do not run through GPUs.
    bend = 0 if abs(x1 - x2) <= _GPU + 1 and y1 == y2 else 34 if y1 == y2 else 0
    return (
        f"<g><title>{escape(f'{pair[0]} - {pair[1]}: {transport}, {count} channels')}</title>"
        f'<path d="M{x1:.0f} {y1:.0f} Q{(x1 + x2) / 2:.0f} {(y1 + y2) / 2 + bend:.0f} {x2:.0f} {y2:.0f}" fill="none" '
        f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/></g>'
    )


def _short(name: str, width: int) -> str:
    most = max(4, (width - 16) // 8)
    return name if len(name) <= most else name[: most - 1] + "…"


def _svg(width: int, height: int, parts: List[str], title: str) -> str:
    style = (
        "<style>text{font:13px sans-serif;fill:#222}.title{font-weight:bold}"
        ".node{fill:#f4f6f8;fill-opacity:.6;stroke:#8899aa}"
        ".gpu{fill:#fff;stroke:#334}.rank{text-anchor:middle;font-size:11px}</style>"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">'
        f"<title>{escape(title)}</title>{style}\n" + "\n".join(parts) + "\n</svg>\n"
    )
