"""nvitop and gpustat, unmodified, read the same simulated machine as the adapter does."""

import json

MACHINE = """
gpus = 2
driver_version = 535.54.03
[gpu *]
memory_total = 40GiB
[gpu 1]
name = NVIDIA H100 80GB HBM3
memory_used = 3GiB
util_gpu = 97
util_memory = 41
temperature = 71
power_usage = 312W
power_limit = 350W
fan = 30
persistence_mode = off
ecc_uncorrected = 3
clock_sm = 900
processes = 1 2GiB
"""

ADAPTER = """
import json
from chainerdoctor.adapters.nvml import open_nvml
with open_nvml() as nvml:
    d = nvml.device(1)
    m = d.memory()
    print(json.dumps({"name": d.name(), "uuid": d.uuid(), "total": m.total, "used": m.used, "gpu": d.utilization_percent()[0],
        "temperature": d.temperature_c(), "power_mw": d.power_mw(), "limit_mw": d.power_limit_mw(),
        "pids": [p.pid for p in d.processes()], "process_bytes": [p.used_bytes for p in d.processes()],
        "driver": nvml.driver_version()}))
"""

NVITOP = """
import json, nvitop
d = nvitop.Device(1)
print(json.dumps({"name": d.name(), "uuid": d.uuid(), "total": d.memory_total(), "used": d.memory_used(), "gpu": d.gpu_utilization(),
    "temperature": d.temperature(), "power_mw": d.power_usage(), "limit_mw": d.power_limit(), "pids": sorted(d.processes()),
    "process_bytes": [p.gpu_memory() for p in d.processes().values()], "driver": nvitop.Device.driver_version(),
    "fan": d.fan_speed(), "persistence": d.persistence_mode(), "ecc": d.total_volatile_uncorrected_ecc_errors(),
    "sm": d.sm_clock(), "memory_percent": d.memory_utilization()}))
"""


def test_nvitop_agrees_with_the_adapter_and_with_the_scenario(machine, programs):
    made = machine(MACHINE)
    adapter = made.python(ADAPTER)
    done = made.run(programs("python"), "-c", NVITOP)
    assert done.returncode == 0, done.stderr
    nvitop = json.loads(done.stdout)
    assert {key: nvitop[key] for key in adapter} == adapter
    assert adapter == {
        "name": "NVIDIA H100 80GB HBM3", "uuid": "GPU-5111a7ed-0000-4000-8000-000000000001", "total": 40 << 30, "used": 3 << 30,
        "gpu": 97, "temperature": 71, "power_mw": 312000, "limit_mw": 350000, "pids": [1], "process_bytes": [2 << 30],
        "driver": "535.54.03",
    }  # fmt: skip
    rest = {"fan": 30, "persistence": "Disabled", "ecc": 3, "sm": 900, "memory_percent": 41}
    assert {key: nvitop[key] for key in rest} == rest


def test_gpustat_agrees_with_the_adapter(machine, programs):
    made = machine(MACHINE)
    adapter = made.python(ADAPTER)
    done = made.run(programs("python"), "-m", "gpustat", "--json")
    assert done.returncode == 0, done.stderr
    gpu = json.loads(done.stdout)["gpus"][1]
    assert [gpu["name"], gpu["uuid"], gpu["utilization.gpu"], gpu["temperature.gpu"]] == [
        adapter["name"], adapter["uuid"], adapter["gpu"], adapter["temperature"],
    ]  # fmt: skip
    assert gpu["memory.total"] * 2**20 == adapter["total"]
    assert gpu["memory.used"] * 2**20 == adapter["used"]
    assert gpu["power.draw"] * 1000 == adapter["power_mw"]
    assert gpu["enforced.power.limit"] * 1000 == adapter["limit_mw"]
    assert [p["pid"] for p in gpu["processes"]] == adapter["pids"]


def test_both_show_a_lost_gpu(machine, programs):
    made = machine("gpus = 2\n[call nvmlDevice* gpu 1]\nerror = GPU_IS_LOST\n")
    assert "lost" in made.run(programs("python"), "-m", "gpustat").stdout.lower()
    assert "lost" in made.run(programs("nvitop"), "-1").stdout.lower()
