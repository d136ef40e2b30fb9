"""``chainerdoctor check-cluster``."""

from __future__ import annotations

from typing import Optional, Tuple

import click

from chainerdoctor.cli.options import ReportOptions, report_options

_EPILOG = """\b
Examples:
  chainerdoctor check-cluster -n 2                   this machine, two ranks
  chainerdoctor check-cluster --hosts n1:4,n2:4      two nodes, four ranks each
  mpiexec -n 8 chainerdoctor check-cluster           join a launcher's ranks
  srun -N 4 chainerdoctor check-cluster              the same under Slurm
  chainerdoctor check-cluster --from n1.json n2.json judge saved snapshots
  chainerdoctor check-cluster -n 2 --format junit -o report.xml
"""


@click.command(epilog=_EPILOG)
@click.option("-n", "ranks", type=int, help="Number of ranks [default: all slots of the hosts, or 1].")
@click.option("--hosts", metavar="A,B:4", help="Hosts with their slots.")
@click.option("--hostfile", type=click.Path(exists=True, dir_okay=False), help="Hosts, in MPICH's or Open MPI's form.")
@click.option(
    "--launcher",
    type=click.Choice(["auto", "local", "mpiexec", "slurm", "ssh"]),
    default="auto",
    show_default=True,
    help="How ranks are started.",
)
@click.option("--from", "saved", multiple=True, metavar="FILE…", help="Judge saved snapshots instead of looking.")
@click.option("--baseline", metavar="FILE", help="A healthy snapshot to compare with.")
@click.option("--script", metavar="TRAIN.PY", help="The script to be run: is it the same file on all ranks?")
@click.option("--timeout", "timeout_s", type=click.FloatRange(min=1), default=60, show_default=True, help="Seconds.")
@click.option(
    "--active/--no-active", default=True, help="Also compute and copy a little on each device [default: active]."
)
@click.option("--save", metavar="FILE", help="Also save the snapshot, to be judged again later.")
@click.argument("more_files", nargs=-1, metavar="[FILE…]")
@report_options
def command(
    ranks: Optional[int],
    hosts: Optional[str],
    hostfile: Optional[str],
    launcher: str,
    saved: Tuple[str, ...],
    baseline: Optional[str],
    script: Optional[str],
    timeout_s: float,
    active: bool,
    save: Optional[str],
    more_files: Tuple[str, ...],
    report_options: ReportOptions,
) -> None:
    """Look at every rank and node, and judge what was seen.

    Nothing is changed. Every GPU (without one, the CPU) computes, copies and sums for a second or two, and the results
    are checked; --no-active leaves that out. The ranks need neither a working MPI nor a shared file system: each hands
    in what it sees through the launcher's output, and silence is reported.
    """
    from chainerdoctor.checkup import checkup
    from chainerdoctor.cli.options import deliver, usage_errors, write_file
    from chainerdoctor.cli.progress import rank_progress

    if more_files and not saved:
        raise click.UsageError(f"unexpected argument '{more_files[0]}' (did you mean --from {more_files[0]}?)")
    with usage_errors(), rank_progress() as progress:
        found = checkup(
            ranks=ranks,
            hosts=hosts,
            hostfile=hostfile,
            launcher=launcher,
            saved=(*saved, *more_files),
            baseline=baseline,
            script=script,
            timeout_s=timeout_s,
            active=active,
            select=report_options.select,
            ignore=report_options.ignore,
            progress=progress,
        )
    if found is None:  # this rank is not the one that reports
        raise SystemExit(0)
    if save is not None:
        write_file(save, found.snapshot.dumps())
    deliver(found.report, report_options)
