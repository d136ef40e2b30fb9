"""A healthy snapshot against later ones; redaction."""

import json

from chainerdoctor.baseline import compare
from chainerdoctor.facts.baseline import Compared, Deviation
from chainerdoctor.facts.fabric import NetworkInterface
from chainerdoctor.facts.gpu import GpuDriver
from chainerdoctor.facts.host import HostMemory, OperatingSystem
from chainerdoctor.facts.stack import EnvironmentSurvey, EnvironmentVariable, ImportOutcome
from chainerdoctor.redaction import redacted
from chainerdoctor.snapshot import Sighting, Snapshot


def snap(*entries) -> Snapshot:
    return Snapshot([Sighting(node, rank, "p", 0.0, 0.0, fact) for node, rank, fact in entries])


def deviations(here: Snapshot, healthy: Snapshot):
    compared = compare(here, healthy)
    assert len(compared.all(Compared)) == 1
    return [(s.node, s.rank, s.fact.subject, s.fact.seen, s.fact.expected) for s in compared.all(Deviation)]


DRIVER = GpuDriver("550.54.15", (12, 4), 4)
OTHER = GpuDriver("535.183.01", (12, 2), 4)


def test_same_is_no_deviation_whatever_the_node_is_called() -> None:
    assert deviations(snap(("b", None, DRIVER), ("c", None, DRIVER)), snap(("a", None, DRIVER))) == []


def test_changed_value_names_node_and_both_values() -> None:
    found = deviations(snap(("b", None, DRIVER), ("c", None, OTHER)), snap(("a", None, DRIVER)))
    assert found == [("c", None, "NVIDIA driver", "535.183.01", "550.54.15")]


def test_vanished_fact_is_absent() -> None:
    system = OperatingSystem("b", "6.1", "Debian", "x86_64", None)
    found = deviations(snap(("b", None, system)), snap(("a", None, system), ("a", None, DRIVER)))
    assert ("b", None, "NVIDIA driver", "absent", "550.54.15") in found


def test_vanished_on_one_of_two_nodes() -> None:
    system = OperatingSystem("x", "6.1", "Debian", "x86_64", None)
    here = snap(("b", None, system), ("b", None, DRIVER), ("c", None, system))
    found = deviations(here, snap(("a", None, system), ("a", None, DRIVER)))
    assert {entry[0] for entry in found} == {"c"}


def test_new_variable_is_a_deviation() -> None:
    here = snap(("b", 0, EnvironmentSurvey(1)), ("b", 0, EnvironmentVariable("NCCL_ALGO", "Ring")))
    assert deviations(here, snap(("a", 0, EnvironmentSurvey(0)))) == [("b", 0, "NCCL_ALGO", "Ring", "absent")]


def test_what_changes_from_minute_to_minute_is_left_out() -> None:
    before, after = HostMemory(64 * 2**30, 60 * 2**30, None), HostMemory(64 * 2**30, 1 * 2**30, None)
    slow, fast = ImportOutcome("numpy", True, "1.23.5", "", 5.0), ImportOutcome("numpy", True, "1.23.5", "", 0.1)
    assert deviations(snap(("a", None, after), ("a", 0, slow)), snap(("a", None, before), ("a", 0, fast))) == []


def test_value_that_differs_within_the_baseline_is_healthy() -> None:
    healthy = snap(("a", None, DRIVER), ("b", None, OTHER))
    assert deviations(snap(("c", None, OTHER)), healthy) == []


def test_redaction_is_consistent_and_complete() -> None:
    secret = Snapshot(
        [
            Sighting(
                "gpu-rack7.corp.example", None, "p", 0.0, 0.0, OperatingSystem("gpu-rack7", "6.1", "D", "x", None)
            ),
            Sighting(
                "gpu-rack7.corp.example",
                None,
                "p",
                0.0,
                0.0,
                NetworkInterface("eth0", 2, True, False, "ethernet", 1500, None, ("10.11.12.13", "127.0.0.1")),
            ),
            Sighting("gpu-rack70", 1, "p", 0.0, 0.0, EnvironmentVariable("PYTHONPATH", "/home/alice/x:/home/bob/y")),
            Sighting(
                "gpu-rack7.corp.example",
                0,
                "p",
                0.0,
                0.0,
                ImportOutcome("chainer", False, None, "OSError: /home/alice/z on gpu-rack7: 10.11.12.13", 0.0),
            ),
        ]
    )
    text = redacted(secret).dumps()
    for word in ("rack7", "corp", "alice", "bob", "10.11.12.13"):
        assert word not in text
    assert "127.0.0.1" in text
    raw = json.loads(text)
    assert raw["sightings"][2]["fact"]["value"] == "/home/user1/x:/home/user2/y"
    assert "/home/user1/z" in raw["sightings"][3]["fact"]["error"]
    assert raw["sightings"][0]["node"] == raw["sightings"][1]["node"] != raw["sightings"][2]["node"]
