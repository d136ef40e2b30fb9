"""Run every bench_*.py, print a table, write bench.json, and compare with the last one."""

import importlib
import json
import os
import pkgutil
import platform
import sys
import time
from pathlib import Path
from typing import Any, Dict

import tests.bench

RESULT = Path(__file__).resolve().parent.parent.parent / "bench.json"


def main() -> int:
    last: Dict[str, Any] = json.loads(RESULT.read_text())["figures"] if RESULT.exists() else {}
    figures: Dict[str, Any] = {}
    names = [m.name for m in pkgutil.iter_modules(tests.bench.__path__) if m.name.startswith("bench_")]
    for name in [n for n in names if not sys.argv[1:] or any(word in n for word in sys.argv[1:])]:
        print(f"… {name}", file=sys.stderr)
        figures.update(importlib.import_module(f"tests.bench.{name}").measure())
    machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()[0]}
    RESULT.write_text(json.dumps({"date": time.strftime("%Y-%m-%d"), "machine": machine, "figures": figures}, indent=2))
    print(f"{'what':<64} {'ours':>9} {'peer':>9} {'ratio':>6} {'spread':>13}  bar; last ratio")
    for what, figure in figures.items():
        print(_row(what, figure, last.get(what, {})))
    return 0


def _row(what: str, figure: Dict[str, Any], last: Dict[str, Any]) -> str:
    def seconds(key: str) -> str:
        return f"{figure[key] * 1000:.1f} ms" if key in figure else ""

    ratio = f"{figure['ratio']:.2f}" if "ratio" in figure else ""
    spread = f"{figure['ratio_min']:.2f}–{figure['ratio_max']:.2f}" if "ratio_min" in figure else ""
    before = f"; {last['ratio']:.2f}" if "ratio" in last else ""
    return f"{what:<64} {seconds('ours_s'):>9} {seconds('peer_s'):>9} {ratio:>6} {spread:>13}  {figure.get('bar', '')}{before}"


if __name__ == "__main__":
    sys.exit(main())
