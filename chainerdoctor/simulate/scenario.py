"""The scenario file: what the simulated GPUs, NVML, CUDA and NCCL of one machine are and do.

One text for all three libraries. ``#`` begins a comment. Keys before the first section are about the machine; a section
is about some of its parts. ``*`` sections apply first, wherever they stand; then the others in the order of the file::

    gpus = 4                             # how many GPUs
    driver_version = 550.54.15           # also nvml_version, cuda_driver_version, cuda_runtime_version, nccl_version

    [gpu *]                              # every GPU; [gpu 2], [gpu 0-3], [gpu 0,2] some
    memory_total = 80GiB                 # CUDA runs out of memory at memory_total - memory_reserved
    memory_used = 1GiB + cuda            # values over time: see chainerdoctor.simulate.values
    util_gpu = 97

    [gpu 3]
    lost_at = 60s                        # falls off the bus: every later call about it fails
    throttle_reasons = sw_thermal|hw_slowdown
    ecc_uncorrected = step(3, 10s)
    processes = 1234 4GiB, 99 1GiB graphics   # or: processes = cuda   (those that hold simulated CUDA memory)

    [pair 0-1]                           # or [pair *]
    topology = SYS                       # PIX PXB PHB NODE SYS
    p2p_read = chipset_not_supported     # also p2p_write p2p_nvlink p2p_atomics p2p_pci: ok, gpu_not_supported,
                                         # topology_not_supported, disabled_by_regkey, not_supported, unknown
    [link 2:5]                           # NVLink 5 of GPU 2; [link 2:*], [link *]
    state = down                         # also remote = switch | gpu 1, crc_errors, replay_errors, recovery_errors

    [mig 0:1]                            # MIG device 1 of GPU 0
    memory_total = 10GiB                 # also memory_used, uuid, gpu_instance, compute_instance

    [call nvmlDeviceGetMemoryInfo* gpu 2]     # any function of the three libraries; * at the end stands for any rest;
    error = GPU_IS_LOST                       # "gpu N" and "rank N" (NCCL) narrow it
    from = 5s                            # only from this time on
    at = 3                               # only the 3rd such call of each process
    delay = 200us                        # the call takes so much longer
    block = forever                      # or a time
    crash = yes                          # the process dies of SIGSEGV
    flip = yes                           # one bit of what it writes is wrong (copies and products of CUDA)

    [rank 2]                             # NCCL; operations are counted from 1 in each communicator
    joins = no                           # never joins: the others wait for it
    version = 21805                      # another NCCL version here
    delay = 5ms                          # late to each operation
    fail_at = 7                          # operation 7 fails here with fail_with (default 2, unhandled system error)
    fail_with = 3
    flip_at = 7                          # one bit of operation 7's result is wrong here: element flip_element, bit flip_bit

    [ranks 0-1]                          # what these two send to each other is late
    delay = 2ms

All keys of a GPU with their defaults and meanings are in csrc/keys.h; ``gpu_keys()`` gives them.
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, Iterable, List, NamedTuple, Tuple, Union

from chainerdoctor.simulate import faults, links
from chainerdoctor.simulate.values import Value, ValueProblem, parse_amount, parse_time_s, parse_value

SOURCES = Path(__file__).with_name("csrc")
MOST_GPUS = 64  # SIM_GPUS in csrc/scenario.h


class Problem(NamedTuple):
    """One thing that is wrong in a scenario file; ``line`` counts from 1, 0 is the whole file."""

    line: int
    message: str


class ScenarioError(ValueError):
    """A scenario that cannot be used. ``str()`` is one line: the first problem with its place, and how many more."""

    def __init__(self, path: str, problems: Iterable[Problem]) -> None:
        self.path = path
        self.problems = tuple(sorted(problems))
        first = self.problems[0]
        where = f"{path}:{first.line}" if first.line else path
        more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        super().__init__(f"{where}: {first.message}{more}")


class Key(NamedTuple):
    """A key of a GPU: what it is called, its default, its unit ("text" for texts) and meaning."""

    name: str
    default: str
    unit: str
    meaning: str


_KEY_LINE = re.compile(r'^(GPU_NUMBER|GPU_TEXT|SYSTEM_TEXT)\((\w+), "([^"]*)", (?:(\w+), )?"([^"]*)"\)$')


def _keys(kind: str) -> Dict[str, Key]:
    keys = {}
    for line in (SOURCES / "keys.h").read_text(encoding="utf-8").splitlines():
        match = _KEY_LINE.match(line)
        if match and match.group(1) == kind:
            keys[match.group(2)] = Key(match.group(2), match.group(3), match.group(4) or "text", match.group(5))
    return keys


_GPU_NUMBERS = _keys("GPU_NUMBER")
_GPU_TEXTS = _keys("GPU_TEXT")
_SYSTEM = _keys("SYSTEM_TEXT")
_MOST_TEXT = 95  # SIM_TEXT - 1 in csrc/scenario.h


def gpu_keys() -> Tuple[Key, ...]:
    """Every key that a ``[gpu …]`` section takes, beside ``lost_at`` and ``processes``."""
    return (*_GPU_TEXTS.values(), *_GPU_NUMBERS.values())


@dataclass
class Section:
    """One section as written: its head, the line of the head, and its keys with their lines."""

    head: Tuple[str, ...]
    line: int
    keys: Dict[str, Tuple[int, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Process:
    """A process that a scenario puts on a GPU."""

    pid: int
    size_bytes: int
    graphics: bool


@dataclass
class Gpu:
    """One GPU of a scenario, with all defaults filled in."""

    numbers: Dict[str, Value]
    texts: Dict[str, str]
    lost_at_s: float = math.inf
    processes: List[Process] = field(default_factory=list)
    cuda_processes: bool = False


@dataclass
class Scenario:
    """A checked scenario."""

    path: str
    system: Dict[str, str]
    gpus: List[Gpu]
    wiring: links.Wiring
    faults: faults.Faults

    def as_plan(self) -> str:
        """The flat text that csrc/scenario.c reads: one statement a line."""
        lines = [f"# plan of {Path(self.path).name}", f"gpus {len(self.gpus)}"]
        lines += [f"system {name} {text}" for name, text in self.system.items()]
        for index, gpu in enumerate(self.gpus):
            lines += [f"text {index} {name} {text}" for name, text in gpu.texts.items()]
            lines += [f"number {index} {name} {value.as_plan()}" for name, value in gpu.numbers.items()]
            lines += [f"process {index} {p.pid} {p.size_bytes} {int(p.graphics)}" for p in gpu.processes]
            if gpu.cuda_processes:
                lines.append(f"follow {index}")
            if math.isfinite(gpu.lost_at_s):
                lines.append(f"lost {index} {gpu.lost_at_s:.17g}")
        return "\n".join([*lines, *self.wiring.as_plan(), *self.faults.as_plan()]) + "\n"


def load(path: Union[str, Path]) -> Scenario:
    """Read and check a scenario file.

    Raises:
        ScenarioError: the file cannot be read, or something in it is wrong.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ScenarioError(str(path), [Problem(0, f"cannot be read: {reason}")]) from error
    return parse(text, str(path))


