"""Which CUDA toolkit a set is built on, given a driver, a GPU or a wish. Pure."""

from __future__ import annotations

from typing import Optional, Tuple

from chainerdoctor.tables.cuda_drivers import (
    TOOLKIT_DRIVERS,
    exact_driver,
    newest_toolkit,
    oldest_driver,
    toolkits,
    version_key,
)
from chainerdoctor.tables.cupy_wheels import CUPY_WHEELS, CupyWheel, Version
from chainerdoctor.tables.gpu_architectures import ARCHITECTURES, Architecture, architecture


class NoStackError(ValueError):
    """No set of versions fits the machine described, or the machine is not in the tables.

    The text is one line that names what does not fit and the nearest that is known.
    """


def known_gpu(capability: Optional[Version]) -> Optional[Architecture]:
    """The architecture of a compute capability.

    Raises:
        NoStackError: it is not in the table.
    """
    if capability is None:
        return None
    found = architecture(capability)
    if found is not None:
        return found
    near = min(
        ARCHITECTURES,
        key=lambda row: (abs(row.capability[0] - capability[0]), abs(row.capability[1] - capability[1])),
    )
    raise NoStackError(
        f"compute capability {dotted(capability)} is not known here; the nearest that is: "
        f"{dotted(near.capability)} ({near.name})"
    )


def choose_toolkit(driver: Optional[str], cuda: Optional[str], gpu: Optional[Architecture]) -> str:
    """The CUDA version to build the set on.

    Raises:
        NoStackError: nothing fits, or what was asked for does not go together.
    """
    if driver is not None:
        _check_version("driver", driver)
    toolkit = _best_toolkit(driver, gpu) if cuda is None else _named_toolkit(cuda)
    _check_driver(driver, toolkit)
    if gpu is not None:
        _check_gpu(gpu, toolkit)
    return toolkit


def _check_version(what: str, text: str) -> None:
    try:
        version_key(text)
    except ValueError:
        raise NoStackError(f"'{text}' is not a {what} version; it looks like {_EXAMPLES[what]}") from None


_EXAMPLES = {"driver": "550.54.14", "CUDA": "12.4"}


def _named_toolkit(cuda: str) -> str:
    _check_version("CUDA", cuda)
    asked = version_key(cuda)[:2]
    if len(asked) == 1:
        same_major = [known for known in toolkits() if version_key(known)[0] == asked[0]]
        if same_major:
            return same_major[-1]
    usable = [known for known in toolkits() if wheels_for(known)]
    for known in usable:
        if version_key(known) == asked:
            return known
    wanted = asked if len(asked) == 2 else (asked[0], 0)
    near = min(usable, key=lambda known: abs(_position(version_key(known)) - _position(wanted)))
    raise NoStackError(f"CUDA {cuda} is not known here; the nearest that is: {near}")


def _position(version: Tuple[int, ...]) -> int:
    # A major step outweighs any minor one, so that 14.0 is nearest to 13.2 and not to 13.0.
    return version[0] * 100 + version[1] * 10


def _best_toolkit(driver: Optional[str], gpu: Optional[Architecture]) -> str:
    """The newest toolkit on which CuPy still has cuDNN; the newest of all where none has."""
    fitting = []
    for toolkit in toolkits():
        if not wheels_for(toolkit) or (gpu is not None and not _knows(toolkit, gpu)):
            continue
        if driver is not None and not fully_supports(driver, toolkit):
            continue
        fitting.append(toolkit)
    if not fitting:
        raise NoStackError(_why_no_toolkit(str(driver), gpu))
    with_cudnn = [toolkit for toolkit in fitting if any(wheel.cudnn for wheel in wheels_for(toolkit))]
    return (with_cudnn or fitting)[-1]


def _why_no_toolkit(driver: str, gpu: Optional[Architecture]) -> str:
    oldest = TOOLKIT_DRIVERS[0]
    if gpu is None or newest_toolkit(driver) is None:
        nearest = f"{oldest.driver} (CUDA {oldest.toolkit})"
        return f"driver {driver} is older than any known here; the nearest that is: {nearest}"
    return (
        f"driver {driver} runs CUDA {newest_toolkit(driver)} at most, and compute capability "
        f"{dotted(gpu.capability)} needs {gpu.first} (driver {exact_driver(gpu.first)} or newer)"
    )


def fully_supports(driver: str, toolkit: str) -> bool:
    """Whether the driver is at least that of the toolkit's first release."""
    first = exact_driver(toolkit)
    return first is not None and version_key(driver) >= version_key(first)


def _check_driver(driver: Optional[str], toolkit: str) -> None:
    if driver is None:
        return
    floor = oldest_driver(toolkit)
    if floor is not None and version_key(driver) < version_key(floor):
        best = newest_toolkit(driver)
        raise NoStackError(
            f"CUDA {toolkit} needs driver {floor} or newer and this is {driver}; the nearest that runs: "
            + (f"CUDA {best}" if best else "none")
        )


def _check_gpu(gpu: Architecture, toolkit: str) -> None:
    if _knows(toolkit, gpu):
        return
    name = f"compute capability {dotted(gpu.capability)} ({gpu.name})"
    if version_key(toolkit) < version_key(gpu.first):
        raise NoStackError(f"CUDA {toolkit} does not know {name}; the nearest that does: {gpu.first}")
    raise NoStackError(f"CUDA {toolkit} no longer knows {name}; the nearest that does: {gpu.last}")


def _knows(toolkit: str, gpu: Architecture) -> bool:
    asked = version_key(toolkit)
    return version_key(gpu.first) <= asked and (gpu.last is None or asked <= version_key(gpu.last))


def wheels_for(toolkit: str) -> Tuple[CupyWheel, ...]:
    """CuPy's wheels to recommend for a toolkit, the best first."""
    asked = version_key(toolkit)
    return tuple(
        wheel
        for wheel in CUPY_WHEELS
        if wheel.recommended and version_key(wheel.cuda[0]) <= asked <= version_key(wheel.cuda[1])
    )


def dotted(version: Tuple[int, ...]) -> str:
    """``(3, 11)`` → ``"3.11"``."""
    return ".".join(str(part) for part in version)
