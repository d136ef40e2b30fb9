"""Simulated NVML as the adapter reads it, against nvidia-ml-py as an independent reader, and what goes wrong in calls."""

import signal
import subprocess
import sys
import time

import pytest

EVERYTHING = """
gpus = 3
driver_version = 535.54.03
nvml_version = 12.535.54.03
cuda_driver_version = 12020
[gpu *]
memory_total = 40GiB
[gpu 1]
name = NVIDIA H100 80GB HBM3
compute_capability = 9.0
memory_used = 3GiB
memory_reserved = 500MiB
util_gpu = 97
util_memory = 41
temperature = 71
temperature_memory = 66
temperature_slowdown = 88
clock_sm = 900
clock_memory = 1200
clock_max_sm = 1980
throttle_reasons = sw_thermal|hw_thermal
power_usage = 312W
power_limit = 350W
power_default = 400W
pstate = 2
persistence_mode = off
compute_mode = 3
ecc_uncorrected = 3
ecc_uncorrected_sram = 2
ecc_corrected = 11
ecc_uncorrected_ever = 9
remap_corrected = 1
remap_uncorrected = 2
remap_pending = yes
remap_failure = yes
retired_single = 4
retired_double = 62
retired_pending = yes
mig_mode = on
pcie_generation = 3
pcie_width = 8
pcie_replay = 12
nvlinks = 6
fabric_state = 2
fabric_status = 999
numa_node = 1
cpu_affinity = 0-3,64-65
processes = 1 2GiB, 2 1GiB graphics
[mig 1:0]
memory_total = 10GiB
memory_used = 1GiB
[pair *]
topology = NODE
[pair 0-1]
topology = SYS
p2p_read = chipset_not_supported
[link 1:4]
state = down
crc_errors = 17
replay_errors = 5
recovery_errors = 1
"""

#: What the scenario above says about GPU 1, by the adapter's methods. Written from the scenario, not from the code.
WANTED = {
    "name": "NVIDIA H100 80GB HBM3",
    "compute_capability": [9, 0],
    "memory": [40 << 30, 3 << 30, (37 << 30) - (500 << 20), 500 << 20],
    "utilization_percent": [97, 41],
    "temperature_c": 71,
    "temperature_memory_c": 66,
    "temperature_slowdown_c": 88,
    "clock_mhz sm": 900,
    "clock_mhz memory": 1200,
    "clock_max_mhz sm": 1980,
    "throttle_bits": 0x60,
    "power_mw": 312000,
    "power_limit_mw": 350000,
    "power_default_mw": 400000,
    "pstate": 2,
    "persistence_mode": False,
    "compute_mode": 3,
    "ecc_mode": [True, True],
    "ecc_errors true false": 5,
    "ecc_errors true true": 9,
    "ecc_errors false false": 11,
    "ecc_uncorrected_sram false": 2,
    "ecc_uncorrected_dram false": 3,
    "remapped_rows": [1, 2, True, True],
    "retired_pages false": 4,
    "retired_pages true": 62,
    "retired_pages_pending": True,
    "mig_mode": [True, False],
    "mig_devices": [["MIG-5111a7ed-0000-4000-0001-000000000000", 10 << 30, 1 << 30]],
    "pcie_generation": 3,
    "pcie_generation_max": 4,
    "pcie_width": 8,
    "pcie_width_max": 16,
    "pcie_replays": 12,
    "nvlink_count": 6,
    "nvlink_active 3": True,
    "nvlink_active 4": False,
    "nvlink_errors 4 crc": 17,
    "nvlink_errors 4 replay": 5,
    "nvlink_errors 4 recovery": 1,
    "fabric": [2, 999],
    "numa_node": 1,
    "cpu_affinity": [0, 1, 2, 3, 64, 65],
    "bus_id": "00000000:0F:00.0",
    "processes": [[1, 2 << 30]],
    "graphics_processes": [[2, 1 << 30]],
    "fan_speed": None,
}

READ = """
import json, sys
from chainerdoctor.adapters.nvml import open_nvml
def argument(word):
    return {"true": True, "false": False}.get(word, int(word) if word.isdigit() else word)
with open_nvml() as nvml:
    device = nvml.device(int(sys.argv[1]))
    out = {}
    for line in json.loads(sys.argv[2]):
        method, *arguments = line.split()
        if hasattr(device, method):
            out[line] = getattr(device, method)(*map(argument, arguments))
print(json.dumps(out))
"""


def read(machine, gpu, wanted):
    import json

    return machine.python(READ, str(gpu), json.dumps(list(wanted)))


def test_the_adapter_reads_what_the_scenario_says(machine):
    wanted = {key: value for key, value in WANTED.items() if value is not None}
    assert read(machine(EVERYTHING), 1, wanted) == wanted


