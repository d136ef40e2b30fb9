"""``chainerdoctor snapshot``."""

from __future__ import annotations

from typing import Optional

import click


@click.command(
    epilog="\b\nExamples:\n  chainerdoctor snapshot > $(hostname).json\n  chainerdoctor snapshot -n 4 -o node.json --redact"
)
@click.option("-n", "ranks", type=click.IntRange(min=1), default=1, show_default=True, help="Ranks on this machine.")
@click.option(
    "--launcher", type=click.Choice(["auto", "local", "mpiexec", "slurm"]), default="local", show_default=True
)
@click.option("--timeout", "timeout_s", type=click.FloatRange(min=1), default=60, show_default=True, help="Seconds.")
@click.option(
    "--active/--no-active", default=True, help="Also compute and copy a little on each device [default: active]."
)
@click.option("--redact", is_flag=True, help="Replace names of hosts and users, addresses and home folders.")
@click.option("--output", "-o", type=click.Path(dir_okay=False, allow_dash=True), help="File to write.")
def command(ranks: int, launcher: str, timeout_s: float, active: bool, redact: bool, output: Optional[str]) -> None:
    """Look at this machine and save what was seen, without judging."""
    from chainerdoctor.cli.options import usage_errors, write_file, write_text
    from chainerdoctor.cli.progress import rank_progress
    from chainerdoctor.launch.collect import gather
    from chainerdoctor.launch.launchers import agent_command, plan
    from chainerdoctor.redaction import redacted

    with usage_errors(), rank_progress() as progress:
        seen = gather(plan(launcher, ranks, (), agent_command(timeout_s, active)), timeout_s, "snapshot", progress)
    text = (redacted(seen) if redact else seen).dumps()
    if output in (None, "-"):
        write_text(text)
    else:
        write_file(str(output), text)
