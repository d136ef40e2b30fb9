"""Every form of the report: valid by its published schema, escaped, readable at any width, equal to its golden."""

import json
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import html5lib
import jsonschema
import pytest
import xmlschema
from reports import ALL, hostile, many, sick

from chainerdoctor.report.as_html import as_html
from chainerdoctor.report.as_json import as_json, schema_text
from chainerdoctor.report.as_junit import as_junit
from chainerdoctor.report.as_markdown import as_markdown
from chainerdoctor.report.as_sarif import as_sarif
from chainerdoctor.report.as_terminal import as_terminal
from chainerdoctor.report.svg import as_svg

GOLDENS = Path(__file__).resolve().parent.parent.parent / "fixtures" / "reports"
RENDERERS = {
    "terminal.txt": as_terminal,
    "report.json": as_json,
    "junit.xml": as_junit,
    "report.sarif": as_sarif,
    "report.md": as_markdown,
    "report.html": as_html,
}


@pytest.mark.parametrize("case", ["healthy", "sick", "blind", "measured"])
@pytest.mark.parametrize("name", RENDERERS)
def test_golden(case: str, name: str, bless: bool) -> None:
    text = RENDERERS[name](ALL[case]())
    golden = GOLDENS / case / name
    if bless:
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", ALL)
def test_json_is_valid_by_our_schema(case: str) -> None:
    schema = json.loads(schema_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(as_json(ALL[case]())))


def test_schema_can_refuse() -> None:
    schema = json.loads(schema_text())
    raw = json.loads(as_json(sick()))
    next(v for v in raw["verdicts"] if v["status"] == "found")["findings"] = []
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate(raw)


@pytest.mark.parametrize("case", ALL)
def test_junit_is_valid_by_jenkins_schema(case: str, published_schema) -> None:
    xmlschema.XMLSchema(published_schema("junit")).validate(as_junit(ALL[case]()))


@pytest.mark.parametrize("case", ALL)
def test_sarif_is_valid_by_oasis_schema(case: str, published_schema) -> None:
    schema = json.loads(published_schema("sarif"))
    jsonschema.Draft7Validator(schema).validate(json.loads(as_sarif(ALL[case]())))


def test_junit_counts_agree_with_its_cases() -> None:
    import xml.etree.ElementTree as ET

    for suite in ET.fromstring(as_junit(sick())):
        assert int(suite.get("tests")) == len(suite.findall("testcase"))
        assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
        assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped"))
    blind_errors = ET.fromstring(as_junit(ALL["blind"]())).findall(".//error")
    assert len(blind_errors) == 1


@pytest.mark.parametrize("width", [20, 40, 80, 132])
@pytest.mark.parametrize("case", ALL)
def test_terminal_keeps_the_width(case: str, width: int) -> None:
    for line in as_terminal(ALL[case](), width=width).splitlines():
        columns = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)
        assert columns <= width


def test_terminal_without_colour_has_no_escape_and_with_colour_has() -> None:
    assert "\x1b" not in as_terminal(sick(), colour=False)
    assert "\x1b[" in as_terminal(sick(), colour=True)


@pytest.mark.parametrize("name", RENDERERS)
def test_hostile_text_cannot_move_the_cursor_or_reorder(name: str) -> None:
    text = RENDERERS[name](hostile())
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
    text.encode("utf-8")


@pytest.mark.parametrize("case", ALL)
def test_html_is_valid_and_asks_nothing_of_a_network(case: str) -> None:
    text = as_html(ALL[case]())
    document = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)
    for element in document.iter():
        assert element.tag not in ("script", "link", "img", "iframe", "object", "base")
        assert not {"src", "href", "xlink:href", "onload", "onclick"} & set(element.attrib)
    assert "@import" not in text
    assert "url(" not in text


def test_html_holds_every_text_of_the_report() -> None:
    page = html5lib.parse(as_html(sick()), namespaceHTMLElements=False)
    words = " ".join("".join(page.itertext()).split())
    for verdict in sick().found():
        assert verdict.code in words
        for finding in verdict.findings:
            for text in (finding.where, finding.message, finding.remedy, *(each.seen for each in finding.evidence)):
                assert " ".join(text.split()) in words


@pytest.mark.parametrize("case", ALL)
def test_every_drawing_is_well_formed(case: str) -> None:
    import xml.etree.ElementTree as ET

    for chart in ALL[case]().charts:
        drawing = ET.fromstring(as_svg(chart))
        assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
        _, _, width, height = map(float, drawing.get("viewBox").split())
        for element in drawing.iter():
            for name, most in (("x", width), ("y", height), ("cx", width), ("cy", height)):
                assert 0 <= float(element.get(name, 0)) <= most, ET.tostring(element)


def test_markdown_shows_marks_instead_of_obeying() -> None:
    text = as_markdown(hostile())
    assert "<script>" not in text
    assert "[x](y)" not in text


def test_terminal_in_ascii() -> None:
    for case in ALL.values():
        as_terminal(case(), unicode=False).encode("ascii")


def test_worst_comes_first() -> None:
    text = as_terminal(sick())
    order = [text.index(code) for code in ("CD002", "CD502", "CD520")]
    assert order == sorted(order)
    assert text.index("error") < text.index("warning")


def test_ten_thousand_findings_are_counted_not_poured_out() -> None:
    text = as_terminal(many(10_000))
    assert text.count("\n") < 200
    assert "9980 more" in text
    assert len(json.loads(as_json(many(10_000)))["verdicts"][0]["findings"]) == 10_000


def test_healthy_report_is_short() -> None:
    assert as_terminal(ALL["healthy"]()).count("\n") <= 6


def test_rendering_does_not_need_the_other_renderers() -> None:
    code = (
        "import sys, chainerdoctor.report.as_json; "
        "assert not {'rich', 'jinja2', 'xml.etree.ElementTree'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
