"""The generated parts of README.md: the table of rules and the terminal picture. ``make readme`` writes them."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from chainerdoctor import snapshot as snapshots  # noqa: E402
from chainerdoctor.judging import report_on  # noqa: E402
from chainerdoctor.report.as_page import as_list  # noqa: E402
from chainerdoctor.report.as_terminal import as_terminal  # noqa: E402
from chainerdoctor.rules import all_rules, selected  # noqa: E402

#: The snapshot that the picture shows: taken on real ranks with one node's environment spoilt, then redacted.
PICTURE = ROOT / "fixtures" / "reports" / "readme.json"


def picture() -> str:
    seen = snapshots.load(str(PICTURE))
    rules = selected(all_rules(), ("CD0", "CD1", "CD2", "CD3", "CD4", "CD5"), ("CD513",))
    return f"```text\n{as_terminal(report_on(seen, rules, 'check-cluster'))}```"


def fresh(text: str) -> str:
    """The README with its generated parts written anew."""
    for name, content in (("picture", picture()), ("rules", as_list(all_rules(), "markdown").rstrip("\n"))):
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.S)
        text = pattern.sub(lambda m, c=content: f"{m.group(1)}{c}\n{m.group(2)}", text)
    return text


def main() -> int:
    path = ROOT / "README.md"
    text = path.read_text(encoding="utf-8")
    if "--write" in sys.argv:
        path.write_text(fresh(text), encoding="utf-8")
        return 0
    return 0 if fresh(text) == text else 1


if __name__ == "__main__":
    sys.exit(main())
