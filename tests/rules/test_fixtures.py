"""Every rule proves that it can find and that it can pass: fixtures/rules/CDNNN/found*.* and clear*.*

A case is a snapshot (``.json``), a training script (``.py``, ``.ipynb``) or a log (``.log``, ``.txt``); the last two
go through their real readers first. The verdict is compared with the golden beside it.
"""

import json
import os
from pathlib import Path

import pytest

from chainerdoctor import snapshot as snapshots
from chainerdoctor.findings import FOUND, PASSED
from chainerdoctor.judging import judge
from chainerdoctor.report.as_json import verdict_to_json
from chainerdoctor.rules import Rule, all_rules
from chainerdoctor.snapshot import Snapshot

RULE_FIXTURES = Path(__file__).resolve().parent.parent.parent / "fixtures" / "rules"


def read_case(path: Path) -> Snapshot:
    """The snapshot that a case stands for; paths in it are relative to its folder."""
    if path.suffix == ".json":
        return snapshots.load(str(path))
    if path.suffix in (".log", ".txt"):
        return read_log_case(path)
    if path.suffix in (".py", ".ipynb"):
        return read_script_case(path)
    raise AssertionError(f"no reader for {path.name}")


def read_log_case(path: Path) -> Snapshot:
    """A log read as ``check-log`` reads it, named without its folder and with a fixed time and zone."""
    from chainerdoctor.logs.gather import read_logs

    before = os.getcwd()
    os.chdir(path.parent)
    try:
        return read_logs([path.name], utc_offset_s=0, now_s=0.0)
    finally:
        os.chdir(before)


def read_script_case(path: Path) -> Snapshot:
    """A script read as ``lint`` reads it, named without its folder and with a fixed time."""
    from chainerdoctor.scripts.gather import read_scripts

    before = os.getcwd()
    os.chdir(path.parent)
    try:
        return read_scripts([path.name], now_s=0.0)
    finally:
        os.chdir(before)


def cases(kind: str) -> list:
    found = []
    for rule in all_rules():
        folder = RULE_FIXTURES / rule.code
        files = sorted(p for p in folder.glob(f"{kind}*") if p.suffix != ".golden")
        found += [pytest.param(rule, path, id=f"{rule.code}-{path.name}") for path in files]
    return found


def compare(rule: Rule, path: Path, status: str, bless: bool) -> None:
    (verdict,) = judge(read_case(path), [rule])
    assert verdict.status == status, verdict.reason or verdict.findings
    golden = path.with_name(path.name + ".golden")
    text = json.dumps(verdict_to_json(verdict), indent=2, ensure_ascii=False) + "\n"
    if bless:
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize(("rule", "path"), cases("found"))
def test_fault_is_found(rule: Rule, path: Path, bless: bool) -> None:
    compare(rule, path, FOUND, bless)


@pytest.mark.parametrize(("rule", "path"), cases("clear"))
def test_healthy_case_is_clear(rule: Rule, path: Path, bless: bool) -> None:
    compare(rule, path, PASSED, bless)


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_every_rule_has_both_kinds_of_case(rule: Rule) -> None:
    folder = RULE_FIXTURES / rule.code
    assert list(folder.glob("found*")), "no case proves that this rule can fail"
    assert list(folder.glob("clear*")), "no case proves that this rule can pass"


def test_no_fixture_folder_without_a_rule() -> None:
    assert {p.name for p in RULE_FIXTURES.iterdir()} <= {rule.code for rule in all_rules()}


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_documentation_says_what_why_and_how(rule: Rule) -> None:
    assert rule.summary.endswith(".")
    for heading in ("Why it hurts:", "How to mend it:"):
        assert f"\n\n{heading}" in rule.doc, f"{rule.code} lacks the paragraph '{heading}'"
