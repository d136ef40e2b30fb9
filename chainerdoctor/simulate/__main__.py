"""``python -m chainerdoctor.simulate SCENARIO [--libraries nvml,nccl,cuda] -- PROGRAM ARGUMENTS…``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from chainerdoctor.simulate import ScenarioError, SimulationUnavailable, environment
from chainerdoctor.simulate.scenario import describe_keys


def main() -> int:
    """Run a program on the simulated machine; returns its exit code, or 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m chainerdoctor.simulate",
        usage="%(prog)s [--libraries NAMES] SCENARIO -- PROGRAM [ARGUMENT ...]",
        description="Run a program on simulated GPUs.",
        epilog="Example: python -m chainerdoctor.simulate machine.scn -- nvitop -1",
    )
    parser.add_argument("scenario", nargs="?", help="scenario file (its format: pydoc chainerdoctor.simulate.scenario)")
    parser.add_argument(
        "--libraries", default="nvml,nccl,cuda", help="which libraries to simulate (default: %(default)s)"
    )
    parser.add_argument("--keys", action="store_true", help="list every key of a GPU with its default and meaning")
    own, program = sys.argv[1:], []
    if "--" in own:  # the program's own options are not ours to read
        cut = own.index("--")
        own, program = own[:cut], own[cut + 1 :]
    options = parser.parse_args(own)
    if options.keys:
        print(describe_keys())
        return 0
    if not options.scenario or not program:
        parser.error("a scenario file and, after --, a program are needed")
    try:
        variables = environment(options.scenario, options.libraries.split(","))
        return subprocess.run(program, env={**os.environ, **variables}, check=False).returncode
    except (ScenarioError, SimulationUnavailable, ValueError, FileNotFoundError) as error:
        print(f"chainerdoctor.simulate: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
