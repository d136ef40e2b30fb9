"""``chainerdoctor check-log FILE…``."""

from __future__ import annotations

from typing import Optional, Tuple

import click

from chainerdoctor.cli.options import ReportOptions, report_options

_EPILOG = """\b
Examples:
  chainerdoctor check-log nccl.log                    what one log says
  mpirun … 2>&1 | tee run.log; chainerdoctor check-log run.log
  dmesg | chainerdoctor check-log -                   the kernel's messages
  chainerdoctor check-log nccl.*.log dmesg.txt.gz     several at once, judged together
  chainerdoctor check-log nccl.log --topology -       a picture of nodes, GPUs and links
  chainerdoctor check-log nccl.log --stage-log train.stages.jsonl
\b
A stage log holds one JSON object a line:
  {"t": 1735689600.25, "iteration": 12, "phase": "allreduce", "rank": 0}
"""


@click.command(epilog=_EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option(
    "--stage-log", type=click.Path(dir_okay=False), help="Stages of the training, to place the log's times in."
)
@click.option("--utc-offset", metavar="+HH:MM", help="Zone of times that name none [default: this machine's].")
@click.option(
    "--topology",
    metavar="FILE",
    help="Draw nodes, GPUs and links: an SVG if the name ends in .svg, otherwise text ('-' prints it).",
)
@click.option("--save", type=click.Path(dir_okay=False), metavar="FILE", help="Keep the facts as a snapshot (JSON).")
@report_options
def command(
    files: Tuple[str, ...],
    stage_log: Optional[str],
    utc_offset: Optional[str],
    topology: Optional[str],
    save: Optional[str],
    report_options: ReportOptions,
) -> None:
    """Read what NCCL, MPI, the kernel and nvidia-smi already said.

    FILE can be gzipped; '-' is standard input. Several files are judged together.
    """
    from chainerdoctor.cli.options import deliver, usage_errors, write_file, write_text
    from chainerdoctor.cli.progress import reading_progress
    from chainerdoctor.judging import report_on
    from chainerdoctor.logs.gather import checked, log_rules, read_logs
    from chainerdoctor.logs.reading import LogReadError
    from chainerdoctor.logs.stages import StageLogError
    from chainerdoctor.rules import selected

    with usage_errors():
        rules = selected(log_rules(), report_options.select, report_options.ignore)
    try:
        with reading_progress() as progress:
            snapshot = read_logs(files, stage_log=stage_log, utc_offset_s=_offset(utc_offset), progress=progress)
    except (LogReadError, StageLogError) as error:
        raise click.UsageError(str(error)) from None
    if save is not None:
        write_file(save, snapshot.dumps())
    if topology is not None:
        from chainerdoctor.report.topology import as_topology, as_topology_svg

        if topology.lower().endswith(".svg"):
            write_file(topology, as_topology_svg(snapshot))
        elif topology == "-":
            write_text(as_topology(snapshot) + "\n")
        else:
            write_file(topology, as_topology(snapshot))
    deliver(report_on(snapshot, rules, "check-log", checked(snapshot)), report_options)


def _offset(text: Optional[str]) -> Optional[int]:
    import re

    if text is None:
        return None
    found = re.fullmatch(r"([+-])(\d\d):?(\d\d)|Z", text)
    if found is None:
        raise click.UsageError(f"--utc-offset {text}: wanted is +09:00, -0500 or Z")
    if text == "Z":
        return 0
    return (-1 if found[1] == "-" else 1) * (int(found[2]) * 3600 + int(found[3]) * 60)
