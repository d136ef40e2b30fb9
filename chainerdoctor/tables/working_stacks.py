"""Sets of versions that work together with Chainer 7.8.1, and the choice of one for a machine. Pure.

What is recommended was installed and imported; nothing of Python 3.12 and later, CUDA 13 or Blackwell has been proven
on a GPU (the set's notes say so).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Tuple

from chainerdoctor.tables.cuda_drivers import FAMILY_FLOORS, exact_driver, oldest_driver, version_key
from chainerdoctor.tables.cupy_wheels import CupyWheel, Version
from chainerdoctor.tables.gpu_architectures import Architecture
from chainerdoctor.tables.stack_pins import CUDNN_PINS, NCCL_PINS, NUMPY_PINS
from chainerdoctor.tables.toolkit_choice import (
    NoStackError,
    choose_toolkit,
    dotted,
    fully_supports,
    known_gpu,
    wheels_for,
)

__all__ = ["NoStackError", "Pin", "Stack", "recommend"]

#: Pythons that this table speaks of, and the newest on which Chainer 7.8.1 runs without the compat layer.
PYTHONS: Tuple[Version, ...] = ((3, 8), (3, 9), (3, 10), (3, 11), (3, 12), (3, 13))
NEWEST_PLAIN_PYTHON: Version = (3, 11)
#: Where the Python is ours to choose.
DEFAULT_PYTHON: Version = (3, 11)
#: Both the build (pkg_resources, gone in 82) and Chainer's import (numpy.distutils, broken from 74) are fine with it.
SETUPTOOLS = "setuptools<74"

_TRIED = "installed and imported"
_CHAINER_SOURCE = "chainer 7.8.1 setup.py and chainer/_environment_check.py"


@dataclass(frozen=True)
class Pin:
    """One requirement, why it is what it is, and where that is known from."""

    requirement: str
    reason: str
    source: str

    @property
    def name(self) -> str:
        """The package's name without its version."""
        return self.requirement.split("=")[0].split("<")[0].split(">")[0]


@dataclass(frozen=True)
class Stack:
    """A set of versions.

    ``python`` may differ from the one asked for: ``python_reason`` says why it is what it is. ``cuda`` is the toolkit
    whose libraries the set uses (``"12.4"``), ``None`` for a set without a GPU. With ``compat`` programs have to be
    started by ``chainerdoctor run --compat``.
    """

    title: str
    python: Version
    python_reason: str
    cuda: Optional[str]
    pins: Tuple[Pin, ...]
    compat: bool
    notes: Tuple[str, ...]

    @property
    def requirements(self) -> Tuple[str, ...]:
        """The requirements alone, in the order in which they are to be read."""
        return tuple(pin.requirement for pin in self.pins)

    @property
    def pip_command(self) -> str:
        """One line for a POSIX shell that installs the set with the Python of that version.

        pip up to 25.0 applies PIP_CONSTRAINT to the isolated build, newer pip applies PIP_BUILD_CONSTRAINT; with both
        Chainer's setup.py finds pkg_resources everywhere.
        """
        wanted = " ".join(_quoted(requirement) for requirement in self.requirements)
        # Virtual environments have a python3.N from Python 3.9 on; before, that name would reach past them.
        python = "python" if self.python < (3, 9) else f"python{self.python[0]}.{self.python[1]}"
        return (
            f"echo '{SETUPTOOLS}' > build-constraint.txt && "
            'PIP_CONSTRAINT="$PWD/build-constraint.txt" PIP_BUILD_CONSTRAINT="$PWD/build-constraint.txt" '
            f"{python} -m pip install {wanted}"
        )

    def pin(self, name: str) -> Optional[Pin]:
        """The pin of a package (``"numpy"``), ``None`` if the set has none."""
        for pin in self.pins:
            if pin.name == name:
                return pin
        return None