def parse(text: str, path: str = "scenario") -> Scenario:
    """Check a scenario's text; ``path`` is only for messages.

    Raises:
        ScenarioError: something in it is wrong; ``problems`` holds everything that is.
    """
    problems: List[Problem] = []
    sections = _read_sections(text, problems)
    system, count = _read_system(sections[0], problems)
    gpus = [
        Gpu(
            {name: parse_value(key.default, key.unit) for name, key in _GPU_NUMBERS.items()},
            {name: _default_text(key, index) for name, key in _GPU_TEXTS.items()},
        )
        for index in range(count)
    ]
    wiring = links.Wiring(count)
    broken = faults.Faults()
    for section in sorted(sections[1:], key=lambda s: "*" not in s.head[1:2] or s.head[0] == "call"):
        try:
            _read_section(section, gpus, wiring, broken, problems)
        except ValueProblem as problem:
            problems.append(Problem(section.line, str(problem)))
    if problems:
        raise ScenarioError(path, problems)
    return Scenario(path, system, gpus, wiring, broken)


def _default_text(key: Key, index: int) -> str:
    if "%" not in key.default:
        return key.default
    # GPUs sit on every eighth bus from 7 on, as on a machine with one PCIe switch per pair of cards
    return key.default % ((7 + 8 * index) & 0xFF if key.name == "bus_id" else index)


def _read_sections(text: str, problems: List[Problem]) -> List[Section]:
    sections = [Section((), 0)]
    heads: Dict[Tuple[str, ...], int] = {}
    for at, raw in enumerate(text.splitlines(), 1):
        line = raw.split("#", 1)[0].strip()
        if not line:
            continue
        if line.startswith("["):
            head = tuple(line[1:-1].split()) if line.endswith("]") else ()
            if not head:
                problems.append(Problem(at, f"{line!r} is no section; write for example [gpu 0]"))
            elif head in heads:
                problems.append(Problem(at, f"[{' '.join(head)}] already stands in line {heads[head]}"))
            heads.setdefault(head, at)
            sections.append(Section(head, at))
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not re.fullmatch(r"\w+", name):
            problems.append(Problem(at, f"{line!r} is neither a [section] nor KEY = VALUE"))
        elif name in sections[-1].keys:
            problems.append(Problem(at, f"{name} is already set in line {sections[-1].keys[name][0]}"))
        else:
            sections[-1].keys[name] = (at, value)
    return sections


