"""Where NVML cannot be asked: nvidia-smi's text; and what the kernel's log says of GPUs. Values are read off by eye."""

import json
from pathlib import Path

import pytest

from chainerdoctor.adapters.nvml_readings import Refusal
from chainerdoctor.facts import ABSENT, TIMEOUT, Missing
from chainerdoctor.facts.gpu import Gpu, GpuClocks, GpuDriver, GpuErrors, GpuMemory, GpuModes, GpuPcie
from chainerdoctor.facts.log import KernelLog, LogEvent
from chainerdoctor.host import TapedHost
from chainerdoctor.judging import judge
from chainerdoctor.probes import Unseen, all_probes, gpu
from chainerdoctor.probes.gpu_smi import facts_of
from chainerdoctor.rules import all_rules, selected
from chainerdoctor.snapshot import Sighting, Snapshot

PROBES = {probe.name: probe for probe in all_probes()}

SMI = """
==============NVSMI LOG==============

Timestamp                                 : Mon Nov 30 04:12:07 2026
Driver Version                            : 535.129.03
CUDA Version                              : 12.2

Attached GPUs                             : 1
GPU 00000000:07:00.0
    Product Name                          : NVIDIA A100-SXM4-40GB
    Persistence Mode                      : Enabled
    MIG Mode
        Current                           : Disabled
        Pending                           : Disabled
    GPU UUID                              : GPU-11111111-2222-3333-4444-555555555555
    PCI
        Bus                               : 0x07
        Bus Id                            : 00000000:07:00.0
        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : 1
                Device Current            : 1
                Device Max                : 4
                Host Max                  : 4
            Link Width
                Max                       : 16x
                Current                   : 8x
        Replays Since Reset               : 3
    Performance State                     : P0
    Clocks Throttle Reasons
        Idle                              : Not Active
        SW Power Cap                      : Not Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
        Sync Boost                        : Not Active
    FB Memory Usage
        Total                             : 40960 MiB
        Reserved                          : 611 MiB
        Used                              : 2 MiB
        Free                              : 40346 MiB
    BAR1 Memory Usage
        Total                             : 65536 MiB
        Used                              : 1 MiB
        Free                              : 65535 MiB
    Compute Mode                          : Exclusive_Process
    ECC Mode
        Current                           : Enabled
        Pending                           : Enabled
    ECC Errors
        Volatile
            SRAM Correctable              : 0
            SRAM Uncorrectable            : 0
            DRAM Correctable              : 5
            DRAM Uncorrectable            : 1
        Aggregate
            SRAM Correctable              : 0
            SRAM Uncorrectable            : 0
            DRAM Correctable              : 9
            DRAM Uncorrectable            : 2
    Retired Pages
        Single Bit ECC                    : N/A
        Double Bit ECC                    : N/A
        Pending Page Blacklist            : N/A
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 1
        Pending                           : Yes
        Remapping Failure Occurred        : No
    Temperature
        GPU Current Temp                  : 91 C
        GPU Shutdown Temp                 : 92 C
        GPU Slowdown Temp                 : 89 C
    GPU Power Readings
        Power Draw                        : 251.34 W
        Current Power Limit               : 400.00 W
        Default Power Limit               : 400.00 W
    Clocks
        Graphics                          : 705 MHz
        SM                                : 705 MHz
        Memory                            : 1215 MHz
    Applications Clocks
        Graphics                          : 1095 MHz
        Memory                            : 1215 MHz
    Max Clocks
        Graphics                          : 1410 MHz
        SM                                : 1410 MHz
        Memory                            : 1215 MHz
    Processes                             : None
"""

EXPECTED = [
    GpuDriver("535.129.03", (12, 2), 1),
    Gpu(
        0, "NVIDIA A100-SXM4-40GB", "GPU-11111111-2222-3333-4444-555555555555", 40960 * 2**20, None, "00000000:07:00.0"
    ),
    GpuMemory(0, 40960 * 2**20, 2 * 2**20, 40346 * 2**20, 611 * 2**20),
    GpuModes(0, True, False, 3),
    GpuPcie(0, 1, 4, 4, 8, 16, 3),
    GpuErrors(0, True, 5, 1, 2, 0, 0, 0, 1, True, False, None, None, None),
    # Hardware slowdown 0x8 and its thermal kind 0x40.
    GpuClocks(0, 705, 1410, 1095, 1215, 1215, 0x48, 0, 91, 89, 251340, 400000, 400000),
]


def taped(tmp_path: Path, **parts: object) -> TapedHost:
    (tmp_path / "tape.json").write_text(json.dumps(parts))
    return TapedHost(tmp_path)


