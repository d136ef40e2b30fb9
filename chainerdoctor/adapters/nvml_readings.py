"""What NVML readings are: values with units in their names, or a refusal that says which call failed and why."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional, TypeVar, Union

from chainerdoctor.facts import ABSENT, DENIED, ERROR, TIMEOUT, UNSUPPORTED

T = TypeVar("T")

#: Reasons for NVML's codes (nvml.h, nvmlReturn_t); every other code is an ERROR.
_REASONS = {3: UNSUPPORTED, 4: DENIED, 9: ABSENT, 10: TIMEOUT, 12: ABSENT, 13: UNSUPPORTED, 17: DENIED, 26: UNSUPPORTED}
GPU_IS_LOST = 15


class Refusal(NamedTuple):
    """A reading that there is not: the NVML call, a reason in facts' words, NVML's own text, its code (0: no code)."""

    call: str
    reason: str
    detail: str
    code: int = 0


class Memory(NamedTuple):
    """Bytes. ``reserved`` is the driver's own part and not in ``used``; None where the driver cannot tell it apart
    (NVML before version 2 of the call: it is then within ``used``)."""

    total: int
    used: int
    free: int
    reserved: Optional[int]


class Process(NamedTuple):
    """A process on a GPU; ``used_bytes`` is None where the driver does not tell it (containers, MIG)."""

    pid: int
    used_bytes: Optional[int]


class RemappedRows(NamedTuple):
    """Rows that were replaced by spare ones, and what is still open."""

    corrected: int
    uncorrected: int
    pending: bool
    failed: bool


class EccMode(NamedTuple):
    """Now, and after the next reset."""

    current: bool
    pending: bool


class Fabric(NamedTuple):
    """Registration with the NVSwitch fabric: NVML's state (1 not started, 2 in progress, 3 completed) and its code."""

    state: int
    status: int


class MigDevice(NamedTuple):
    """One MIG device of a GPU."""

    uuid: str
    total_bytes: int
    used_bytes: int


class Calls:
    """The binding and how its errors are told."""

    def __init__(self, pynvml: Any) -> None:
        self.pynvml = pynvml

    def read(self, call: str, convert: Callable[[Any], T], *arguments: Any) -> Union[T, Refusal]:
        function = getattr(self.pynvml, call, None)
        if function is None:
            return Refusal(call, UNSUPPORTED, "this version of nvidia-ml-py has no such call")
        try:
            return convert(function(*arguments))
        except self.pynvml.NVMLError as error:
            return self.refusal(call, error)

    def refusal(self, call: str, error: Any) -> Refusal:
        code = int(getattr(error, "value", 0) or 0)
        return Refusal(call, _REASONS.get(code, ERROR), str(error), code)
