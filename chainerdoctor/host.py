"""The one door to the machine. Probes read through it, so that a taped host can stand in for a live one."""

from __future__ import annotations

import abc
import glob
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

#: Most that is read of one file, in bytes. Files of /proc and /sys that probes read are far smaller.
READ_LIMIT = 4 * 1024 * 1024


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    status: int
    out: str
    err: str


class Host(abc.ABC):
    """What probes may ask of a machine."""

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        """Text of a file (bytes that are not UTF-8 are replaced), at most ``limit`` bytes.

        Raises:
            OSError: it cannot be read.
        """
        return self.read_bytes(path, limit).decode("utf-8", "replace")

    @abc.abstractmethod
    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        """Content of a file, at most ``limit`` bytes.

        Raises:
            OSError: it cannot be read.
        """

    @abc.abstractmethod
    def glob(self, pattern: str) -> List[str]:
        """Paths that match, sorted."""

    @abc.abstractmethod
    def real_path(self, path: str) -> str:
        """The path with symbolic links followed."""

    @abc.abstractmethod
    def run(self, command: Sequence[str], timeout_s: float) -> Ran:
        """Run a program and take what it prints.

        Raises:
            OSError: it is not there.
            subprocess.TimeoutExpired: it ran too long, and was killed.
        """

    @abc.abstractmethod
    def space(self, path: str) -> Tuple[int, int]:
        """Size and free bytes of the file system at ``path``.

        Raises:
            OSError: no such path.
        """

    @abc.abstractmethod
    def limit(self, name: str) -> Tuple[Optional[int], Optional[int]]:
        """Soft and hard resource limit (``memlock``, ``nofile``, ``stack``); ``None`` is unlimited."""

    @abc.abstractmethod
    def usable_processors(self) -> int:
        """Logical processors that this process may run on."""

    @abc.abstractmethod
    def addresses(self) -> Dict[str, List[str]]:
        """Network addresses by interface."""

    @property
    @abc.abstractmethod
    def environ(self) -> Mapping[str, str]:
        """The environment variables."""


class LiveHost(Host):
    """This machine, now."""

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        """See :meth:`Host.read_bytes`."""
        # Small pieces: the kernel allocates a buffer of the size asked for when a file of /proc/sys is read.
        content = bytearray()
        with open(path, "rb", buffering=0) as file:
            while len(content) < limit:
                piece = file.read(min(65536, limit - len(content)))
                if not piece:
                    break
                content += piece
        return bytes(content)

    def glob(self, pattern: str) -> List[str]:
        """See :meth:`Host.glob`."""
        return sorted(glob.glob(pattern))

    def real_path(self, path: str) -> str:
        """See :meth:`Host.real_path`."""
        return os.path.realpath(path)

    def run(self, command: Sequence[str], timeout_s: float) -> Ran:
        """See :meth:`Host.run`."""
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            errors="replace",
            # Words of a program are matched by probes, so its language must not depend on the user's.
            env={**os.environ, "LC_ALL": "C"},
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def space(self, path: str) -> Tuple[int, int]:
        """See :meth:`Host.space`."""
        told = os.statvfs(path)
        return told.f_frsize * told.f_blocks, told.f_frsize * told.f_bavail

    def limit(self, name: str) -> Tuple[Optional[int], Optional[int]]:
        """See :meth:`Host.limit`."""
        import resource

        soft, hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))
        infinite = resource.RLIM_INFINITY
        return (None if soft == infinite else soft), (None if hard == infinite else hard)

    def usable_processors(self) -> int:
        """See :meth:`Host.usable_processors`."""
        return len(os.sched_getaffinity(0))

    def addresses(self) -> Dict[str, List[str]]:
        """See :meth:`Host.addresses`; read with ``getifaddrs`` of the C library."""
        from chainerdoctor.adapters.getifaddrs import interface_addresses

        return interface_addresses()

    @property
    def environ(self) -> Mapping[str, str]:
        """See :attr:`Host.environ`."""
        return os.environ


class TapedHost(Host):
    """A machine that was taped: ``tape.json`` in a folder of ``fixtures/hosts``.

    Its keys: ``files`` (path → text), ``links`` (path → real path), ``commands`` (words joined by a blank → status,
    out, err), ``space`` (path → [size, free]), ``limits`` (name → [soft, hard]), ``processors``, ``addresses`` and
    ``environ``. What is not on the tape is not on the machine.
    """

    def __init__(self, folder: Path) -> None:
        self._tape: Dict[str, Any] = json.loads((folder / "tape.json").read_text(encoding="utf-8"))

    def _part(self, name: str) -> Dict[str, Any]:
        part: Dict[str, Any] = self._tape.get(name, {})
        return part

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        """See :meth:`Host.read_bytes`."""
        if path not in self._part("files"):
            raise FileNotFoundError(2, "No such file or directory", path)
        text: str = self._part("files")[path]
        return text.encode("utf-8")[:limit]

    def glob(self, pattern: str) -> List[str]:
        """See :meth:`Host.glob`."""
        from fnmatch import fnmatch

        paths = {*self._part("files"), *self._part("links")}
        # A folder is on the tape as soon as something in it is.
        for path in list(paths):
            paths.update(str(parent) for parent in Path(path).parents)
        depth = pattern.count("/")
        return sorted(p for p in paths if p.count("/") == depth and fnmatch(p, pattern))

    def real_path(self, path: str) -> str:
        """See :meth:`Host.real_path`."""
        real: str = self._part("links").get(path, path)
        return real

    def run(self, command: Sequence[str], timeout_s: float) -> Ran:
        """See :meth:`Host.run`."""
        taped = self._part("commands").get(" ".join(command))
        if taped is None:
            raise FileNotFoundError(2, "No such file or directory", command[0])
        return Ran(taped["status"], taped.get("out", ""), taped.get("err", ""))

    def space(self, path: str) -> Tuple[int, int]:
        """See :meth:`Host.space`."""
        if path not in self._part("space"):
            raise FileNotFoundError(2, "No such file or directory", path)
        size, free = self._part("space")[path]
        return size, free

    def limit(self, name: str) -> Tuple[Optional[int], Optional[int]]:
        """See :meth:`Host.limit`."""
        soft, hard = self._part("limits").get(name, (None, None))
        return soft, hard

    def usable_processors(self) -> int:
        """See :meth:`Host.usable_processors`."""
        count: int = self._tape.get("processors", 1)
        return count

    def addresses(self) -> Dict[str, List[str]]:
        """See :meth:`Host.addresses`."""
        return self._part("addresses")

    @property
    def environ(self) -> Mapping[str, str]:
        """See :attr:`Host.environ`."""
        return self._part("environ")
