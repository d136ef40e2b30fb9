"""Every kind of fact survives the trip through JSON text, and malformed JSON is refused with the field's name."""

import dataclasses
import json
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainerdoctor.codec import CodecError, fact_from_json, fact_to_json
from chainerdoctor.facts import Unknown, fact_kinds
from chainerdoctor.facts.host import OperatingSystem, ResourceLimit

KINDS = sorted((kind for kind in fact_kinds().values() if kind is not Unknown), key=lambda kind: kind.kind)


def values(annotation: Any) -> st.SearchStrategy:
    """Arbitrary values of an annotation, made from typing alone and not by the codec."""
    if dataclasses.is_dataclass(annotation):
        hints = get_type_hints(annotation)
        return st.builds(annotation, **{f.name: values(hints[f.name]) for f in dataclasses.fields(annotation)})
    origin, arguments = getattr(annotation, "__origin__", None), getattr(annotation, "__args__", ())
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, arguments))
    if origin is dict:
        return st.dictionaries(st.text(max_size=5), values(arguments[1]), max_size=3)
    if origin is not None:  # Optional
        return st.one_of(*[values(a) for a in arguments])
    return {
        str: st.text(max_size=8),
        int: st.integers(),
        float: st.floats(allow_nan=False),
        bool: st.booleans(),
        type(None): st.none(),
    }[annotation]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_round_trip(kind: type) -> None:
    @given(values(kind))
    def check(fact: Any) -> None:
        text = json.dumps(fact_to_json(fact))
        assert fact_from_json(json.loads(text)) == fact

    check()


def test_infinity_and_nan_are_valid_json() -> None:
    from chainerdoctor.facts.host import ClockOffset

    text = json.dumps(fact_to_json(ClockOffset(float("-inf"), float("inf"))), allow_nan=False)
    assert fact_from_json(json.loads(text)) == ClockOffset(float("-inf"), float("inf"))


def test_newer_fact_keeps_what_this_version_knows() -> None:
    raw = {"kind": "ResourceLimit", "name": "nofile", "soft": 1024, "hard": None, "invented_later": [1]}
    assert fact_from_json(raw) == ResourceLimit("nofile", 1024, None)


def test_unknown_kind_is_kept_whole() -> None:
    raw = {"kind": "NotInventedYet", "value": {"a": [1, None, "x"]}}
    fact = fact_from_json(raw)
    assert isinstance(fact, Unknown)
    assert fact_to_json(fact) == raw


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"kind": "ResourceLimit", "name": "nofile", "soft": "1024", "hard": None}, "ResourceLimit.soft: expected int"),
        ({"kind": "ResourceLimit", "name": "nofile", "soft": True, "hard": None}, "ResourceLimit.soft: expected int"),
        ({"kind": "ResourceLimit", "soft": 1, "hard": None}, "lacks the field 'name'"),
        ({"kind": 3}, "object with a 'kind'"),
        ([], "object with a 'kind'"),
        ({"kind": "NetworkInterface", "name": "e", "index": 1, "up": True, "virtual": 0}, "virtual: expected bool"),
    ],
)
def test_malformed_is_refused_by_name(raw: Any, words: str) -> None:
    with pytest.raises(CodecError, match=words.replace("(", r"\(")):
        fact_from_json(raw)


def test_facts_are_hashable() -> None:
    assert len({OperatingSystem("a", "b", "c", "d", None), OperatingSystem("a", "b", "c", "d", None)}) == 1


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_facts_are_frozen_and_documented(kind: type) -> None:
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen
    assert kind.__doc__
    assert not kind.__doc__.startswith(f"{kind.__name__}("), "the dataclass's made-up docstring"
