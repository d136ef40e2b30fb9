"""The odd one out, by majority of nodes; nobody is blamed on a tie."""

import pytest

from chainerdoctor.consensus import differences, places, rank_list
from chainerdoctor.facts.host import Boot
from chainerdoctor.snapshot import Sighting


def seen(node: str, rank, value: str) -> Sighting:
    return Sighting(node, rank, "p", 0.0, 0.0, Boot(value))


def found(*sightings):
    return list(differences(sightings, lambda fact: fact.boot_id, "the thing", "Mend it."))


def test_all_equal_is_nothing() -> None:
    assert found(seen("a", 0, "1"), seen("b", 1, "1")) == []


def test_minority_is_named_with_the_usual_value() -> None:
    (finding,) = found(seen("a", 0, "1"), seen("b", 1, "2"), seen("c", 2, "1"))
    assert finding.where == "b/rank 1"
    assert (finding.evidence[0].seen, finding.evidence[0].wanted) == ("2", "1 (a/rank 0, c/rank 2)")


def test_nodes_outvote_ranks() -> None:
    # One node with eight ranks must not outvote two nodes with one rank each.
    many = [seen("a", rank, "odd") for rank in range(8)]
    (finding,) = found(*many, seen("b", 8, "usual"), seen("c", 9, "usual"))
    assert finding.where == "a/ranks 0–7"


def test_tie_names_both_sides() -> None:
    (finding,) = found(seen("a", None, "1"), seen("b", None, "2"))
    assert finding.where == "a, b"
    assert [e.seen for e in finding.evidence] == ["1", "2"]


def test_every_odd_value_is_a_finding() -> None:
    findings = found(*[seen(f"n{i}", None, "1") for i in range(5)], seen("x", None, "2"), seen("y", None, "3"))
    assert [f.where for f in findings] == ["x", "y"]


@pytest.mark.parametrize(
    ("ranks", "text"),
    [([3], "rank 3"), ([0, 1, 2, 3], "ranks 0–3"), ([1, 3, 5], "ranks 1, 3, 5"), ([0, 1, 2, 7], "ranks 0–2, 7")],
)
def test_rank_lists(ranks, text) -> None:
    assert rank_list(ranks) == text


def test_many_places_are_cut() -> None:
    assert places([seen(f"n{i}", None, "1") for i in range(1000)]) == "n0, n1, n2 and 997 more"
