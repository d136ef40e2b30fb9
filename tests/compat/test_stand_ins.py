"""The stand-in for pkg_resources beside packaging, which defines what a specifier means."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet

from chainerdoctor.compat import stand_ins
from chainerdoctor.compat.patches import leading_numbers

VERSIONS = ["1.9", "7.8.0", "7.8.0.post1", "8.0.0rc1", "8.0.0", "8.0", "9.6.0", "13.6.0", "2.5.5"]
SPECIFIERS = [">=7.7.0,<8.0.0", "==7.8.0", "!=8.0.0", ">=1.9", "~=7.8.0", ">7.8", "<=13.6"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("specifier", SPECIFIERS)
def test_require_agrees_with_packaging(version: str, specifier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stand_ins, "get_distribution", lambda _: stand_ins.Distribution(version))
    wanted = SpecifierSet(specifier).contains(version, prereleases=True)
    try:
        stand_ins.require(f"cupy{specifier}")
        met = True
    except stand_ins.VersionConflict:
        met = False
    assert met is wanted


def test_what_is_not_installed() -> None:
    with pytest.raises(stand_ins.DistributionNotFound):
        stand_ins.require("no-such-distribution-here>=1")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("2.5.0rc1", (2, 5, 0)), ("1.23.5", (1, 23, 5)), ("8.0.dev3", (8, 0)), ("", ()), ("x", ()), ("2.0+cu12", (2, 0))],
)
def test_leading_numbers(text: str, numbers: tuple) -> None:
    assert leading_numbers(text) == numbers
