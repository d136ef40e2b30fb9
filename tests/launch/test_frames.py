"""Frames get through what launchers do to the output of many ranks: mixing, cutting, prefixing, garbage."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainerdoctor.launch.frames import FrameReader, frames

CONTENT = {"sightings": [{"text": "x" * 3000 + "ü"}], "n": list(range(500))}


def read(data: bytes, step: int = 4096):
    reader = FrameReader()
    messages = []
    for at in range(0, len(data), step):
        messages += reader.feed(data[at : at + step])
    return reader, messages


def test_whole_message_arrives_once_however_it_is_cut_into_reads() -> None:
    data = b"".join(frames(3, 7, CONTENT)) * 2
    for step in (1, 7, 1000, 10**6):
        _, messages = read(data, step)
        assert [(m.rank, m.number, m.content) for m in messages] == [(3, 7, CONTENT)]


def test_every_line_fits_into_a_kilobyte() -> None:
    noise = random.Random(1)
    content = "".join(chr(noise.randrange(32, 0x2FF)) for _ in range(50_000))
    lines = frames(123456, 999, content)
    assert len(lines) > 20
    assert max(map(len, lines)) <= 1024


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_lines_of_many_ranks_interleave(order, rng) -> None:
    queues = {rank: frames(rank, 0, {"rank": rank, "pad": rng.random()}) * 2 for rank in range(4)}
    data = b""
    for rank in order + [r for r in range(4) for _ in range(10)]:
        if queues[rank]:
            data += queues[rank].pop(0)
    _, messages = read(data, 100)
    assert sorted(m.rank for m in messages) == [0, 1, 2, 3]


def test_a_frame_cut_by_another_is_made_up_for_by_its_second_copy() -> None:
    first, second = frames(0, 0, {"a": 1})[0], frames(1, 0, {"b": 2})[0]
    cut = first[:30] + second + first[30:]
    reader, messages = read(cut + first)
    assert sorted(m.rank for m in messages) == [0, 1]


def test_prefixes_of_launchers_do_no_harm() -> None:
    lines = b"".join(frames(0, 0, CONTENT)).split(b"\n")
    tagged = b"\n".join(b"[1,0]<stdout>:" + line for line in lines)
    _, messages = read(tagged)
    assert len(messages) == 1


def test_missing_piece_is_reported_as_incomplete() -> None:
    rng = random.Random(2)
    lines = frames(5, 2, [rng.random() for _ in range(1000)])
    reader, messages = read(b"".join(lines[:-1]))
    assert messages == []
    assert reader.incomplete() == {5: (len(lines) - 1, len(lines))}


def test_flipped_bit_is_noticed() -> None:
    line = bytearray(frames(0, 0, CONTENT)[0])
    line[line.index(b"@>") - 40] ^= 1
    reader, messages = read(bytes(line))
    assert messages == []


@given(st.binary(max_size=3000))
@settings(max_examples=200, deadline=None)
def test_garbage_never_raises_and_real_frames_survive_it(garbage: bytes) -> None:
    good = b"".join(frames(0, 0, {"x": 1}))
    _, messages = read(garbage + good, 64)
    assert [m.content for m in messages] == [{"x": 1}]


def test_forged_frame_with_a_right_checksum_but_wrong_content_is_dropped() -> None:
    import zlib

    head, payload = "0 0 1/1", "AAAA"
    crc = zlib.crc32(f"{head} {payload}".encode())
    reader, messages = read(f"\n<@cd1 {head} {crc:08x} {payload}@>\n".encode())
    assert messages == []
    assert reader.damaged == 1


def test_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    from chainerdoctor.launch import frames as module

    monkeypatch.setattr(module, "_MOST_BYTES", 1000)
    reader, messages = read(b"".join(frames(0, 0, "z" * 100_000)))
    assert messages == []


def test_noise_is_kept_and_bounded() -> None:
    reader, _ = read(b"mpiexec: something went wrong\n" + b"".join(frames(0, 0, 1)) + b"y" * 100_000)
    assert len(reader.noise) <= 16384 + 4096
    reader, _ = read(b"mpiexec: something went wrong\n" + b"".join(frames(0, 0, 1)))
    assert b"something went wrong" in reader.noise


def test_noise_after_a_frame_that_was_cut_off_for_good_is_kept() -> None:
    # A rank that is killed in the middle of a frame, and the launcher's obituary right behind it.
    reader, _ = read(frames(0, 0, CONTENT)[0][:200] + b"\n=   PID 77 RUNNING AT node1\n=   EXIT CODE: 9\n")
    assert b"PID 77 RUNNING AT node1" in reader.noise
