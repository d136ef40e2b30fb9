"""What stands before a line, and the times in it. Expected times come from ``date -u -d``."""

import pytest

from chainerdoctor.logs.prefixes import Prefixes, decoded

CASES = [
    # line, text, rank, host, seconds since the epoch
    ("[1,3]<stdout>:a:1:2 [0] NCCL INFO x", "a:1:2 [0] NCCL INFO x", 3, "", None),
    ("[1,0]<stdout>: epoch", "epoch", 0, "", None),
    ("[prterun-h-9@1,12]<stderr>: Trace", "Trace", 12, "", None),
    ("17: 2025-06-17 16:23:09 text", "text", 17, "", 1750177389.0),
    ("[2025-03-18 21:25:51] a:1:1 [0] NCCL", "a:1:1 [0] NCCL", None, "", 1742333151.0),
    ("kern  :warn  : 2025-01-21T02:21:33,498559+00:00 NVRM: Xid", "NVRM: Xid", None, "", 1737426093.498559),
    ("Aug 17 06:18:01 h-0 systemd-networkd[53]: ib6: lost", "ib6: lost", None, "h-0", 1723875481.0),
    ("Aug 17 06:18:01.5 h-0 kernel: ib6: lost", "ib6: lost", None, "h-0", 1723875481.5),
    ("Aug 17 06:18:01 h kernel: [  12.45] NVRM: Xid", "NVRM: Xid", None, "h", 1723875481.0),
    ("[111111111.111] nvidia-nvswitch3: SXid", "nvidia-nvswitch3: SXid", None, "", None),
    ("[Tue Dec  3 10:11:12 2024] NVRM: x", "NVRM: x", None, "", 1733220672.0),
    ("2024-05-01T10:00:00+0900 gpu07 kernel: NVRM: Xid", "NVRM: Xid", None, "gpu07", 1714525200.0),
    ("(train pid=123, ip=10.0.0.2) foo", "foo", None, "", None),
    ("[0] NCCL INFO foo", "[0] NCCL INFO foo", None, "", None),
    ("[3] hello", "hello", 3, "", None),
    ("[node01:10602] Signal: Seg", "[node01:10602] Signal: Seg", None, "", None),
    ("[2024-05-01 10:00:00,123] ERROR: foo", "ERROR: foo", None, "", 1714557600.123),
    ("2024-13-45 99:00:00 foo", "foo", None, "", None),
    (
        "2024-05-01T10:00:00,1+00:00 nvidia-peermem nv_get:127 ERROR",
        "nvidia-peermem nv_get:127 ERROR",
        None,
        "",
        1714557600.1,
    ),
    ("", "", None, "", None),
]


@pytest.mark.parametrize(("line", "text", "rank", "host", "at_s"), CASES, ids=[c[0][:30] for c in CASES])
def test_prefixes(line, text, rank, host, at_s):
    found = Prefixes(0, 2024).strip(line)
    assert (found.text, found.rank, found.host) == (text, rank, host)
    assert found.at_s == (None if at_s is None else pytest.approx(at_s))


def test_times_without_zone_are_placed_by_the_offset():
    line = "[2025-03-18 21:25:51] x"
    assert Prefixes(9 * 3600).strip(line).at_s == Prefixes(0).strip(line).at_s - 9 * 3600
    # A zone in the line wins.
    zoned = "2025-03-18T21:25:51+00:00 x"
    assert Prefixes(9 * 3600).strip(zoned).at_s == Prefixes(0).strip(zoned).at_s


def test_decoding_drops_colours_and_keeps_the_last_state_of_a_progress_bar():
    assert decoded(b"\x1b[4mGPU0\x1b[0m\r\n") == "GPU0"
    assert decoded(b"10 %\r20 %\r100 % done\r\n") == "100 % done"
    assert decoded(b"\xff\xfe caf\xe9") == "\ufffd\ufffd caf\ufffd"
