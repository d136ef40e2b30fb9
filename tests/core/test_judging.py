"""Rules are pure and isolated; what was not seen is skipped with its reason; selection works by prefix."""

from typing import Iterator

import pytest

from chainerdoctor.facts import Missing
from chainerdoctor.facts.host import Boot, OperatingSystem
from chainerdoctor.findings import Finding, Report, Severity
from chainerdoctor.judging import judge, report_on
from chainerdoctor.rules import Rule, SelectionError, all_rules, rule, selected
from chainerdoctor.snapshot import Sighting, Snapshot


def made(judging, needs=(OperatingSystem,), severity=Severity.ERROR) -> Rule:
    return Rule("CD999", "made_up", severity, needs, "0.1", judging, "What.\n\nWhy it hurts: it does.")


def seen(fact, node="n", rank=None) -> Sighting:
    return Sighting(node, rank, "p", 0.0, 0.0, fact)


SYSTEM = OperatingSystem("n", "6.1", "Debian", "x86_64", None)


def finds(snapshot: Snapshot) -> Iterator[Finding]:
    yield Finding("n", "wrong", "Mend it.")


def test_crashing_rule_is_a_verdict_and_the_others_go_on() -> None:
    def crashes(snapshot: Snapshot) -> Iterator[Finding]:
        raise RuntimeError("broken rule")
        yield

    crashed, found = judge(Snapshot([seen(SYSTEM)]), [made(crashes), made(finds)])
    assert (crashed.status, found.status) == ("crashed", "found")
    assert "broken rule" in crashed.reason


@pytest.mark.parametrize(
    ("reason", "blind"),
    [("absent", False), ("unsupported", False), ("timeout", True), ("crashed", True), ("error", True)],
)
def test_unseen_is_skipped_with_its_reason(reason: str, blind: bool) -> None:
    missing = Missing("operating_system", reason, "the true error", ("OperatingSystem",))
    (verdict,) = judge(Snapshot([seen(missing)]), [made(finds)])
    assert (verdict.status, verdict.blind) == ("skipped", blind)
    assert verdict.reason == "operating_system: the true error"


def test_blindness_outranks_absence() -> None:
    sightings = [
        seen(Missing("a", "absent", "there is none", ("OperatingSystem",)), "n1"),
        seen(Missing("b", "timeout", "no answer", ("OperatingSystem",)), "n2"),
    ]
    (verdict,) = judge(Snapshot(sightings), [made(finds)])
    assert verdict.blind
    assert verdict.reason == "b: no answer"


def test_what_is_absent_everywhere_leaves_nothing_to_judge() -> None:
    """A rule on GPUs and MPI is not blind on a machine without a GPU, even if MPI could not be seen."""
    sightings = [
        seen(Missing("gpus", "absent", "no driver", ("OperatingSystem",))),
        seen(Missing("mpi", "crashed", "SIGSEGV", ("Boot",))),
    ]
    (verdict,) = judge(Snapshot(sightings), [made(finds, needs=(Boot, OperatingSystem))])
    assert (verdict.status, verdict.blind, verdict.reason) == ("skipped", False, "gpus: no driver")


def test_any_of_needs_only_one() -> None:
    both = (OperatingSystem, Boot)
    strict = made(finds, needs=both)
    lenient = Rule("CD998", "x", Severity.INFO, both, "0.1", finds, "x.", any_of=True)
    assert [v.status for v in judge(Snapshot([seen(SYSTEM)]), [strict, lenient])] == ["skipped", "found"]


@pytest.mark.parametrize(
    ("severity", "fail_on", "code"),
    [
        ("error", "error", 1),
        ("warning", "error", 0),
        ("warning", "warning", 1),
        ("info", "warning", 0),
        ("info", "info", 1),
    ],
)
def test_exit_codes_by_severity(severity: str, fail_on: str, code: int) -> None:
    verdicts = judge(Snapshot([seen(SYSTEM)]), [made(finds, severity=Severity(severity))])
    assert Report("t", "c", "0" * 12, "", verdicts).exit_code(Severity(fail_on)) == code


def test_exit_code_for_blindness_and_findings_first() -> None:
    missing = seen(Missing("p", "timeout", "no answer", ("Boot",)))
    blind = made(finds, needs=(Boot,))
    assert Report("t", "c", "", "", judge(Snapshot([missing]), [blind])).exit_code(Severity.ERROR) == 3
    both = judge(Snapshot([missing, seen(SYSTEM)]), [blind, made(finds)])
    assert Report("t", "c", "", "", both).exit_code(Severity.ERROR) == 1


def test_nothing_to_look_at_is_not_an_all_clear() -> None:
    verdicts = judge(Snapshot([]), [made(finds)])
    assert [v.status for v in verdicts] == ["skipped"]
    assert Report("t", "c", "", "", verdicts).exit_code(Severity.ERROR) == 3


@pytest.mark.parametrize(
    ("select", "ignore", "kept"),
    [
        ((), (), ["CD101", "CD501", "CD512"]),
        (("CD5",), (), ["CD501", "CD512"]),
        (("CD5",), ("CD512",), ["CD501"]),
        ((), ("CD5",), ["CD101"]),
        (("CD512",), ("CD5",), ["CD512"]),
    ],
)
def test_selection_by_prefix(select, ignore, kept) -> None:
    rules = tuple(Rule(code, "x", Severity.INFO, (), "0.1", finds, "x.") for code in ("CD101", "CD501", "CD512"))
    assert [r.code for r in selected(rules, select, ignore)] == kept


def test_selection_that_fits_nothing_is_refused() -> None:
    rules = (Rule("CD101", "x", Severity.INFO, (), "0.1", finds, "x."),)
    with pytest.raises(SelectionError, match="no rule's code starts with CD9"):
        selected(rules, ("CD1", "CD9"), ())


def test_codes_and_docs_are_guarded() -> None:
    with pytest.raises(ValueError, match="CD and three digits"):
        rule("XX1", Severity.INFO, needs=(), since="0.1")

    def undocumented(snapshot: Snapshot) -> Iterator[Finding]:
        return iter(())

    with pytest.raises(ValueError, match="no docstring"):
        rule("CD999", Severity.INFO, needs=(), since="0.1")(undocumented)


def test_same_snapshot_gives_the_same_bytes() -> None:
    from chainerdoctor.report.as_json import as_json

    snapshot = Snapshot([seen(SYSTEM), seen(OperatingSystem("m", "5.15", "Debian", "x86_64", None), "m")])
    assert as_json(report_on(snapshot, all_rules(), "x")) == as_json(report_on(snapshot, all_rules(), "x"))


def test_every_rule_file_is_named_after_its_rule() -> None:
    for each in all_rules():
        module = each.judge.__module__.rsplit(".", 1)[1]
        assert module == f"{each.code.lower()}_{each.slug}"


def test_names_of_rules_are_unique() -> None:
    slugs = [each.slug for each in all_rules()]
    assert len(set(slugs)) == len(slugs), sorted(slug for slug in slugs if slugs.count(slug) > 1)
