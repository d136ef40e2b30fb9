"""From the description of a machine to the set of versions for it. Pure; the tables hold what is known."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import Iterable, Optional, Tuple

from chainerdoctor.facts import Fact
from chainerdoctor.facts.gpu import Gpu, GpuDriver
from chainerdoctor.tables.cupy_wheels import Version
from chainerdoctor.tables.gpu_architectures import CARDS
from chainerdoctor.tables.toolkit_choice import NoStackError
from chainerdoctor.tables.working_stacks import DEFAULT_PYTHON, Stack, recommend

_BRANDS = re.compile(r"\b(NVIDIA|GEFORCE|TESLA)\b")
_CPU_NOTE = "No GPU was seen or named; for another machine say --gpu H100, --driver 550.54.14 or --cuda 12.4."
_CAPABILITY = re.compile(r"(?:SM_?)?(\d{1,2})\.?(\d)")


@dataclass(frozen=True)
class Machine:
    """What a set is to be made for. ``None`` is "not said"; ``python_asked`` forbids to name another Python."""

    python: Version
    python_asked: bool = False
    driver: Optional[str] = None
    cuda: Optional[str] = None
    compute_capability: Optional[Version] = None


def prescribe(machine: Machine) -> Stack:
    """The set of versions for this machine.

    Raises:
        NoStackError: the machine is not known or has no set; one line that names the nearest.
    """
    stack = recommend(machine.python, machine.driver, machine.cuda, machine.compute_capability)
    if machine.python_asked and stack.python != machine.python:
        on = f"CUDA {stack.cuda}" if stack.cuda else "the CPU"
        raise NoStackError(
            f"there is no set for Python {_dotted(machine.python)} on {on}; "
            f"the nearest is for Python {_dotted(stack.python)}"
        )
    if stack.cuda is None:
        stack = replace(stack, notes=(*stack.notes, _CPU_NOTE))
    return stack


def described(
    own_python: Version,
    seen: Iterable[Fact],
    *,
    python: Optional[str] = None,
    driver: Optional[str] = None,
    cuda: Optional[str] = None,
    gpu: Optional[str] = None,
) -> Machine:
    """The machine that was described; what was not said comes from ``seen`` if nothing about a GPU was said at all.

    A machine described by its GPU is taken to be another one, so Python is then ours to choose too.

    Raises:
        NoStackError: a value cannot be read, or the GPU is not known.
    """
    asked = None if python is None else _python(python)
    if driver is None and cuda is None and gpu is None:
        return _own(own_python, seen, asked)
    return Machine(
        python=asked or DEFAULT_PYTHON,
        python_asked=asked is not None,
        driver=driver,
        cuda=cuda,
        compute_capability=None if gpu is None else capability_of(gpu),
    )


def _own(own_python: Version, seen: Iterable[Fact], asked: Optional[Version]) -> Machine:
    drivers = []
    capabilities = []
    for fact in seen:
        if isinstance(fact, GpuDriver):
            drivers.append(fact.version)
        elif isinstance(fact, Gpu) and fact.compute_capability is not None:
            capabilities.append(fact.compute_capability)
    return Machine(
        python=asked or own_python,
        python_asked=asked is not None,
        driver=drivers[0] if drivers else None,
        # The oldest GPU decides which toolkits there are for all of them.
        compute_capability=min(capabilities) if capabilities else None,
    )


def capability_of(gpu: str) -> Version:
    """The compute capability of a card's name (``"H100"``, ``"NVIDIA A100-SXM4-80GB"``, ``"rtx2080ti"``) or of ``"8.6"``.

    Raises:
        NoStackError: the card is not known; the line names the nearest that are.
    """
    name = _BRANDS.sub(" ", gpu.upper())
    number = _CAPABILITY.fullmatch(name.strip())
    if number is not None:
        return int(number.group(1)), int(number.group(2))
    words = re.split(r"[\s_-]+", name.strip())
    known = {card.name.replace(" ", ""): card for card in CARDS}
    # The longest run of leading words is the card ("A100" of "A100-SXM4-80GB"; "RTX 2080 Ti" before "RTX 2080").
    for count in range(len(words), 0, -1):
        card = known.get("".join(words[:count]))
        if card is not None:
            return card.capability
    near = difflib.get_close_matches("".join(words), known, n=3, cutoff=0.4)
    if not near:
        raise NoStackError(f"the GPU '{gpu}' is not known here; say its compute capability, such as --gpu 8.6")
    nearest = ", ".join(known[match].name for match in near)
    raise NoStackError(f"the GPU '{gpu}' is not known here; the nearest that are: {nearest}")


def _python(text: str) -> Version:
    found = re.fullmatch(r"(3)\.(\d{1,2})(?:\.\d+)?", text.strip())
    if found is None:
        raise NoStackError(f"'{text}' is not a Python version; it looks like 3.11")
    return int(found.group(1)), int(found.group(2))


def _dotted(version: Tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)