def test_system_pairs_and_count(machine):
    got = machine(EVERYTHING).python(
        """
        import json
        from chainerdoctor.adapters.nvml import open_nvml
        with open_nvml() as nvml:
            d = [nvml.device(i) for i in range(3)]
            print(json.dumps([nvml.driver_version(), nvml.nvml_version(), nvml.cuda_driver_version(), nvml.device_count(),
                d[0].topology(d[1]), d[1].topology(d[2]), d[0].topology(d[0]), d[0].peer_access(d[1], "read"),
                d[0].peer_access(d[1], "write"), d[1].peer_access(d[2], "read"), nvml.device(3)]))
        """
    )
    assert got[:10] == [
        "535.54.03", "12.535.54.03", 12020, 3, "SYS", "NODE", "SELF", "chipset not supported", "ok", "ok",
    ]  # fmt: skip
    assert got[10] == ["nvmlDeviceGetHandleByIndex", "error", "Invalid Argument", 2]


def test_nvidia_ml_py_reads_the_same(machine):
    """The independent reader: the calls are made by nvidia-ml-py alone, and its answers compared with the scenario."""
    got = machine(EVERYTHING).python(
        """
        import json, pynvml as n
        n.nvmlInit()
        h = n.nvmlDeviceGetHandleByIndex(1)
        m, m2, u = n.nvmlDeviceGetMemoryInfo(h), n.nvmlDeviceGetMemoryInfo(h, n.nvmlMemory_v2), n.nvmlDeviceGetUtilizationRates(h)
        text = lambda t: t.decode() if isinstance(t, bytes) else t
        print(json.dumps([text(n.nvmlDeviceGetName(h)), m.total, m.used, m2.used, m2.reserved, u.gpu, u.memory,
            n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU), n.nvmlDeviceGetPowerUsage(h),
            n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM), n.nvmlDeviceGetCurrentClocksThrottleReasons(h),
            n.nvmlDeviceGetTotalEccErrors(h, n.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, n.NVML_VOLATILE_ECC),
            list(n.nvmlDeviceGetRemappedRows(h)), len(n.nvmlDeviceGetRetiredPages(h, 1)),
            n.nvmlDeviceGetCurrPcieLinkWidth(h), n.nvmlDeviceGetNvLinkState(h, 4),
            n.nvmlDeviceGetNvLinkErrorCounter(h, 4, n.NVML_NVLINK_ERROR_DL_CRC_FLIT),
            [p.pid for p in n.nvmlDeviceGetComputeRunningProcesses(h)], list(n.nvmlDeviceGetMigMode(h)),
            n.nvmlDeviceGetTopologyCommonAncestor(n.nvmlDeviceGetHandleByIndex(0), h)]))
        """
    )
    assert got == [
        "NVIDIA H100 80GB HBM3", 40 << 30, (3 << 30) + (500 << 20), 3 << 30, 500 << 20, 97, 41, 71, 312000, 900, 0x60,
        5, [1, 2, 1, 1], 62, 8, 0, 17, [1], [1, 0], 50,
    ]  # fmt: skip


def test_values_follow_time(machine):
    """t = 0 is set into the past, so the moments are exact up to the time that the child needs."""
    made = machine(
        """
        gpus = 1
        [gpu 0]
        memory_used = 1GiB + grow(10GiB, 20s)
        temperature = 40 + step(30, 50s)
        util_gpu = ramp(100, 200s)
        clock_sm = 1000 + error(TIMEOUT, 150s)
        """
    )
    wanted = ("memory", "temperature_c", "utilization_percent", "clock_mhz sm")
    seen = {}
    for age in (0, 100, 250):
        made.variables["CHAINERDOCTOR_SIM_T0"] = repr(time.time() - age)
        seen[age] = read(made, 0, wanted)
    assert (1 << 30) <= seen[0]["memory"][1] < (11 << 30) == seen[100]["memory"][1]
    assert [seen[age]["temperature_c"] for age in (0, 100)] == [40, 70]
    assert seen[100]["utilization_percent"][0] in range(50, 75)
    assert seen[250]["utilization_percent"][0] in range(25, 50)  # the saw tooth began again at 200 s
    assert seen[100]["clock_mhz sm"] == 1000
    assert seen[250]["clock_mhz sm"] == ["nvmlDeviceGetClockInfo", "timeout", "Timeout", 10]


