"""``make new-rule CODE=CD207 SLUG=ecc_errors_rising``: the file of a rule and its fixture folder, ready to fill in."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"0": "doctor", "1": "host", "2": "gpu", "3": "fabric", "4": "mpi", "5": "stack", "6": "bandwidth"}
FOLDERS.update({"7": "memory", "8": "gradients", "9": "script"})

TEMPLATE = '''"""{code}: {words}."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.host import OperatingSystem
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("{code}", Severity.WARNING, needs=(OperatingSystem,), since="0.1")
def {slug}(snapshot: Snapshot) -> Iterator[Finding]:
    """Say in one sentence what is wrong.

    Why it hurts: say what the user loses.

    How to mend it: say what to do, best with the command to type.
    """
    for seen in snapshot.all(OperatingSystem):
        if seen.fact.kernel == "describe the fault here":
            yield Finding(
                where=seen.where,
                message="say what is wrong",
                remedy="Start with an imperative.",
                evidence=(Evidence("kernel", seen.fact.kernel, "what it should be"),),
            )
'''

CASE = """{"schema": 1, "tool": "", "taken_at": "", "command": "fixture", "sightings": [
{"node": "node1", "rank": null, "probe": "fixture", "fact": {"kind": "OperatingSystem", "hostname": "node1",
 "kernel": "KERNEL", "distro": "Debian", "architecture": "x86_64", "container": null}}
]}
"""


def main(code: str, slug: str) -> int:
    if not re.fullmatch(r"CD\d{3}", code) or not re.fullmatch(r"[a-z][a-z0-9_]+", slug):
        print("usage: make new-rule CODE=CD207 SLUG=ecc_errors_rising", file=sys.stderr)
        return 2
    taken = list(ROOT.glob(f"chainerdoctor/rules/*/{code.lower()}_*.py"))
    if taken:
        print(f"{code} is taken: {taken[0].relative_to(ROOT)}; codes are never reused", file=sys.stderr)
        return 2
    path = ROOT / "chainerdoctor" / "rules" / FOLDERS[code[2]] / f"{code.lower()}_{slug}.py"
    path.parent.mkdir(exist_ok=True)
    (path.parent / "__init__.py").touch()
    path.write_text(TEMPLATE.format(code=code, slug=slug, words=slug.replace("_", " ")), encoding="utf-8")
    folder = ROOT / "fixtures" / "rules" / code
    folder.mkdir(parents=True)
    (folder / "found.json").write_text(CASE.replace("KERNEL", "describe the fault here"), encoding="utf-8")
    (folder / "clear.json").write_text(CASE.replace("KERNEL", "6.1"), encoding="utf-8")
    print(f"wrote {path.relative_to(ROOT)} and {folder.relative_to(ROOT)}/; edit them, then: make bless")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
