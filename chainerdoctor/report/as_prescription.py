"""A set of versions as text for people and as files for pip, conda, Docker and uv."""

from __future__ import annotations

import textwrap
from typing import Callable, Dict, List

from chainerdoctor.tables.cuda_drivers import version_key
from chainerdoctor.tables.working_stacks import SETUPTOOLS, NoStackError, Stack

#: NVIDIA's wheels of the toolkit's own libraries that CuPy loads; {major} is CUDA's. The first two follow the toolkit.
_FOLLOWING = ("nvidia-cuda-runtime-cu{major}", "nvidia-cuda-nvrtc-cu{major}")
_TOOLKIT_WHEELS = ("cublas", "cufft", "curand", "cusolver", "cusparse")
_BUILD_VARIABLES = 'PIP_CONSTRAINT="$PWD/build-constraint.txt" PIP_BUILD_CONSTRAINT="$PWD/build-constraint.txt"'


def as_terminal(stack: Stack, width: int) -> str:
    """For people: each pin with its reason, the notes, and the command to type."""
    width = max(20, width)
    lines = [*textwrap.wrap(stack.title, width, break_on_hyphens=False), ""]
    rows = [(f"Python {_python(stack)}", stack.python_reason)]
    rows += [(pin.requirement, pin.reason) for pin in stack.pins]
    column = max(len(name) for name, _ in rows) + 2
    for name, reason in rows:
        if width - column >= 30:
            lines += textwrap.wrap(
                f"{name:<{column}}{reason}", width, subsequent_indent=" " * column, break_on_hyphens=False
            )
        else:  # a narrow terminal: the reason goes below its pin
            lines += [name, *_indented(reason, width, "  ")]
    for note in stack.notes:
        lines += ["", *_indented(note, width, "", "")]
    # The command is one line however narrow the terminal is: it is there to be copied.
    lines += [
        "",
        f"Install it, in an environment of its own with Python {_python(stack)}:",
        "  " + stack.pip_command,
        "",
    ]
    return "\n".join(lines)


def as_requirements(stack: Stack) -> str:
    """A requirements file. Chainer's build needs a constraint that such a file cannot hold: the head says how."""
    lines = _head(stack, "requirements.txt")
    lines += [
        f"#   echo '{SETUPTOOLS}' > build-constraint.txt",
        f"#   {_BUILD_VARIABLES} python -m pip install -r requirements.txt",
    ]
    for pin in stack.pins:
        lines += ["", *_comment(pin.reason), pin.requirement]
    return "\n".join(lines) + "\n"


def as_conda(stack: Stack) -> str:
    """An environment.yml: conda gives Python, pip the rest (conda-forge has no Chainer for these versions)."""
    lines = _head(stack, "environment.yml")
    lines += [
        f"#   echo '{SETUPTOOLS}' > build-constraint.txt",
        f"#   {_BUILD_VARIABLES} conda env create -f environment.yml",
        "name: chainer",
        "channels:",
        "  - conda-forge",
        "dependencies:",
        f"  - python={_python(stack)}  # {stack.python_reason}",
        "  - pip",
        "  - pip:",
    ]
    for pin in stack.pins:
        lines.append(f'      - "{pin.requirement}"  # {pin.reason}')
    return "\n".join(lines) + "\n"


def as_uv(stack: Stack) -> str:
    """A pyproject.toml for ``uv sync``."""
    lines = _head(stack, "pyproject.toml")
    lines += [
        "#   uv sync",
        "[project]",
        'name = "training"',
        'version = "0"',
        f'requires-python = "=={_python(stack)}.*"  # {stack.python_reason}',
        "dependencies = [",
    ]
    for pin in stack.pins:
        lines.append(f'  "{pin.requirement}",  # {pin.reason}')
    lines += [
        "]",
        "",
        "[tool.uv]",
        "# Chainer's setup.py imports pkg_resources, which setuptools 82 dropped.",
        f'build-constraint-dependencies = ["{SETUPTOOLS}"]',
    ]
    return "\n".join(lines) + "\n"


def as_dockerfile(stack: Stack) -> str:
    """A Dockerfile on Python's official image; CUDA's libraries come from NVIDIA's wheels, the driver from the host.

    Raises:
        NoStackError: there are no such wheels for this CUDA.
    """
    libraries: List[str] = []
    if stack.cuda is not None:
        major = version_key(stack.cuda)[0]
        if major not in (11, 12):
            raise NoStackError(
                f"there is no Dockerfile for CUDA {stack.cuda}: NVIDIA's wheels of this form exist for CUDA 11 and 12; "
                "the nearest is --format requirements on an image with that toolkit"
            )
        # cu11's runtime and NVRTC have no release for every minor version; any 11.x serves by minor compatibility.
        pinned = f"=={stack.cuda}.*" if major == 12 else ""
        libraries = [name.format(major=major) + pinned for name in _FOLLOWING]
        libraries += [f"nvidia-{name}-cu{major}" for name in _TOOLKIT_WHEELS]
    packages = f"/usr/local/lib/python{_python(stack)}/site-packages"
    lines = _head(stack, "Dockerfile")
    lines += [
        "#   docker build -t chainer . && docker run --gpus all --shm-size=1g --ulimit memlock=-1 chainer",
        f"FROM python:{_python(stack)}-bookworm",
        f"RUN echo '{SETUPTOOLS}' > /build-constraint.txt",
        "ENV PIP_CONSTRAINT=/build-constraint.txt PIP_BUILD_CONSTRAINT=/build-constraint.txt",
    ]
    for pin in stack.pins:
        lines += _comment(pin.reason)
        lines += [f"#   {pin.requirement}"]
    wanted = [*stack.requirements, *libraries]
    lines += ["RUN python -m pip install --no-cache-dir \\"]
    lines += [f"    '{requirement}' \\" for requirement in wanted[:-1]] + [f"    '{wanted[-1]}'"]
    if libraries:
        folders = [name.split("-")[1] for name in stack.requirements if name.startswith("nvidia-")]
        folders += ["cuda_runtime", "cuda_nvrtc", *_TOOLKIT_WHEELS]
        path = ":".join(f"{packages}/nvidia/{folder}/lib" for folder in folders)
        lines += [
            "# CuPy up to 13 looks for libraries where the linker does, not in wheels.",
            f"ENV LD_LIBRARY_PATH={path}",
            f"ENV CUDA_PATH={packages}/nvidia/cuda_runtime",
            "ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        ]
    return "\n".join(lines) + "\n"


#: By the name of the format; ``terminal`` takes a width besides.
FILES: Dict[str, Callable[[Stack], str]] = {
    "requirements": as_requirements,
    "conda": as_conda,
    "dockerfile": as_dockerfile,
    "uv": as_uv,
}


def _head(stack: Stack, file: str) -> List[str]:
    lines = [
        f"# {file} for Chainer 7.8.1: {stack.title}",
        *_comment(f"Python {_python(stack)}: {stack.python_reason}."),
    ]
    for note in stack.notes:
        lines += _comment(note)
    return lines


def _comment(text: str) -> List[str]:
    return textwrap.wrap(text, 116, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)


def _indented(text: str, width: int, indent: str, first: str = "  ") -> List[str]:
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False)


def _python(stack: Stack) -> str:
    return f"{stack.python[0]}.{stack.python[1]}"