def unknown_key(name: str, known: Iterable[str]) -> str:
    """The complaint about a key, with the nearest known one."""
    names = list(known)
    near = difflib.get_close_matches(name, names, 1)
    return f"unknown key {name!r}" + (
        f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(sorted(names))}"
    )


def _read_system(section: Section, problems: List[Problem]) -> Tuple[Dict[str, str], int]:
    system = {name: key.default for name, key in _SYSTEM.items()}
    count = 0
    if "gpus" not in section.keys:
        problems.append(Problem(0, "'gpus = N' is missing before the first section"))
    for name, (line, value) in section.keys.items():
        if name == "gpus":
            if not re.fullmatch(r"\d+", value) or int(value) > MOST_GPUS:
                problems.append(Problem(line, f"gpus = {value}: not a number from 0 to {MOST_GPUS}"))
            else:
                count = int(value)
        elif name not in _SYSTEM:
            problems.append(Problem(line, unknown_key(name, ["gpus", *_SYSTEM])))
        elif not re.fullmatch(r"[\d.]+" if name in ("driver_version", "nvml_version") else r"\d+", value):
            problems.append(Problem(line, f"{name} = {value}: not a version"))
        else:
            system[name] = value
    return system, count


def _read_section(
    section: Section, gpus: List[Gpu], wiring: links.Wiring, broken: faults.Faults, problems: List[Problem]
) -> None:
    kind = section.head[0] if section.head else ""
    if kind == "gpu":
        if len(section.head) != 2:
            raise ValueProblem("write [gpu *], [gpu 2], [gpu 0-3] or [gpu 0,2]")
        chosen = [gpus[index] for index in links.select(section.head[1], len(gpus))]
        readers = dict.fromkeys((*_GPU_NUMBERS, *_GPU_TEXTS, "lost_at", "processes"))
        for name, (line, value) in section.keys.items():
            try:
                if name not in readers:
                    raise ValueProblem(unknown_key(name, readers))
                for gpu in chosen:
                    _set_gpu(gpu, name, value)
            except ValueProblem as problem:
                problems.append(Problem(line, str(problem)))
        return
    setter = wiring.setter(section.head) or broken.setter(section.head, len(gpus))
    if setter is None:
        kinds = ("gpu", *links.SECTIONS, *faults.SECTIONS)
        near = difflib.get_close_matches(kind, kinds, 1)
        hint = f"did you mean [{near[0]} …]?" if near else f"sections are {', '.join(kinds)}"
        raise ValueProblem(f"unknown section [{' '.join(section.head)}]; {hint}")
    for name, (line, value) in section.keys.items():
        try:
            if name not in setter.keys:
                raise ValueProblem(unknown_key(name, setter.keys))
            setter.put(name, value)
        except ValueProblem as problem:
            problems.append(Problem(line, str(problem)))


def _set_gpu(gpu: Gpu, name: str, value: str) -> None:
    if name == "lost_at":
        gpu.lost_at_s = parse_time_s(value)
    elif name == "processes":
        gpu.cuda_processes, gpu.processes = _parse_processes(value)
    elif name in _GPU_NUMBERS:
        gpu.numbers[name] = parse_value(value, _GPU_NUMBERS[name].unit)
    else:
        if not value or len(value.encode()) > _MOST_TEXT:
            raise ValueProblem(f"{name} needs a text of 1 to {_MOST_TEXT} bytes")
        pattern = _TEXT_SHAPES.get(name)
        if pattern and not re.fullmatch(pattern, value):
            raise ValueProblem(f"{name} = {value}: not of the form {_GPU_TEXTS[name].default}")
        gpu.texts[name] = value


_TEXT_SHAPES = {
    "bus_id": r"[0-9a-fA-F]{8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]",
    "pci_device": r"[0-9a-fA-F]{8}",
    "compute_capability": r"\d+\.\d+",
    "cpu_affinity": r"\d+(-\d+)?(,\d+(-\d+)?)*",
}


def _parse_processes(text: str) -> Tuple[bool, List[Process]]:
    follow, found = False, []
    for part in text.split(","):
        words: List[str] = part.split()
        if words == ["cuda"]:
            follow = True
            continue
        graphics = words[-1:] == ["graphics"]
        if len(words) != 2 + graphics or not re.fullmatch(r"[1-9]\d*", words[0]):
            raise ValueProblem(f"{part.strip()!r} is no process; write PID MEMORY, PID MEMORY graphics, or cuda")
        found.append(Process(int(words[0]), int(parse_amount(words[1], "bytes")), graphics))
    return follow, found


def describe_keys() -> str:
    """A table of every GPU key for people: name, default, meaning."""
    width = max(len(key.name) for key in gpu_keys())
    return "\n".join(f"{key.name:{width}}  {key.default:38} {key.meaning}" for key in gpu_keys())
