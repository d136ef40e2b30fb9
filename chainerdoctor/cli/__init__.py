"""The command line: one thin file per command in this package, found by name and imported when it is used."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
from typing import List, Optional

import click

from chainerdoctor import __version__

#: Files of this package that are not commands.
_NOT_COMMANDS = frozenset({"options", "settings", "progress", "programs"})

#: Commands in whose process a person's program runs: signals are that program's affair.
_RUNS_PROGRAMS = frozenset({"run"})


class LazyGroup(click.Group):
    """A group whose commands are this package's files: ``check_cluster.py`` holds ``check-cluster``."""

    def list_commands(self, ctx: click.Context) -> List[str]:
        """Names of all commands, sorted."""
        names = (module.name for module in pkgutil.iter_modules(__path__))
        return sorted(name.replace("_", "-") for name in names if name not in _NOT_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Optional[click.Command]:
        """Import the one file that is asked for; ``None`` if there is no such command."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"{__name__}.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def resolve_command(self, ctx: click.Context, args: List[str]):  # type: ignore[no-untyped-def]
        """As click does, with the nearest command's name in the error."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if near:
                raise click.UsageError(f"No such command '{args[0]}'. Did you mean '{near[0]}'?", ctx) from None
            raise error


def end_in_order_when_terminated() -> None:
    """SIGTERM (a scheduler's, ``timeout``'s) ends a command as Ctrl-C does: what it started is ended with it.

    Left as it is where the signal is ignored or the caller has a handler of its own, and outside the main thread, where
    Python allows no handler.
    """
    import signal

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    with contextlib.suppress(ValueError):
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, leave)


_EPILOG = """\b
Examples:
  chainerdoctor check-cluster -n 2          check this machine with two ranks
  chainerdoctor explain CD501               what a code means and how to mend it
"""


@click.group(cls=LazyGroup, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="chainerdoctor")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    help="Settings file [default: chainerdoctor.toml or pyproject.toml in this folder or above].",
)
@click.pass_context
def main(ctx: click.Context, config: Optional[str]) -> None:
    """Find why Chainer on more than one GPU is slow, wrong or stuck, and how to mend it.

    Exit codes: 0 nothing found, 1 findings, 2 wrong usage, 3 could not judge.
    """
    from chainerdoctor.cli.settings import default_map

    if ctx.invoked_subcommand not in _RUNS_PROGRAMS:
        end_in_order_when_terminated()
    assert isinstance(ctx.command, LazyGroup)
    invoked = ctx.command.get_command(ctx, ctx.invoked_subcommand) if ctx.invoked_subcommand else None
    if invoked is not None:
        invoked.name = ctx.invoked_subcommand
    ctx.default_map = default_map(config, ctx.command.list_commands(ctx), invoked)