def without_nvml(monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    monkeypatch.setattr(gpu, "open_nvml", lambda: Refusal("nvmlInit", reason, "NVML Shared Library Not Found"))


def test_every_value_of_nvidia_smi() -> None:
    assert list(facts_of(SMI)) == EXPECTED


@pytest.mark.parametrize(
    "text", ["", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"]
)
def test_other_text_gives_nothing(text: str) -> None:
    assert list(facts_of(text)) == []


def test_nvidia_smi_stands_in_for_nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_nvml(monkeypatch, ABSENT)
    host = taped(tmp_path, commands={"nvidia-smi -q": {"status": 0, "out": SMI}})
    *facts, missing = PROBES["gpus"].see(host)
    assert facts == EXPECTED
    assert isinstance(missing, Missing)
    assert not missing.blind
    assert set(missing.kinds) == {"NvLink", "NvSwitchFabric", "GpuProcess", "GpuPair"}


def test_without_both_the_reason_is_nvmls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_nvml(monkeypatch, ABSENT)
    with pytest.raises(Unseen, match="NVML Shared Library Not Found"):
        list(PROBES["gpus"].see(taped(tmp_path)))


def test_a_driver_that_hangs_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_nvml(monkeypatch, TIMEOUT)
    host = taped(tmp_path, commands={"nvidia-smi -q": {"status": 0, "out": SMI}})
    with pytest.raises(Unseen):
        list(PROBES["gpus"].see(host))


DMESG = """\
[    2.100000] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.129.03
[ 1000.000000] NVRM: Xid (PCI:0000:07:00): 79, pid=1234, name=python, GPU has fallen off the bus.
[200000.500000] NVRM: Xid (PCI:0000:0b:00): 48, pid='<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has been detected on GPU
[200001.000000] python[991]: segfault at 0 ip 00007f0000000000 sp 00007ffc00000000 error 4 in libc.so.6
"""


def machine(tmp_path: Path, **commands: object) -> TapedHost:
    files = {
        "/proc/driver/nvidia/version": "NVRM version: …",
        "/proc/sys/kernel/hostname": "gpu07\n",
        "/proc/uptime": "201000.00 400000.00\n",
    }
    return taped(tmp_path, files=files, commands=commands)


def found(facts: list) -> dict:
    snapshot = Snapshot([Sighting("gpu07", None, "kernel_log", 0.0, 0.0, fact) for fact in facts])
    verdicts = judge(snapshot, selected(all_rules(), ("CD1", "CD2"), ()))
    return {verdict.code: [finding.where for finding in verdict.findings] for verdict in verdicts if verdict.findings}


def test_recent_xids_are_judged_and_old_ones_and_other_messages_left_out(tmp_path: Path) -> None:
    facts = list(PROBES["kernel_log"].see(machine(tmp_path, dmesg={"status": 0, "out": DMESG})))
    assert facts[0] == KernelLog("dmesg", 4)
    (event,) = (fact for fact in facts if isinstance(fact, LogEvent))
    assert (event.event, event.line, event.detail["xid"], event.hosts) == ("kernel.xid", 3, "48", ("gpu07",))
    # Xid 48, a double-bit error: NVIDIA's catalog says to reset the GPU.
    assert found(facts) == {"CD260": ["gpu07/GPU 0000:0b:00"]}


def test_a_quiet_kernel_log_is_clear(tmp_path: Path) -> None:
    quiet = DMESG.splitlines(keepends=True)[0]
    facts = list(PROBES["kernel_log"].see(machine(tmp_path, dmesg={"status": 0, "out": quiet})))
    assert facts == [KernelLog("dmesg", 1)]
    assert found(facts) == {}


def test_the_journal_is_read_where_dmesg_is_for_root(tmp_path: Path) -> None:
    denied = {"status": 1, "out": "", "err": "dmesg: read kernel buffer failed: Operation not permitted\n"}
    journal = DMESG.replace("NVRM: Xid", "gpu07 kernel: NVRM: Xid")
    host = machine(
        tmp_path,
        **{"dmesg": denied, "journalctl -k -b -o short-monotonic --no-pager -q": {"status": 0, "out": journal}},
    )
    assert found(list(PROBES["kernel_log"].see(host))) == {"CD260": ["gpu07/GPU 0000:0b:00"]}


def test_a_log_that_is_kept_from_users_is_no_blind_spot(tmp_path: Path) -> None:
    denied = {"status": 1, "out": "", "err": "dmesg: read kernel buffer failed: Operation not permitted\n"}
    with pytest.raises(Unseen, match="Operation not permitted") as caught:
        list(PROBES["kernel_log"].see(machine(tmp_path, dmesg=denied)))
    assert not Missing("kernel_log", caught.value.reason, "", ()).blind


def test_without_the_driver_the_log_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(Unseen):
        list(PROBES["kernel_log"].see(taped(tmp_path, commands={"dmesg": {"status": 0, "out": DMESG}})))
