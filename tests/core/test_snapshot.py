"""Reading snapshots from elsewhere: what is good loads, what is bad says why in one line."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainerdoctor import snapshot as snapshots
from chainerdoctor.facts.host import Boot, OperatingSystem
from chainerdoctor.snapshot import Sighting, Snapshot, SnapshotError

GOOD = Snapshot(
    [
        Sighting(
            "node1", None, "operating_system", 1.5, 0.25, OperatingSystem("node1", "6.1", "Debian", "x86_64", None)
        ),
        Sighting("node2", 3, "operating_system", 2.0, 0.5, Boot("b")),
    ],
    command="check-cluster",
    taken_at="2026-01-01T00:00:00Z",
    tool="0.1.0",
)


def test_round_trip_through_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(GOOD.dumps(), encoding="utf-8")
    read = snapshots.load(str(path))
    assert read.sightings == GOOD.sightings
    assert (read.command, read.taken_at, read.tool, read.id) == (GOOD.command, GOOD.taken_at, GOOD.tool, GOOD.id)


def test_text_is_what_the_json_module_would_write() -> None:
    raw = json.loads(GOOD.dumps())
    assert raw["sightings"] == [snapshots.sighting_to_json(s) for s in GOOD.sightings]
    first = GOOD.dumps().splitlines()[1].rstrip(",")
    assert first == json.dumps(snapshots.sighting_to_json(GOOD.sightings[0]), sort_keys=True)


def test_equal_facts_become_one_object_and_look_alikes_do_not() -> None:
    text = Snapshot([Sighting("n", r, "p", 0.0, 0.0, Boot("b")) for r in (1, 2)]).dumps()
    first, second = snapshots.loads(text).all(Boot)
    assert first.fact is second.fact
    wrong = {"node": "n", "probe": "p", "rank": 0, "fact": {"kind": "ClockOffset", "low_s": 1, "high_s": 2.0}}
    right = {**wrong, "fact": {"kind": "ClockOffset", "low_s": True, "high_s": 2.0}}
    with pytest.raises(SnapshotError, match="sighting 2 is malformed"):
        snapshots.from_json({"schema": 1, "sightings": [wrong, right]})


def test_text_is_plain_json() -> None:
    raw = json.loads(GOOD.dumps())
    assert raw["schema"] == 1
    assert [entry["fact"]["kind"] for entry in raw["sightings"]] == ["OperatingSystem", "Boot"]


def test_id_changes_with_content() -> None:
    assert Snapshot(GOOD.sightings[:1], command="check-cluster").id != GOOD.id


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not valid JSON, or cut off"),
        (GOOD.dumps().encode()[:200], "not valid JSON, or cut off"),
        (b"[" * 200_000, "nested too deeply|cut off"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply|not a chainerdoctor snapshot"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b'{"sightings": []}', "not a chainerdoctor snapshot"),
        (b'{"schema": 1, "sightings": [{"node": 3}]}', "sighting 1 is malformed"),
        (b'{"schema": 1, "sightings": [{"node": "a", "probe": "b", "rank": "0", "fact": {}}]}', "'rank'"),
        (b'{"name": "some other tool", "version": "1"}', "not a chainerdoctor snapshot"),
        (b"null", "not a chainerdoctor snapshot"),
        (b'{"schema": 1, "sightings": [], "command": 7}', "have to be texts"),
        (b'{"schema": 1, "sightings": [{"node":"a","probe":"p","fact":{"kind":"ClockOffset","low_s":1e999,"high_s":1' + b"0" * 400 + b"}}]}", "too large"),
    ],
)  # fmt: skip
def test_bad_files_say_why(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(SnapshotError, match=words) as caught:
        snapshots.load(str(path))
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="No such file"):
        snapshots.load(str(tmp_path / "none.json"))
    with pytest.raises(SnapshotError, match="directory"):
        snapshots.load(str(tmp_path))


def test_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "MAX_BYTES", 1024 * 1024)
    path = tmp_path / "huge.json"
    with open(path, "wb") as file:
        file.truncate(1024 * 1024 + 1)
    with pytest.raises(SnapshotError, match="larger than the 1 MiB"):
        snapshots.load(str(path))


@given(st.integers(0, len(GOOD.dumps()) - 1), st.integers(0, 255))
def test_one_flipped_byte_never_raises_anything_else(at: int, value: int) -> None:
    content = bytearray(GOOD.dumps().encode())
    content[at] = value
    with contextlib.suppress(SnapshotError):
        snapshots.loads(content.decode("utf-8", "replace"))


def test_newer_snapshot_loads_what_it_knows() -> None:
    raw = json.loads(GOOD.dumps())
    raw["schema"] = 99
    raw["invented"] = {}
    raw["sightings"].append({"node": "n", "rank": None, "probe": "p", "fact": {"kind": "FromTheFuture", "x": 1}})
    read = snapshots.from_json(raw)
    assert len(read.sightings) == 3
    assert len(read.all(OperatingSystem)) == 1


def test_merge_keeps_order_and_latest_time() -> None:
    later = Snapshot(GOOD.sightings[:1], taken_at="2026-02-01T00:00:00Z")
    merged = snapshots.merge([GOOD, later], command="x")
    assert merged.taken_at == "2026-02-01T00:00:00Z"
    assert len(merged.sightings) == 3
    assert merged.nodes == ("node1", "node2")
