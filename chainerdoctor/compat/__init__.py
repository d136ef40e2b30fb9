"""Unmodified Chainer 7.8.1 on Python 3.12 and 3.13, NumPy 2, new SciPy and protobuf, and CuPy 13 and 14.

Off unless asked for, in one of two ways::

    chainerdoctor run --compat train.py        # the script and every Python that it starts
    import chainerdoctor.compat                # first line of a program: this process only

Importing this package puts one finder at the front of ``sys.meta_path`` and nothing else. When Chainer is imported,
the patches that these versions need are applied, and no others: with Python 3.11 and NumPy 1.23.5 nothing changes.
``applied()`` says what was done in this process, and ``PATCHES`` lists all of them with their reasons.

The layer gives names back that were removed and spells expressions the way that new versions want; it never changes
what is computed. Standard library only.
"""

from __future__ import annotations

import os
import sys
from typing import MutableMapping, Tuple

from chainerdoctor.compat.importing import Finder

__all__ = ["applied", "install", "reach_children"]


def install() -> None:
    """Make the layer ready in this process. Doing it twice changes nothing.

    Raises:
        RuntimeError: Chainer is already imported, so it is too late.
    """
    if any(isinstance(finder, Finder) for finder in sys.meta_path):
        return
    if "chainer" in sys.modules:
        raise RuntimeError("chainerdoctor.compat has to be imported before chainer")
    sys.meta_path.insert(0, Finder())


def reach_children(environ: MutableMapping[str, str]) -> None:
    """Make every Python that is started with this environment load the layer too.

    A folder that holds only a ``sitecustomize.py`` is put in front of ``PYTHONPATH``: multiprocessing's spawn and
    forkserver, ``subprocess`` and the ranks of a local ``mpiexec`` inherit it. It does not reach a Python that is
    started with ``-E``, ``-I`` or ``-S``, nor remote ranks of a launcher that does not hand the environment on (Open
    MPI needs ``-x PYTHONPATH``).
    """
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "children")
    entries = [entry for entry in environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if folder not in entries:
        environ["PYTHONPATH"] = os.pathsep.join([folder, *entries])


def applied() -> Tuple[str, ...]:
    """Names of the patches that were applied in this process so far, in that order."""
    for finder in sys.meta_path:
        if isinstance(finder, Finder):
            return tuple(finder.applied)
    return ()


install()
