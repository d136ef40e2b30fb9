"""``chainerdoctor allreduce-bench``."""

from __future__ import annotations

import re
from typing import Optional, Tuple

import click

from chainerdoctor.cli.options import ReportOptions, report_options

_EPILOG = """\b
Examples:
  chainerdoctor allreduce-bench -n 4                          this machine, by MPI
  chainerdoctor allreduce-bench --hosts n1:4,n2:4 --backend nccl
  chainerdoctor allreduce-bench -n 4 --backend chainermn:naive --model resnet50
  chainerdoctor allreduce-bench -n 8 --pairwise               who is slow
  chainerdoctor allreduce-bench -n 4 --save healthy.json      keep a result, then
  chainerdoctor allreduce-bench -n 4 --baseline healthy.json --tolerance 10%
  chainerdoctor allreduce-bench -n 4 --min-busbw 1.5          fail below 1.5 GB/s
  chainerdoctor allreduce-bench -n 4 --compare-env NCCL_P2P_DISABLE=1
"""
_UNITS = {
    "": 1,
    "B": 1,
    "K": 2**10,
    "KIB": 2**10,
    "M": 2**20,
    "MIB": 2**20,
    "G": 2**30,
    "GIB": 2**30,
    "T": 2**40,
    "TIB": 2**40,
}


