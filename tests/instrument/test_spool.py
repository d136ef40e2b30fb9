"""A capture is readable whatever happened to its writer, and never disturbs it."""

import json
import os
import random
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from chainerdoctor.instrument import spool as spools
from chainerdoctor.instrument.spool import MAGIC, Spool, Stride, read_capture


def written(path: Path, count: int) -> Path:
    spool = Spool(str(path))
    for number in range(count):
        spool.tell("n", {"n": number}, now=True)
    spool.close()
    return path


def test_records_come_back_in_order(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "a.capture"))
    spool.tell("first", {"x": 1.5})
    spool.tell_packed("events", b"\x01\x02" * 1000)
    spool.tell("second", {"text": "\udcff ü"}, now=True)
    spool.close()
    capture = read_capture(spool.path)
    assert [record["what"] for record in capture.records] == ["first", "second"]
    assert capture.packed == {"events": [b"\x01\x02" * 1000]}
    assert capture.damage == ()
    assert os.stat(spool.path).st_mode & 0o077 == 0


def test_the_file_is_what_its_description_says(tmp_path: Path) -> None:
    """Read by hand: magic, then mark, kind, length, CRC-32 and JSON lines."""
    data = written(tmp_path / "a.capture", 1).read_bytes()
    assert data.startswith(MAGIC)
    mark, kind, length, crc = struct.unpack_from("<2scII", data, len(MAGIC))
    payload = data[len(MAGIC) + 11 :]
    assert (mark, kind, length, crc) == (b"CD", b"J", len(payload), zlib.crc32(payload))
    assert json.loads(payload) == {"what": "n", "n": 0}


@pytest.mark.parametrize("cut", [1, 5, 12, 28])
def test_a_cut_end_costs_the_last_record_only(tmp_path: Path, cut: int) -> None:
    path = written(tmp_path / "a.capture", 10)
    path.write_bytes(path.read_bytes()[:-cut])
    capture = read_capture(str(path))
    assert [record["n"] for record in capture.records] == list(range(9))
    assert len(capture.damage) == 1


def test_a_flipped_byte_costs_its_chunk_only(tmp_path: Path) -> None:
    path = written(tmp_path / "a.capture", 50)
    whole = path.read_bytes()
    rng = random.Random(1)
    for _ in range(300):
        at = rng.randrange(len(MAGIC), len(whole))
        data = bytearray(whole)
        data[at] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(data))
        capture = read_capture(str(path))
        assert len(capture.records) == 49
        assert capture.damage


@pytest.mark.parametrize(
    ("content", "what"), [(b"", "empty"), (b"CDCAPT", "not a capture"), (b"\x00" * 1000, "not a capture")]
)
def test_what_is_no_capture_is_refused(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "a.capture"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=what):
        read_capture(str(path))


@pytest.mark.parametrize(
    "payload", [b"[" * 100_000, b"{}", b'{"what": 3}', b"\xff\xfe", b"null", zlib.compress(b"0" * 10_000_000)]
)
@pytest.mark.parametrize("kind", [b"J", b"B", b"?"])
def test_forged_chunks_do_no_harm(tmp_path: Path, kind: bytes, payload: bytes) -> None:
    path = written(tmp_path / "a.capture", 2)
    chunk = struct.pack("<2scII", b"CD", kind, len(payload), zlib.crc32(payload)) + payload
    path.write_bytes(path.read_bytes() + chunk)
    capture = read_capture(str(path))
    assert len(capture.records) == 2
    assert capture.damage


def test_a_killed_writer_leaves_what_it_had_flushed(tmp_path: Path) -> None:
    code = (
        "import os, sys, signal\nfrom chainerdoctor.instrument.spool import Spool\n"
        "s = Spool(sys.argv[1])\nfor n in range(100): s.tell('n', {'n': n})\ns.flush()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = tmp_path / "a.capture"
    assert subprocess.run([sys.executable, "-c", code, str(path)]).returncode == -9
    assert len(read_capture(str(path)).records) == 100


def test_a_forked_child_has_a_capture_of_its_own(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "rank-00000.capture"))
    spool.tell("parent", {})
    pid = os.fork()
    if pid == 0:
        spool.tell("child", {}, now=True)
        os._exit(0)
    os.waitpid(pid, 0)
    spool.close()
    assert [r["what"] for r in read_capture(spool.path).records] == ["parent"]
    assert [r["what"] for r in read_capture(str(tmp_path / f"rank-00000.child-{pid}.capture")).records] == ["child"]


def test_a_full_disk_costs_records_and_nothing_else(tmp_path: Path) -> None:
    spool = Spool("/dev/full")
    for number in range(5):
        spool.tell("n", {"n": number}, now=True)
    spool.close()
    assert sum(spool.lost.values()) >= 5
    assert all("space" in why for why in spool.lost)


def test_size_is_bounded_and_detail_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spools, "MOST_DETAIL_BYTES", 20_000)
    monkeypatch.setattr(spools, "MOST_BYTES", 30_000)
    spool = Spool(str(tmp_path / "a.capture"))
    for number in range(3000):
        spool.tell("detail", {"n": number}, detail=True)
        spool.tell("kept", {"n": number})
        spool.flush()
    spool.tell("end", {}, now=True)
    spool.close()
    capture = read_capture(spool.path)
    assert os.path.getsize(spool.path) < 31_000
    assert len(capture.all("kept")) > len(capture.all("detail")) > 0
    assert capture.last("end") is not None
    assert sum(capture.last("lost")["records"].values()) == 6000 - len(capture.all("kept")) - len(capture.all("detail"))


def test_stride_keeps_a_logarithm() -> None:
    stride = Stride(block=64)
    kept = [number for number in range(100_000) if stride.keep()]
    assert kept[:64] == list(range(64))
    assert len(kept) < 64 * 12  # 64 · (1 + log2(100,000 / 64)) = 743
    gaps = [after - before for before, after in zip(kept, kept[1:])]
    assert sorted(gaps) == gaps
    assert max(gaps) < 2 * 100_000 / 64