def recommend(
    python: Version,
    driver: Optional[str] = None,
    cuda: Optional[str] = None,
    compute_capability: Optional[Version] = None,
) -> Stack:
    """The set of versions for a machine.

    Without ``driver``, ``cuda`` and ``compute_capability`` the set is for the CPU. ``driver`` is NVIDIA's driver
    version (``"550.54.14"``), ``cuda`` the toolkit to use (``"12.4"``, or ``"12"`` for the newest 12.x), and
    ``compute_capability`` the *oldest* GPU's. ``python`` is kept where a set exists for it; otherwise the nearest
    Python with one is named in the answer.

    Raises:
        NoStackError: something asked for is not in the tables, or does not go together.
    """
    if driver is None and cuda is None and compute_capability is None:
        return _assemble(python, None, None, None)
    known = known_gpu(compute_capability)
    toolkit = choose_toolkit(driver, cuda, known)
    wheel = _wheel_for(toolkit, python)
    return _assemble(python, wheel, toolkit, known, driver)


def _wheel_for(toolkit: str, python: Version) -> CupyWheel:
    """The best wheel whose Python is nearest to the one asked for."""

    def distance(wheel: CupyWheel) -> int:
        return abs(_nearest_python(wheel, python)[1] - python[1])

    return min(wheels_for(toolkit), key=distance)


def _nearest_python(wheel: CupyWheel, python: Version) -> Version:
    fitting = [known for known in PYTHONS if wheel.python[0] <= known <= wheel.python[1]]
    return min(fitting, key=lambda known: abs(known[1] - python[1]))


def _assemble(
    python: Version,
    wheel: Optional[CupyWheel],
    toolkit: Optional[str],
    gpu: Optional[Architecture],
    driver: Optional[str] = None,
) -> Stack:
    chosen = _nearest_python(wheel, python) if wheel else min(PYTHONS, key=lambda known: abs(known[1] - python[1]))
    cupy_major = int(wheel.version.split(".")[0]) if wheel else 0
    numpy = next(
        row
        for row in NUMPY_PINS
        if row.python[0] <= chosen <= row.python[1] and row.cupy_major[0] <= cupy_major <= row.cupy_major[1]
    )
    compat = chosen > NEWEST_PLAIN_PYTHON or version_key(numpy.numpy) >= (1, 24)
    # cuDNN 8.9 was the last of its series and came before Blackwell.
    cudnn = wheel is not None and wheel.cudnn is not None and not (gpu is not None and gpu.capability >= (10, 0))
    pins = [
        Pin("chainer==7.8.1", "Chainer's last release", "package index"),
        Pin(f"numpy=={numpy.numpy}", numpy.reason, numpy.source),
    ]
    if wheel is not None and toolkit is not None:
        pins += _gpu_pins(wheel, toolkit, chosen, cudnn)
    pins += [
        Pin(
            SETUPTOOLS,
            "Chainer's setup.py imports pkg_resources (gone in 82)"
            + ("" if compat else " and Chainer itself numpy.distutils (broken from 74)"),
            _CHAINER_SOURCE,
        ),
        Pin("mpi4py==4.1.2", "ChainerMN's transport; it works with either MPI wheel or the system's MPI", _TRIED),
        Pin("mpich==5.0.2", "an MPI without a compiler or root; leave it out where the cluster has its own", _TRIED),
    ]
    if not compat:
        pins.append(
            Pin("protobuf<4", "chainer.links.caffe was generated by an old protoc that protobuf 4 refuses", _TRIED)
        )
    title = "CPU only" if wheel is None else f"CUDA {toolkit}, {wheel.package} {wheel.version}"
    return Stack(
        title=f"{title}, Python {dotted(chosen)}",
        python=chosen,
        python_reason=_python_reason(python, chosen, wheel, compat),
        cuda=toolkit,
        pins=tuple(pins),
        compat=compat,
        notes=_notes(wheel, toolkit, gpu, driver, compat, cudnn),
    )