class Size(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """Bytes, as 65536, 64K or 64KiB."""

    name = "size"

    def convert(self, value: object, param: Optional[click.Parameter], ctx: Optional[click.Context]) -> int:
        """A number of bytes from text."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d{1,15})\s*([A-Za-z]*)", str(value).strip())
        if found is None or found[2].upper() not in _UNITS or int(found[1]) < 1:
            self.fail(f"{value!r} is no size: write 65536, 64KiB or 64MiB", param, ctx)
        return int(found[1]) * _UNITS[found[2].upper()]


@click.command(epilog=_EPILOG)
@click.option("-n", "ranks", type=int, help="Number of ranks [default: all slots of the hosts, or 2].")
@click.option("--hosts", metavar="A,B:4", help="Hosts with their slots.")
@click.option("--hostfile", type=click.Path(exists=True, dir_okay=False), help="Hosts, in MPICH's or Open MPI's form.")
@click.option("--launcher", type=click.Choice(["auto", "mpiexec", "slurm"]), default="auto", show_default=True)
@click.option(
    "--backend",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="mpi, nccl, or chainermn:naive, :flat, :non_cuda_aware, :pure_nccl. auto: nccl where GPUs are seen, else mpi.",
)
@click.option("--min", "least", type=Size(), default="8", show_default=True, help="Smallest size.")
@click.option("--max", "most", type=Size(), default="16MiB", show_default=True, help="Largest size.")
@click.option("--factor", type=click.IntRange(min=2), default=4, show_default=True, help="From one size to the next.")
@click.option("--sizes", metavar="A,B,…", help="These sizes instead.")
@click.option("--dtype", type=click.Choice(["float16", "float32", "float64"]), default="float32", show_default=True)
@click.option("--iters", type=click.IntRange(min=1), help="Timed calls of each size [default: as --seconds allow].")
@click.option("--warmup", type=click.IntRange(min=1), default=5, show_default=True, help="Calls before.")
@click.option(
    "--seconds", type=click.FloatRange(min=0.1), default=8.0, show_default=True, help="For all sizes together."
)
@click.option("--check/--no-check", default=True, help="Compare results with the exact sum [default: check].")
@click.option("--pairwise", is_flag=True, help="Also find out which rank or link is slow.")
@click.option("--model", metavar="NAME", help="resnet50, vgg16, … or script.py:make_model: what it means for training.")
@click.option("--compute-ms", type=click.FloatRange(min=0.001), help="A step's compute time, for the efficiency.")
@click.option(
    "--min-busbw", type=click.FloatRange(min=0), help="Fail where busbw (GB/s) is below at a size ≥ --floor-from."
)
@click.option(
    "--floor-from", type=Size(), default="1MiB", show_default=True, help="Sizes that a floor or baseline judges."
)
@click.option("--baseline", metavar="FILE", help="A result that was kept with --save.")
@click.option("--tolerance", default="10%", show_default=True, help="How much less than the baseline is accepted.")
@click.option("--compare-env", metavar="NAME=VALUE,…", help="Try settings: runs with and without them in turn.")
@click.option("--timeout", "timeout_s", type=click.FloatRange(min=5), default=120, show_default=True, help="Seconds.")
@click.option("--save", metavar="FILE", help="Keep the result, to be judged again or as a baseline.")
@report_options
def command(
    ranks: Optional[int],
    hosts: Optional[str],
    hostfile: Optional[str],
    launcher: str,
    backend: str,
    least: int,
    most: int,
    factor: int,
    sizes: Optional[str],
    dtype: str,
    iters: Optional[int],
    warmup: int,
    seconds: float,
    check: bool,
    pairwise: bool,
    model: Optional[str],
    compute_ms: Optional[float],
    min_busbw: Optional[float],
    floor_from: int,
    baseline: Optional[str],
    tolerance: str,
    compare_env: Optional[str],
    timeout_s: float,
    save: Optional[str],
    report_options: ReportOptions,
) -> None:
    """Measure all-reduce on real ranks, check its sums, and say who is slow.

    Sizes are bytes of one rank's buffer; busbw is algbw·2(n−1)/n as in nccl-tests. What was measured before a rank is
    lost or the time is up is kept and marked PARTIAL.
    """
    from chainerdoctor.allreduce_bench import Demands, bench, sizes_between
    from chainerdoctor.checkup import hosts_of
    from chainerdoctor.cli.options import deliver, usage_errors, write_file
    from chainerdoctor.cli.progress import counting_progress
    from chainerdoctor.workloads.allreduce.plan import Plan

    if least > most:
        raise click.UsageError(f"--min {least} is larger than --max {most}")
    wish = Plan(
        backend=_backend(backend),
        sizes=_sizes(sizes) if sizes else sizes_between(least, most, factor),
        dtype=dtype,
        iterations=iters or 0,
        warmup=warmup,
        seconds=seconds,
        check=check,
        pairwise=pairwise,
        model=model,
    )
    demands = Demands(min_busbw, floor_from, baseline, _share(tolerance))
    with usage_errors(), counting_progress("sizes are measured") as progress:
        placed = hosts_of(hosts, hostfile)
        done = bench(
            wish,
            ranks=ranks if ranks is not None or placed else 2,
            hosts=placed,
            launcher=launcher,
            timeout_s=timeout_s,
            demands=demands,
            settings=_settings(compare_env),
            compute_s=None if compute_ms is None else compute_ms / 1e3,
            select=report_options.select,
            ignore=report_options.ignore,
            progress=progress,
        )
    if save is not None:
        write_file(save, done.snapshot.dumps())
    deliver(done.report, report_options)


def _backend(name: str) -> str:
    known = ("auto", "mpi", "nccl", "chainermn")
    family, _, communicator = name.partition(":")
    if family not in known or (communicator and family != "chainermn"):
        raise click.UsageError(f"no backend {name!r}; there are mpi, nccl and chainermn:COMMUNICATOR")
    communicators = ("", "naive", "flat", "non_cuda_aware", "pure_nccl")
    if communicator not in communicators:
        raise click.UsageError(
            f"no communicator {communicator!r} in Chainer 7; there are {', '.join(communicators[1:])}"
        )
    return name


def _sizes(text: str) -> Tuple[int, ...]:
    return tuple(sorted({Size().convert(each, None, None) for each in text.split(",") if each.strip()}))


def _share(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", text.strip())
    share = float(found[1]) / (100 if found[2] else 1) if found is not None else -1.0
    if not 0 <= share < 1:
        raise click.UsageError(f"--tolerance {text}: write 10% or 0.1")
    return share


def _settings(text: Optional[str]) -> Tuple[Tuple[str, str], ...]:
    pairs = []
    for each in (text or "").split(","):
        if each.strip():
            name, sign, value = each.strip().partition("=")
            if not sign or not re.fullmatch(r"[A-Za-z_]\w*", name):
                raise click.UsageError(f"--compare-env {each}: write NAME=VALUE")
            pairs.append((name, value))
    return tuple(pairs)
