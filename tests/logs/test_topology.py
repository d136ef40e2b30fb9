"""The picture of nodes, GPUs and links, as text and as SVG."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from chainerdoctor.logs.gather import read_logs
from chainerdoctor.report.topology import as_topology, as_topology_svg
from chainerdoctor.snapshot import Snapshot

LOGS = Path(__file__).resolve().parent.parent.parent / "fixtures" / "logs"


def snapshot_of(name):
    return read_logs([str(LOGS / name)], utc_offset_s=0, now_s=0.0)


def test_text_names_nodes_gpus_and_links():
    text = as_topology(snapshot_of("nccl-2.10.log"))
    assert "[gpu-a] 0:GPU0" in text
    assert "[gpu-b] 1:GPU0" in text
    assert "[gpu-a] == NET/IB/GDRDMA x2 == [gpu-b]" in text
    assert "mlx5_0:1/IB, mlx5_1:1/RoCE" in text


@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize("name", ["nccl-2.10.log", "nccl-2.21-nvls.log", "nothing-known.txt"])
def test_text_keeps_to_its_width(name, width):
    assert max(len(line) for line in as_topology(snapshot_of(name), width).splitlines()) <= max(width, 56)


def test_svg_has_every_gpu_and_edge():
    root = ElementTree.fromstring(as_topology_svg(snapshot_of("nccl-2.10.log")))
    space = {"s": "http://www.w3.org/2000/svg"}
    assert len(root.findall(".//s:circle", space)) == 2
    assert len(root.findall(".//s:rect", space)) == 2
    assert [
        g.find("s:title", space).text for g in root.findall(".//s:g", space) if g.find("s:path", space) is not None
    ] == ["0 - 1: NET/IB, 2 channels"]


def test_names_from_the_log_cannot_break_the_svg(tmp_path):
    path = tmp_path / "a.log"
    path.write_text('a.b-c:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/<b>&"\n')
    ElementTree.fromstring(as_topology_svg(read_logs([str(path)], now_s=0.0)))


def test_nothing_to_draw_is_said():
    assert "No topology" in as_topology(Snapshot([]))
    assert "No topology" in as_topology_svg(Snapshot([]))