def _gpu_pins(wheel: CupyWheel, toolkit: str, python: Version, cudnn: bool) -> Tuple[Pin, ...]:
    major = version_key(toolkit)[0]
    why = f"the newest CuPy for CUDA {toolkit} and Python {dotted(python)}"
    if wheel.cudnn:
        why += " that can still use cuDNN"
    pins = [Pin(f"{wheel.package}=={wheel.version}", why, wheel.source)]
    if python == (3, 8):
        pins.append(Pin("fastrlock==0.8.3", "CuPy needs it, and 0.8.4 does not compile on Python 3.8", _TRIED))
    if wheel.brings_libraries:
        return tuple(pins)
    if cudnn:
        pins += [Pin(row.requirement, row.reason, row.source) for row in CUDNN_PINS if row.cuda_major == major]
    pins += [Pin(row.requirement, row.reason, row.source) for row in NCCL_PINS if row.cuda_major == major]
    return tuple(pins)


def _python_reason(asked: Version, chosen: Version, wheel: Optional[CupyWheel], compat: bool) -> str:
    if chosen != asked:
        what = (
            f"{wheel.package} {wheel.version}"
            if wheel and not wheel.python[0] <= asked <= wheel.python[1]
            else "Chainer"
        )
        return f"{what} is not there for Python {dotted(asked)}; this is the nearest one that is"
    if compat:
        return "Chainer needs the compat layer on it"
    return "Chainer 7.8.1 runs on it without changes"


def _notes(
    wheel: Optional[CupyWheel],
    toolkit: Optional[str],
    gpu: Optional[Architecture],
    driver: Optional[str],
    compat: bool,
    cudnn: bool,
) -> Tuple[str, ...]:
    notes: List[str] = []
    if compat:
        notes.append("Start programs with 'chainerdoctor run --compat train.py', or import chainerdoctor.compat first.")
    if wheel is None or toolkit is None:
        return tuple(notes)
    if compat or version_key(toolkit) >= (13, 0):
        notes.append("Tried by import and on the CPU; not proven on a GPU.")
    major = version_key(toolkit)[0]
    if not cudnn:
        why = "its GPUs are newer than cuDNN 8.9" if wheel.cudnn else f"{wheel.package} {wheel.version} has none"
        notes.append(f"No cuDNN ({why}): convolutions use slower kernels and about kH*kW times the memory.")
    elif not wheel.brings_libraries and not any(row.cuda_major == major for row in CUDNN_PINS):
        tool = f"python -m cupyx.tools.install_library --cuda {toolkit} --library"
        notes.append(f"No wheel brings cuDNN and NCCL for CUDA {toolkit}: '{tool} cudnn', then '{tool} nccl'.")
    if any(row.cuda_major == major for row in NCCL_PINS) and not wheel.brings_libraries:
        notes.append(
            "CuPy does not look into NVIDIA's wheels: add their lib folders (site-packages/nvidia/*/lib) to "
            "LD_LIBRARY_PATH, or cuDNN and NCCL stay unused in silence."
        )
    if not wheel.brings_libraries:
        notes.append(
            f"The CUDA toolkit's own libraries (libcublas, libnvrtc ...) of {_family(toolkit)} have to be there."
        )
    first = exact_driver(toolkit)
    if driver is None:
        notes.append(f"Needs driver {oldest_driver(toolkit)} or newer.")
    elif not fully_supports(driver, toolkit):
        notes.append(f"Driver {driver} runs CUDA {toolkit} with limited features; {first} has them all.")
    floors = {row.major: row for row in FAMILY_FLOORS}
    if gpu is not None and gpu.last is not None and major in floors:
        notes.append(f"{gpu.name} is last known to CUDA {gpu.last}: stay below CUDA {version_key(gpu.last)[0] + 1}.")
    return tuple(notes)


def _family(toolkit: str) -> str:
    """``11.x`` where minor versions are compatible, the toolkit itself before that."""
    major = version_key(toolkit)[0]
    return f"CUDA {major}.x" if any(row.major == major for row in FAMILY_FLOORS) else f"CUDA {toolkit}"


def _quoted(requirement: str) -> str:
    return f"'{requirement}'" if "<" in requirement or ">" in requirement else requirement
