"""Settings from ``chainerdoctor.toml`` or ``[tool.chainerdoctor]`` in pyproject.toml; the command line wins."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import Any, Dict, Iterable, Optional, Sequence, Tuple

import click

#: Keys that may stand at the top level, for all commands.
_SHARED = frozenset({"format", "output", "select", "ignore", "fail_on"})


def default_map(config: Optional[str], commands: Sequence[str], invoked: Optional[click.Command]) -> Dict[str, Any]:
    """Defaults for click: a table per command, with the top-level keys valid for every command.

    ``invoked`` is the command that is about to run: its table's keys are checked.

    Raises:
        click.UsageError: the file is not TOML, or a key is not known (the nearest one is named).
    """
    path, table = _find(config)
    if path is None:
        return {}
    tables = {key.replace("_", "-") for key, value in table.items() if isinstance(value, dict)}
    _check(path, "", tables, commands)
    _check(path, "", [key for key, value in table.items() if not isinstance(value, dict)], _SHARED)
    if invoked is not None and invoked.name is not None:
        own = table.get(invoked.name, table.get(invoked.name.replace("-", "_"), {}))
        _check(path, f"[{invoked.name}] ", own, [param.name or "" for param in invoked.params])
    shared = {_name(key): value for key, value in table.items() if not isinstance(value, dict)}
    made: Dict[str, Any] = _PerCommand(shared)
    for key, value in table.items():
        if isinstance(value, dict):
            made[key.replace("_", "-")] = {**shared, **{_name(k): v for k, v in value.items()}}
    return made


class _PerCommand(Dict[str, Any]):
    """Commands without a table of their own get the shared keys."""

    def __init__(self, shared: Dict[str, Any]) -> None:
        super().__init__()
        self._shared = shared

    def get(self, key: str, default: Any = None) -> Any:
        """The table of the command ``key``."""
        return super().get(key, self._shared)


def _check(path: Path, where: str, keys: Iterable[str], known: Iterable[str]) -> None:
    names = {_name(name): name.replace("_", "-") for name in known}
    for key in keys:
        if _name(key) not in names:
            near = difflib.get_close_matches(_name(key), names, n=1)
            hint = f"; did you mean {names[near[0]]}?" if near else f" (known: {', '.join(sorted(names.values()))})"
            raise click.UsageError(f"{path}: {where}unknown key {key}{hint}")


def _name(key: str) -> str:
    return key.replace("-", "_")


def _find(config: Optional[str]) -> Tuple[Optional[Path], Dict[str, Any]]:
    if config is not None:
        path = Path(config)
        return path, _read(path)
    here = Path.cwd()
    for folder in (here, *here.parents):
        own = folder / "chainerdoctor.toml"
        if own.is_file():
            return own, _read(own)
        project = folder / "pyproject.toml"
        # Other people's pyproject.toml need not be ours to complain about: without the word there is nothing in it.
        if project.is_file() and b"tool.chainerdoctor" in project.read_bytes():
            return project, _read(project)
    return None, {}


def _read(path: Path) -> Dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path}: not valid TOML: {error}") from None
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror or error}") from None
    table: Dict[str, Any] = raw.get("tool", {}).get("chainerdoctor", {}) if path.name == "pyproject.toml" else raw
    return table
