"""The report as one HTML file that people keep: verdicts first, no network, readable on a phone, in the dark and printed."""

from __future__ import annotations

import functools
import pkgutil
from typing import Any, List, Tuple

from chainerdoctor.findings import PASSED, SKIPPED, Report, Severity
from chainerdoctor.report.plain import one_line, plain
from chainerdoctor.report.svg import as_svg

#: Findings of one rule that are written out.
_MOST = 200


def as_html(report: Report) -> str:
    """The report as the text of an HTML document. Everything from elsewhere is escaped."""
    from markupsafe import Markup

    counts = [(severity.value, report.count(severity)) for severity in reversed(Severity)]
    page: str = _template().render(
        report=report,
        counts=counts,
        found=report.found(),
        blind=report.could_not_judge(),
        nothing=report.judged_nothing(),
        passed=[verdict for verdict in report.verdicts if verdict.status == PASSED],
        skipped=_skipped(report),
        # Drawn by us, with every text in them escaped.
        charts=[(chart.title, Markup(as_svg(chart))) for chart in report.charts],  # noqa: S704
        most=_MOST,
    )
    return page


def _skipped(report: Report) -> List[Tuple[str, str]]:
    """Rules that had nothing to look at, with the reason; those of other commands are left out."""
    return [
        (verdict.code, verdict.reason)
        for verdict in report.verdicts
        if verdict.status == SKIPPED and not verdict.blind and not verdict.reason.startswith("not looked at")
    ]


@functools.lru_cache(maxsize=1)
def _template() -> Any:
    import jinja2

    source = pkgutil.get_data("chainerdoctor.report", "page.html.j2")
    assert source is not None
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["line"] = lambda text: one_line(str(text))
    environment.filters["plain"] = lambda text: plain(str(text))
    return environment.from_string(source.decode("utf-8"))
