"""``prescribe``: the right set for each machine, clear lines for what is not known, and files that their tools read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Dict, List, Optional, Tuple

import pytest
from packaging.requirements import Requirement

from chainerdoctor.facts.gpu import Gpu, GpuDriver
from chainerdoctor.prescribe import Machine, capability_of, described, prescribe
from chainerdoctor.report.as_prescription import FILES, as_terminal
from chainerdoctor.tables.cuda_drivers import TOOLKIT_DRIVERS, newest_toolkit, oldest_driver, version_key
from chainerdoctor.tables.cupy_wheels import CUPY_WHEELS, numpy_range
from chainerdoctor.tables.gpu_architectures import CARDS, architecture
from chainerdoctor.tables.working_stacks import PYTHONS, NoStackError, Stack, recommend

ROOT = Path(__file__).resolve().parents[2]

# (python, driver, cuda, capability) → (python, CuPy, NumPy, cuDNN, compat). From the list of sets that were tried.
SETS = [
    ((3, 11), None, None, None, (3, 11), None, "1.23.5", None, False),
    ((3, 13), None, None, None, (3, 13), None, "2.5.5", None, True),
    ((3, 14), None, None, None, (3, 13), None, "2.5.5", None, True),
    ((3, 8), None, "10.1", (7, 0), (3, 8), "cupy-cuda101==7.8.0", "1.23.5", None, False),
    ((3, 11), None, "10.1", (7, 0), (3, 8), "cupy-cuda101==7.8.0", "1.23.5", None, False),
    ((3, 11), None, "10.2", (7, 5), (3, 11), "cupy-cuda102==12.3.0", "1.23.5", None, False),
    ((3, 9), None, "11.1", (8, 6), (3, 9), "cupy-cuda111==12.3.0", "1.23.5", "8.9.6.50", False),
    ((3, 8), None, "11.8", (9, 0), (3, 8), "cupy-cuda11x==12.3.0", "1.23.5", "8.9.6.50", False),
    ((3, 10), None, "11.8", (9, 0), (3, 10), "cupy-cuda11x==13.6.0", "1.23.5", "8.9.6.50", False),
    ((3, 11), None, None, (9, 0), (3, 11), "cupy-cuda12x==13.6.0", "1.23.5", "8.9.7.29", False),
    ((3, 8), "550.54.14", None, (9, 0), (3, 8), "cupy-cuda12x==12.3.0", "1.23.5", "8.9.7.29", False),
    ((3, 11), "470.57.02", None, (8, 0), (3, 11), "cupy-cuda11x==13.6.0", "1.23.5", "8.9.6.50", False),
    # A driver that could run CUDA 13 is given 12, which keeps cuDNN.
    ((3, 11), "580.65.06", None, (9, 0), (3, 11), "cupy-cuda12x==13.6.0", "1.23.5", "8.9.7.29", False),
    ((3, 12), None, "12.4", (9, 0), (3, 12), "cupy-cuda12x==13.6.0", "2.5.5", "8.9.7.29", True),
    ((3, 12), None, "10.2", (7, 5), (3, 12), "cupy-cuda102==12.3.0", "1.26.4", None, True),
    ((3, 13), None, "13.0", (10, 0), (3, 13), "cupy-cuda13x==13.6.0", "2.5.5", None, True),
    ((3, 13), "570.124.06", None, (12, 0), (3, 13), "cupy-cuda12x==13.6.0", "2.5.5", None, True),
]


@pytest.mark.parametrize("case", SETS, ids=lambda case: "-".join(str(part) for part in case[:4]))
def test_the_set_for_a_machine(case: Tuple) -> None:
    python, driver, cuda, capability, wanted_python, cupy, numpy, cudnn, compat = case
    stack = recommend(python, driver, cuda, capability)
    pins = {pin.name: pin.requirement for pin in stack.pins}
    assert stack.python == wanted_python
    assert [p for n, p in pins.items() if n.startswith("cupy")] == ([cupy] if cupy else [])
    assert pins["numpy"] == f"numpy=={numpy}"
    assert [p.partition("==")[2] for n, p in pins.items() if "cudnn" in n] == ([cudnn] if cudnn else [])
    assert stack.compat is compat


def _every_stack() -> List[Tuple[Tuple[int, int], str, Stack]]:
    cudas = sorted({row.toolkit for row in TOOLKIT_DRIVERS}, key=version_key)
    return [(python, cuda, recommend(python, None, cuda, None)) for python in PYTHONS for cuda in cudas]


def test_every_set_is_whole_and_goes_together() -> None:
    for _, cuda, stack in _every_stack():
        names = [pin.name for pin in stack.pins]
        assert len(names) == len(set(names))
        assert all(pin.reason and pin.source for pin in stack.pins)
        cupy = next(pin for pin in stack.pins if pin.name.startswith("cupy"))
        version = cupy.requirement.partition("==")[2]
        wheel = next(w for w in CUPY_WHEELS if (w.package, w.version) == (cupy.name, version))
        assert wheel.python[0] <= stack.python <= wheel.python[1]
        assert version_key(wheel.cuda[0]) <= version_key(cuda) <= version_key(wheel.cuda[1])
        numpy = version_key(stack.pin("numpy").requirement.partition("==")[2])
        row = numpy_range(version)
        assert version_key(row.at_least) <= numpy
        assert row.below is None or numpy < version_key(row.below)
        # Chainer alone stops at NumPy 1.23 and Python 3.11.
        assert stack.compat is (numpy >= (1, 24) or stack.python > (3, 11))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cuda": "14.0"}, "CUDA 14.0 is not known here; the nearest that is: 13.2"),
        ({"cuda": "12.7"}, "CUDA 12.7 is not known here; the nearest that is: 12.6"),
        ({"cuda": "7.5"}, "CUDA 7.5 is not known here; the nearest that is: 9.0"),
        ({"cuda": "twelve"}, "'twelve' is not a CUDA version; it looks like 12.4"),
        ({"driver": "5x"}, "'5x' is not a driver version; it looks like 550.54.14"),
        ({"driver": "340.1"}, "driver 340.1 is older than any known here; the nearest that is: 384.81 (CUDA 9.0)"),
        ({"gpu": "H900"}, "the GPU 'H900' is not known here; the nearest that are: H800, H200, H100"),
        ({"gpu": "9.5"}, "compute capability 9.5 is not known here; the nearest that is: 9.0 (Hopper)"),
        ({"gpu": "V100", "cuda": "13.0"}, "CUDA 13.0 no longer knows compute capability 7.0 (Volta); the nearest that does: 12.9"),
        ({"gpu": "H100", "cuda": "11.1"}, "CUDA 11.1 does not know compute capability 9.0 (Hopper); the nearest that does: 11.8"),
        ({"driver": "470.57.02", "cuda": "12.4"}, "CUDA 12.4 needs driver 525 or newer and this is 470.57.02; the nearest that runs: CUDA 11.4"),
        (
            {"driver": "550.54.14", "gpu": "B200"},
            "driver 550.54.14 runs CUDA 12.4 at most, and compute capability 10.0 needs 12.8 (driver 570.26 or newer)",
        ),
        ({"python": "3.13", "cuda": "10.1"}, "there is no set for Python 3.13 on CUDA 10.1; the nearest is for Python 3.8"),
        ({"python": "2.7"}, "'2.7' is not a Python version; it looks like 3.11"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_line_and_2(arguments: Dict[str, str], message: str) -> None:
    with pytest.raises(NoStackError) as caught:
        prescribe(described((3, 11), (), **arguments))
    assert str(caught.value) == message
    code, out, err = _cli(*(f"--{name}={value}" for name, value in arguments.items()))
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == f"Error: {message}"


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("NVIDIA A100-SXM4-80GB", (8, 0)),
        ("rtx2080ti", (7, 5)),
        ("NVIDIA GeForce RTX 3090", (8, 6)),
        ("Tesla V100-SXM2-16GB", (7, 0)),
        ("NVIDIA H100 PCIe", (9, 0)),
        ("h200", (9, 0)),
        ("8.6", (8, 6)),
        ("sm_120", (12, 0)),
        ("sm70", (7, 0)),
    ],
)
def test_cards_by_the_names_that_people_and_nvml_use(name: str, capability: Tuple[int, int]) -> None:
    assert capability_of(name) == capability


def test_every_card_has_an_architecture() -> None:
    assert all(architecture(card.capability) is not None for card in CARDS)
    assert len({card.name for card in CARDS}) == len(CARDS)


def test_this_machine_is_its_driver_and_its_oldest_gpu() -> None:
    def gpu(index: int, capability: Optional[Tuple[int, int]]) -> Gpu:
        return Gpu(index, "x", f"GPU-{index}", 1, capability, f"0000:0{index}:00.0")

    facts = [GpuDriver("535.104.05", (12, 2), 3), gpu(0, (9, 0)), gpu(1, (7, 0)), gpu(2, None)]
    assert described((3, 9), facts) == Machine((3, 9), False, "535.104.05", None, (7, 0))
    # Another machine: neither this one's driver nor its Python.
    assert described((3, 13), facts, gpu="A100") == Machine((3, 11), False, None, None, (8, 0))
    assert described((3, 13), facts, python="3.10") == Machine((3, 10), True, "535.104.05", None, (7, 0))


def test_driver_tables() -> None:
    # Rows of NVIDIA's release notes and of the compatibility guide.
    assert newest_toolkit("550.54.14") == "12.4"
    assert newest_toolkit("550.54") == "12.3"
    assert newest_toolkit("535.230.02") == "12.2"
    assert newest_toolkit("384.81") == "9.0"
    assert newest_toolkit("384.80") is None
    assert oldest_driver("12.9") == "525"
    assert oldest_driver("10.2") == "440.33"
    drivers = [version_key(row.driver) for row in TOOLKIT_DRIVERS]
    assert drivers == sorted(drivers)


def test_requirements_are_read_by_packaging() -> None:
    for _, _, stack in _every_stack():
        lines = [line for line in FILES["requirements"](stack).splitlines() if line and not line.startswith("#")]
        assert [str(Requirement(line)) for line in lines] == list(stack.requirements)


def test_uv_file_is_toml_with_the_build_constraint() -> None:
    tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    stack = recommend((3, 11), None, "12.4", None)
    read = tomllib.loads(FILES["uv"](stack))
    assert read["project"]["dependencies"] == list(stack.requirements)
    assert read["project"]["requires-python"] == "==3.11.*"
    assert read["tool"]["uv"]["build-constraint-dependencies"] == ["setuptools<74"]


def test_conda_and_docker_files_hold_every_pin() -> None:
    stack = recommend((3, 11), None, "12.4", None)
    for form in ("conda", "dockerfile"):
        text = FILES[form](stack)
        code = "\n".join(line.partition("  #")[0] for line in text.splitlines() if not line.startswith("#"))
        assert all(requirement in code for requirement in stack.requirements)
    assert "FROM python:3.11-" in FILES["dockerfile"](stack)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_terminal_lines_fit_but_for_the_command(width: int) -> None:
    text = as_terminal(recommend((3, 11), None, "12.4", None), width)
    before, _, command = text.partition("Install it")
    assert max(map(len, before.splitlines())) <= width
    assert len(command.strip().splitlines()) == 2


def _cli(*arguments: str) -> Tuple[int, str, str]:
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from chainerdoctor.cli import main; main(prog_name='chainerdoctor')"
    done = subprocess.run(
        [sys.executable, "-c", start, "prescribe", *arguments], capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout, done.stderr


def test_command_writes_what_was_asked_for(tmp_path: Path) -> None:
    out = tmp_path / "environment.yml"
    assert _cli("--cuda", "12.4", "--format", "conda", "-o", str(out)) == (0, "", "")
    assert "python=3.11" in out.read_text()
    code, text, _ = _cli()
    assert code == 0
    assert f"Python {sys.version_info[0]}.{sys.version_info[1]}" in text