def test_a_gpu_falls_off_the_bus(machine):
    made = machine("gpus = 2\n[gpu 1]\nlost_at = 100s\n")
    code = """
        import json
        from chainerdoctor.adapters.nvml import open_nvml
        with open_nvml() as nvml:
            a, b = nvml.device(0), nvml.device(1)
            print(json.dumps([a.temperature_c(), b if isinstance(b, tuple) else b.temperature_c()]))
        """
    assert made.python(code) == [35, 35]
    made.variables["CHAINERDOCTOR_SIM_T0"] = repr(time.time() - 101)
    healthy, lost = made.python(code)
    assert healthy == 35
    assert lost == ["nvmlDeviceGetHandleByIndex", "error", "GPU is lost", 15]


def test_errors_are_told_and_nothing_is_invented(machine):
    made = machine(
        """
        gpus = 1
        [gpu 0]
        ecc_mode = unsupported
        power_usage = error(NO_PERMISSION)
        [call nvmlDeviceGetTemperature]
        error = 17
        [call nvmlDeviceGetPersistenceMode]
        error = UNKNOWN
        at = 2
        """
    )
    keys = ("ecc_mode", "power_mw", "temperature_c", "persistence_mode", "ecc_errors true false")
    got = read(made, 0, keys)
    assert got["ecc_mode"] == ["nvmlDeviceGetEccMode", "unsupported", "Not Supported", 3]
    assert got["power_mw"] == ["nvmlDeviceGetPowerUsage", "denied", "Insufficient Permissions", 4]
    assert got["temperature_c"][::3] == ["nvmlDeviceGetTemperature", 17]
    assert got["temperature_c"][1] == "denied"
    assert got["persistence_mode"] is True  # only the second call fails
    assert got["ecc_errors true false"][1] == "unsupported"


def test_the_old_memory_call_serves_an_old_driver(machine):
    made = machine(
        "gpus = 1\n[gpu 0]\nmemory_used = 1GiB\n[call nvmlDeviceGetMemoryInfo_v2]\nerror = FUNCTION_NOT_FOUND\n"
    )
    total, used, free, reserved = read(made, 0, ["memory"])["memory"]
    assert (total, used, reserved) == (80 << 30, (1 << 30) + (600 << 20), None)
    assert free == total - used


@pytest.mark.parametrize(
    ("section", "reason"), [("error = DRIVER_NOT_LOADED", "absent"), ("error = LIB_RM_VERSION_MISMATCH", "error")]
)
def test_nvml_that_does_not_start(machine, section, reason):
    got = machine(f"gpus = 1\n[call nvmlInit_v2]\n{section}\n[call nvmlInitWithFlags]\n{section}\n").python(
        "import json\nfrom chainerdoctor.adapters.nvml import open_nvml\nprint(json.dumps(open_nvml()))"
    )
    assert got[:2] == ["nvmlInit", reason]


def test_no_driver_at_all_is_absent(machine, tmp_path):
    made = machine("gpus = 1\n")
    made.variables["LD_LIBRARY_PATH"] = str(tmp_path)
    got = made.python("import json\nfrom chainerdoctor.adapters.nvml import open_nvml\nprint(json.dumps(open_nvml()))")
    assert got[1] == "absent"


TEMPERATURE = "from chainerdoctor.adapters.nvml import open_nvml\nopen_nvml().device(0).temperature_c()"


def test_a_call_that_crashes(machine):
    done = machine("gpus = 1\n[call nvmlDeviceGetTemperature]\ncrash = yes\n").run(sys.executable, "-c", TEMPERATURE)
    assert done.returncode == -signal.SIGSEGV


def test_a_call_that_blocks(machine):
    made = machine("gpus = 1\n[call nvmlDeviceGetTemperature]\nblock = forever\n")
    with pytest.raises(subprocess.TimeoutExpired):
        made.run(sys.executable, "-c", TEMPERATURE, timeout=3)
    healthy = machine("gpus = 1\n[call nvmlDeviceGetTemperature]\nblock = 10ms\n")
    assert healthy.run(sys.executable, "-c", TEMPERATURE).returncode == 0


def test_processes_of_simulated_cuda_are_listed_while_they_live(machine):
    """The board is written here as simulated CUDA writes it: pid, start time, bytes."""
    import os
    import struct

    made = machine("gpus = 1\n[gpu 0]\nmemory_used = 1GiB + cuda\nprocesses = cuda\n")
    with open("/proc/self/stat", encoding="utf-8") as file:
        start = int(file.read().rsplit(")", 1)[1].split()[19])
    ghost = struct.pack("<IIQQ", 999_999_999, 0, 5, 7 << 30)
    board = struct.pack("<IIQQ", os.getpid(), 0, start, 2 << 30) + ghost
    (made.shared / "gpu0").write_bytes(board.ljust(24 * 64, b"\0"))
    got = read(made, 0, ["memory", "processes"])
    assert got["memory"][1] == 3 << 30
    assert got["processes"] == [[os.getpid(), 2 << 30]]
