"""Files as blocks of lines: compression, encodings, endless lines, faults."""

import gzip
import io
import sys

import pytest

from chainerdoctor.logs import reading
from chainerdoctor.logs.reading import MAX_LINE_BYTES, LogReader, LogReadError

TEXT = b"".join(b"line %d of the log\n" % i for i in range(5000))
LINES = TEXT.split(b"\n")[:-1]


def lines_of(path, data=None):
    if data is not None:
        path.write_bytes(data)
    reader = LogReader(str(path))
    return [line for block in reader for line in block], reader


def test_plain_file_with_and_without_last_line_end(tmp_path):
    assert lines_of(tmp_path / "a", TEXT)[0] == LINES
    assert lines_of(tmp_path / "a", TEXT[:-1])[0] == LINES


@pytest.mark.parametrize("block", [2, 7, 64, 4096])
def test_lines_do_not_depend_on_blocks(tmp_path, monkeypatch, block):
    monkeypatch.setattr(reading, "BLOCK_BYTES", block)
    data = TEXT[:2000]
    assert (
        lines_of(tmp_path / "a", data)[0]
        == lines_of(tmp_path / "b", gzip.compress(data))[0]
        == data.split(b"\n")[:-1] + [data.split(b"\n")[-1]]
    )


def test_gzip_of_several_members_and_with_padding(tmp_path):
    packed = gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:]) + b"\0" * 512
    lines, reader = lines_of(tmp_path / "a.gz", packed)
    assert lines == LINES
    assert reader.damage == []


def test_cut_gzip_gives_what_there_is_and_says_so(tmp_path):
    packed = gzip.compress(TEXT, compresslevel=1)
    lines, reader = lines_of(tmp_path / "a.gz", packed[: len(packed) // 2])
    assert 0 < len(lines) < len(LINES)
    assert lines[:-1] == LINES[: len(lines) - 1]
    assert reader.damage == ["the gzip stream is cut"]


def test_damaged_gzip_says_so(tmp_path):
    packed = bytearray(gzip.compress(TEXT))
    packed[len(packed) // 2] ^= 0xFF
    _, reader = lines_of(tmp_path / "a.gz", bytes(packed))
    assert len(reader.damage) == 1


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig"])
def test_byte_order_marks(tmp_path, encoding):
    text = "NCCL INFO über\nnext"
    data = text.encode(encoding)
    if encoding == "utf-16-le":
        data = b"\xff\xfe" + data
    assert lines_of(tmp_path / "a", data)[0] == [line.encode() for line in text.split("\n")]


def test_an_endless_line_is_cut_and_the_next_one_is_whole(tmp_path):
    data = b"x" * (5 * 1024 * 1024) + b"\nnext\n"
    lines, reader = lines_of(tmp_path / "a", data)
    assert [len(line) for line in lines] == [MAX_LINE_BYTES, 4]
    assert reader.damage == [f"1 lines longer than {MAX_LINE_BYTES} bytes were cut"]


def test_standard_input(monkeypatch):
    class Fake:
        buffer = io.BytesIO(TEXT)

    monkeypatch.setattr(sys, "stdin", Fake)
    assert [line for block in LogReader("-") for line in block] == LINES


def test_what_cannot_be_read_is_one_line(tmp_path):
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(LogReadError) as caught:
            list(LogReader(str(path)))
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_empty_file(tmp_path):
    assert lines_of(tmp_path / "a", b"")[0] == []
