"""The same probes on the machine that runs the tests, against other programs' words."""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata

import pytest

from chainerdoctor.adapters.elf import build_id
from chainerdoctor.adapters.getifaddrs import interface_addresses
from chainerdoctor.adapters.mpi import vendor_and_version as library_version
from chainerdoctor.adapters.mpiexec import vendor_and_version as mpiexec_version
from chainerdoctor.adapters.nccl import version_text
from chainerdoctor.facts.host import OperatingSystem
from chainerdoctor.facts.stack import Distribution, ImportOutcome, Interpreter
from chainerdoctor.host import LiveHost
from chainerdoctor.probes import all_probes

PROBES = {probe.name: probe for probe in all_probes()}


def see(name: str) -> list:
    return list(PROBES[name].see(LiveHost()))


def test_operating_system_agrees_with_uname() -> None:
    system = next(fact for fact in see("operating_system") if isinstance(fact, OperatingSystem))
    assert (system.hostname, system.kernel, system.architecture) == (os.uname()[1], os.uname()[2], os.uname()[4])


def test_interpreter_agrees_with_hashlib() -> None:
    (found,) = see("interpreter")
    with open(os.path.realpath(sys.executable), "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    assert found == Interpreter(sys.executable, platform.python_version(), "CPython", digest)


def test_packages_agree_with_importlib_metadata() -> None:
    wanted = {"numpy", "mpi4py", "mpich", "setuptools", "chainer", "protobuf", "pip"}
    theirs = {d.metadata["Name"].lower(): d.version for d in metadata.distributions() if d.metadata["Name"]}
    ours = {f.name: f.version for f in see("packages") if isinstance(f, Distribution)}
    for name in wanted & set(theirs):
        assert ours[name] == theirs[name]
    assert wanted & set(ours) == wanted & set(theirs)


def test_addresses_agree_with_ip() -> None:
    if shutil.which("ip") is None:
        listed = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()
        ours = {address for addresses in interface_addresses().values() for address in addresses}
        assert set(listed) <= ours
        return
    import json

    told = json.loads(subprocess.run(["ip", "-j", "addr"], capture_output=True, text=True, check=True).stdout)
    theirs = {i["ifname"]: sorted(a["local"] for a in i["addr_info"]) for i in told if i["addr_info"]}
    assert {name: sorted(addresses) for name, addresses in interface_addresses().items()} == theirs


def test_build_id_agrees_with_readelf(tmp_path) -> None:
    if shutil.which("gcc") is None or shutil.which("readelf") is None:
        pytest.skip("gcc and readelf are needed to make a library with a known build id")
    source = tmp_path / "x.c"
    source.write_text("int x(void) { return 1; }\n")
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-Wl,--build-id=0xfeedfacecafe", "-o", tmp_path / "x.so", source], check=True
    )
    assert build_id(str(tmp_path / "x.so")) == "feedfacecafe"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,--build-id=none", "-o", tmp_path / "y.so", source], check=True)
    assert build_id(str(tmp_path / "y.so")) is None
    assert build_id(str(source)) is None


@pytest.mark.parametrize(("code", "text"), [(2804, "2.8.4"), (22105, "2.21.5"), (2708, "2.7.8"), (22809, "2.28.9")])
def test_nccl_codes(code: int, text: str) -> None:
    # Pairs from NCCL's release notes and nccl.h.
    assert version_text(code) == text


@pytest.mark.parametrize(
    ("text", "vendor", "version"),
    [
        ("MPICH Version:      5.0.2\nMPICH Release date: …", "MPICH", "5.0.2"),
        ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", "Open MPI", "4.1.4"),
        ("Intel(R) MPI Library 2021.12 for Linux* OS", "Intel MPI", "2021.12"),
        ("MVAPICH2 Version      :\t2.3.7\nMVAPICH2 Release date : …", "MVAPICH", "2.3.7"),
        ("Something Else 1.0", "unknown", "Something Else 1.0"),
    ],
)
def test_library_texts(text: str, vendor: str, version: str) -> None:
    assert library_version(text) == (vendor, version)


@pytest.mark.parametrize(
    ("text", "vendor", "version"),
    [
        ("HYDRA build details:\n    Version:                                 4.2.3\n", "MPICH", "4.2.3"),
        ("mpiexec (OpenRTE) 4.1.4\n\nReport bugs to …", "Open MPI", "4.1.4"),
        ("mpirun (Open MPI) 5.0.3\n", "Open MPI", "5.0.3"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.12 Build 20240213\n", "Intel MPI", "2021.12"),
        ("", "unknown", ""),
    ],
)
def test_mpiexec_texts(text: str, vendor: str, version: str) -> None:
    assert mpiexec_version(text) == (vendor, version)


def test_import_outcomes_tell_the_true_error(tmp_path, monkeypatch) -> None:
    package = tmp_path / "cupy"
    package.mkdir()
    (package / "__init__.py").write_text(
        "try:\n    import _no_such_core\nexcept ImportError as e:\n    raise RuntimeError('CuPy is broken') from e\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.split(".")[0] == "cupy"]:
        monkeypatch.delitem(sys.modules, name)
    from chainerdoctor.probes.python_stack import _import

    outcome = _import("cupy")
    assert isinstance(outcome, ImportOutcome)
    assert not outcome.ok
    assert outcome.error == (
        "RuntimeError: CuPy is broken — caused by ModuleNotFoundError: No module named '_no_such_core'"
    )
