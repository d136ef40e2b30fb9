"""Every fault that the simulated NVML can produce: the finding, all of it, and nothing else.

The expectation stands beside the fault, written from the scenario and not from the code.
"""

import time

import pytest

from chainerdoctor.facts import Missing
from chainerdoctor.facts.fabric import GpuPair, NvLink
from chainerdoctor.facts.gpu import Gpu, GpuClocks, GpuErrors, GpuLost, GpuMemory, GpuPcie, GpuProcess
from chainerdoctor.facts.stack import MappedLibrary, NcclVersion
from chainerdoctor.probes import all_probes

#: What the shelter allows the whole probe. A call that hangs may not cost it.
DEADLINE_S = next(probe.deadline_s for probe in all_probes() if probe.name == "gpus")

HEALTHY = """
gpus = 4
[gpu *]
memory_used = 400MiB
cpu_affinity = 0-31
[gpu 0]
throttle_reasons = none
[gpu 1]
throttle_reasons = idle
clock_sm = 210
[gpu 2]
throttle_reasons = sw_power_cap
power_usage = 398W
[gpu 3]
ecc_corrected = 17
ecc_uncorrected_ever = 2
remap_uncorrected = 1
[link 0:3]
crc_errors = 12
"""

#: fault → the scenario's keys, and the codes with the place that each one has to name.
FAULTS = {
    "uncorrected errors": ("[gpu 2]\necc_uncorrected = 3", {"CD207": ["node1/GPU 2"]}),
    "one error in SRAM": ("[gpu 0]\necc_uncorrected_sram = 1", {"CD207": ["node1/GPU 0"]}),
    "a row remap waits": ("[gpu 1,3]\nremap_pending = yes", {"CD208": ["node1/GPUs 1, 3"]}),
    "a page waits": ("[gpu 1]\nretired_single = 2\nretired_double = 1\nretired_pending = yes", {"CD208": ["node1/GPU 1"]}),
    "a row remap failed": ("[gpu 0]\nremap_failure = yes", {"CD209": ["node1/GPU 0"]}),
    "pages are used up": ("[gpu 0]\nretired_single = 3\nretired_double = 62\nretired_pending = no", {"CD209": ["node1/GPU 0"]}),
    "ECC off on one": ("[gpu 3]\necc_mode = off", {"CD210": ["node1/GPU 3"]}),
    "hardware slowdown": ("[gpu 1]\nthrottle_reasons = hw_slowdown", {"CD211": ["node1/GPU 1"]}),
    "software thermal": ("[gpu 1]\nthrottle_reasons = idle|sw_thermal", {"CD211": ["node1/GPU 1"]}),
    "hardware thermal": ("[gpu 0-1]\nthrottle_reasons = hw_thermal", {"CD211": ["node1/GPUs 0–1"]}),
    "power brake": ("[gpu 3]\nthrottle_reasons = hw_power_brake", {"CD211": ["node1/GPU 3"]}),
    "power limit": ("[gpu *]\npower_limit = 250W", {"CD212": ["node1/GPUs 0–3"]}),
    "hot": ("[gpu 2]\ntemperature = 87", {"CD213": ["node1/GPU 2"]}),
    "application clock": ("[gpu 2]\nclock_app_graphics = 1095", {"CD214": ["node1/GPU 2"]}),
    "highest clock": ("[gpu 2]\nclock_max_sm = 1200", {"CD214": ["node1/GPU 2"]}),
    "lanes": ("[gpu 3]\npcie_width = 8", {"CD215": ["node1/GPU 3"]}),
    "generation": ("[gpu 3]\npcie_generation = 1", {"CD216": ["node1/GPU 3"]}),
    "idle generation": ("[gpu 3]\npcie_generation = 1\npstate = 8", {}),
    "old board": ("[gpu *]\npcie_generation = 3\npcie_generation_max = 3", {"CD217": ["node1/GPUs 0–3"]}),
    "small slot": ("[gpu 0]\npcie_width = 8\npcie_width_max = 8", {"CD218": ["node1/GPU 0"]}),
    "a link is down": ("[link 2:4]\nstate = down\ncrc_errors = 17", {"CD220": ["node1/GPU 2"]}),
    "a link recovered": ("[link 1:0]\nrecovery_errors = 1", {"CD221": ["node1/GPU 1"]}),
    "a link replayed": ("[link 1:0]\nreplay_errors = 4", {"CD221": ["node1/GPU 1"]}),
    "no links at all": ("[gpu *]\nnvlinks = 0", {}),
    "fabric in progress": ("[gpu *]\nfabric_state = 2", {"CD222": ["node1/GPUs 0–3"]}),
    "fabric failed": ("[gpu 1]\nfabric_state = 3\nfabric_status = 999", {"CD222": ["node1/GPU 1"]}),
    "fabric ready": ("[gpu *]\nfabric_state = 3", {}),
    "chipset": ("[pair 0-1]\np2p_read = chipset_not_supported", {"CD223": ["node1/GPUs 0–1"]}),
    "registry key": ("[pair 2-3]\np2p_write = disabled_by_regkey", {"CD223": ["node1/GPUs 2–3"]}),
    "card cannot": ("[pair *]\np2p_read = gpu_not_supported\np2p_write = gpu_not_supported", {}),
    "across processors": ("[gpu *]\nnvlinks = 0\n[pair 0-1]\ntopology = SYS\np2p_read = chipset_not_supported", {}),
    "somebody's process": ("[gpu 3]\nprocesses = 999999 4GiB\nmemory_used = 4GiB", {"CD224": ["node1/GPU 3"]}),
    "a display": ("[gpu 3]\nprocesses = 999999 100MiB graphics", {}),
    "unexplained memory": ("[gpu 1]\nmemory_used = 30GiB", {"CD225": ["node1/GPU 1"]}),
    "persistence off": ("[gpu *]\npersistence_mode = off", {"CD226": ["node1/GPUs 0–3"]}),
    "MIG": ("[gpu 0]\nmig_mode = on", {"CD227": ["node1/GPU 0"]}),
    "prohibited": ("[gpu 0]\ncompute_mode = 2", {"CD228": ["node1/GPU 0"]}),
    "exclusive": ("[gpu *]\ncompute_mode = 3", {}),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_gives_its_finding_and_no_other(see, fault):
    scenario, wanted = FAULTS[fault]
    assert see(f"gpus = 4\n[gpu 0-3]\nmemory_used = 400MiB\n{scenario}\n").findings() == wanted


def test_a_healthy_machine_yields_nothing_twenty_times(see):
    for _ in range(20):
        assert see(HEALTHY).ranks(4, ["0,1,2,3"] * 4).findings() == {}


def test_other_families_of_cards_are_healthy_as_well(see):
    """What these cards cannot tell is no fault: a V100 has no row remap, a T4 no NVLink and a GeForce no ECC."""
    v100 = """
        gpus = 4
        [gpu *]
        name = Tesla V100-SXM2-32GB
        compute_capability = 7.0
        memory_used = 300MiB
        mig_mode = unsupported
        remap_pending = unsupported
        retired_single = 1
        retired_double = 0
        retired_pending = no
        nvlinks = 6
        nvlink_version = 2
        pcie_generation = 3
        pcie_generation_max = 3
        pcie_generation_card = 3
        """
    geforce = """
        gpus = 2
        [gpu *]
        name = NVIDIA GeForce RTX 4090
        compute_capability = 8.9
        memory_used = 300MiB
        mig_mode = unsupported
        ecc_mode = unsupported
        remap_pending = unsupported
        nvlinks = 0
        clock_app_graphics = unsupported
        pstate = 8
        pcie_generation = 1
        throttle_reasons = idle
        [pair *]
        topology = PHB
        p2p_read = not_supported
        p2p_write = not_supported
        """
    assert see(v100).findings() == {}
    assert see(geforce).findings() == {}


def test_what_is_seen_is_what_the_scenario_says(see):
    """Facts against the scenario, number by number; GPU 1 differs in everything that can differ."""
    seen = see(
        """
        gpus = 2
        [gpu 1]
        name = NVIDIA H100 80GB HBM3
        compute_capability = 9.0
        memory_total = 80GiB
        memory_used = 3GiB
        memory_reserved = 500MiB
        clock_sm = 900
        clock_max_sm = 1980
        clock_app_graphics = 1500
        throttle_reasons = sw_thermal
        pstate = 2
        temperature = 71
        temperature_slowdown = 88
        power_usage = 312W
        power_limit = 350W
        power_default = 700W
        ecc_corrected = 11
        ecc_uncorrected = 3
        ecc_uncorrected_sram = 2
        remap_corrected = 1
        remap_uncorrected = 2
        remap_pending = yes
        pcie_generation = 3
        pcie_width = 8
        pcie_replay = 12
        processes = 1 2GiB, 999999 1GiB graphics
        [link 1:4]
        crc_errors = 17
        replay_errors = 5
        recovery_errors = 1
        [pair 0-1]
        topology = SYS
        p2p_read = chipset_not_supported
        """
    )
    assert [gpu.compute_capability for gpu in seen.facts(Gpu)] == [(8, 0), (9, 0)]
    assert seen.facts(GpuMemory)[1] == GpuMemory(1, 80 << 30, 3 << 30, (77 << 30) - (500 << 20), 500 << 20)
    clocks = seen.facts(GpuClocks)[1]
    assert (clocks.sm_mhz, clocks.sm_max_mhz, clocks.sm_application_mhz) == (900, 1980, 1500)
    assert (clocks.throttle_bits, clocks.pstate, clocks.temperature_c, clocks.temperature_slowdown_c) == (
        0x20,
        2,
        71,
        88,
    )
    assert (clocks.power_mw, clocks.power_limit_mw, clocks.power_default_mw) == (312000, 350000, 700000)
    errors = seen.facts(GpuErrors)[1]
    assert (errors.corrected, errors.uncorrected, errors.uncorrected_sram) == (11, 5, 2)
    assert (errors.remapped_corrected, errors.remapped_uncorrected) == (1, 2)
    assert (errors.remap_pending, errors.remap_failed, errors.retired_single) == (True, False, None)
    assert seen.facts(GpuPcie)[1] == GpuPcie(1, 3, 4, 4, 8, 16, 12)
    assert [(p.pid, p.used_bytes, p.graphics) for p in seen.facts(GpuProcess)] == [
        (1, 2 << 30, False),
        (999999, 1 << 30, True),
    ]
    assert next(link for link in seen.facts(NvLink) if (link.gpu, link.link) == (1, 4)).recovery_errors == 1
    assert seen.facts(GpuPair) == [
        GpuPair(0, 1, "SYS", "chipset not supported", "ok"),
        GpuPair(1, 0, "SYS", "chipset not supported", "ok"),
    ]


def test_a_lost_gpu_is_named_and_the_others_are_seen(see):
    seen = see("gpus = 4\n[gpu *]\nmemory_used = 400MiB\n[gpu 2]\nlost_at = 1s\n", start_s=time.time() - 100)
    assert seen.findings() == {"CD219": ["node1/GPU 2"]}
    assert [fact.index for fact in seen.facts(GpuLost)] == [2]
    assert [fact.index for fact in seen.facts(GpuClocks)] == [0, 1, 3]


def test_a_call_that_blocks_for_ever_costs_its_patience_once(see):
    """Once for all four devices, side by side; everything else is seen and judged."""
    seen = see("gpus = 4\n[gpu 3]\npcie_width = 8\n[call nvmlDeviceGetRemappedRows]\nblock = forever\n")
    assert seen.took_s < DEADLINE_S
    assert seen.findings() == {"CD001": ["node1"], "CD215": ["node1/GPU 3"]}
    (blind,) = [m for m in seen.facts(Missing) if m.blind]
    assert blind.reason == "timeout"
    assert "nvmlDeviceGetRemappedRows" in blind.detail
    assert blind.kinds == ("GpuErrors",)
    assert len(seen.facts(GpuClocks)) == 4
    assert len(seen.facts(GpuPair)) == 12


def test_one_device_that_blocks_does_not_hide_the_others(see):
    seen = see("gpus = 4\n[call nvmlDeviceGetTemperature gpu 1]\nblock = forever\n")
    assert seen.findings() == {"CD001": ["node1"]}
    assert [fact.index for fact in seen.facts(GpuClocks)] == [0, 2, 3]
    assert "(GPU 1)" in next(m.detail for m in seen.facts(Missing) if m.blind)


@pytest.mark.parametrize("call", ["nvmlInit*", "nvmlSystemGetDriverVersion", "nvmlDeviceGetHandleByIndex*"])
def test_a_driver_that_hangs_at_once_is_one_finding(see, call):
    seen = see(f"gpus = 1\n[call {call}]\nblock = forever\n")
    assert seen.took_s < DEADLINE_S
    assert seen.findings() == {"CD001": ["node1"]}
    assert [m.reason for m in seen.facts(Missing) if m.blind] == ["timeout"]


def test_a_call_that_crashes_loses_what_comes_after_and_nothing_before(see):
    seen = see("gpus = 2\n[call nvmlDeviceGetTemperature]\ncrash = yes\n")
    assert seen.findings() == {"CD001": ["node1"]}
    assert len(seen.facts(GpuErrors)) == 2
    (blind,) = [m for m in seen.facts(Missing) if m.blind]
    assert (blind.reason, "SIGSEGV" in blind.detail) == ("crashed", True)
    assert "GpuClocks" in blind.kinds


def test_a_refused_call_is_told_with_its_reason(see):
    seen = see("gpus = 2\n[gpu *]\npower_usage = error(NO_PERMISSION)\n[gpu 1]\ntemperature = error(UNKNOWN)\n")
    told = {m.reason: m.detail for m in seen.facts(Missing) if m.reason in ("denied", "error")}
    assert told["denied"] == "nvmlDeviceGetPowerUsage: Insufficient Permissions (GPU 0, 1)"
    assert told["error"] == "nvmlDeviceGetTemperature: Unknown Error (GPU 1)"
    assert [c.power_mw for c in seen.facts(GpuClocks)] == [None, None]


def test_no_driver_is_absence_and_no_fault(see):
    seen = see("gpus = 1\n[call nvmlInit*]\nerror = DRIVER_NOT_LOADED\n")
    assert seen.findings() == {}
    assert [m.reason for m in seen.facts(Missing)] == ["absent"]


def test_an_odd_driver_among_nodes(see):
    usual, odd = see("gpus = 2\n"), see("gpus = 2\ndriver_version = 535.54.03\ncuda_driver_version = 12020\n")
    nodes = [usual.on("node1"), usual.on("node2"), odd.on("node3")]
    both = nodes[0]
    for other in nodes[1:]:
        both.sightings.extend(other.sightings)
    assert both.findings() == {"CD201": ["node3"]}


def test_toolkit_against_driver_and_architecture(see):
    """CUDA 12.2's row asks for 535.54.03 and its family for 525; V100 is in no toolkit from 13.0 on."""
    runtime = MappedLibrary("libcudart", "/opt/cuda/lib64/libcudart.so.12", "12.2", None)
    of = {
        driver: see(f"gpus = 1\ndriver_version = {driver}\n").plus(runtime, rank=0).findings()
        for driver in ("470.82.01", "525.60.13", "535.54.03")
    }
    assert of == {"470.82.01": {"CD204": ["node1/rank 0"]}, "525.60.13": {"CD205": ["node1/rank 0"]}, "535.54.03": {}}
    v100 = see("gpus = 1\ndriver_version = 580.65.06\n[gpu 0]\nname = Tesla V100\ncompute_capability = 7.0\n")
    new = MappedLibrary("libcudart", "/opt/cuda/lib64/libcudart.so.13", "13.0", None)
    assert v100.plus(new, rank=0).findings() == {"CD206": ["node1"]}


def test_visible_devices_against_ranks(see):
    four = see("gpus = 4\n")
    assert four.ranks(4, ["0", "1", "2", "3"]).findings() == {}
    assert four.ranks(4, ["0"] * 4).findings() == {"CD230": ["node1/ranks 0–3"]}
    assert four.ranks(4, ["0,1"] * 4).findings() == {"CD231": ["node1/ranks 0–3"]}
    assert four.ranks(2, ["0,7"] * 2).findings().keys() == {"CD230", "CD232"}
    assert four.ranks(1, ["-1"]).findings() == {"CD233": ["node1/rank 0"]}
    exclusive = see("gpus = 2\n[gpu *]\ncompute_mode = 3\n")
    assert exclusive.ranks(2).findings() == {}
    assert exclusive.ranks(4).findings() == {"CD229": ["node1"]}


def test_known_broken_nccl_only_where_it_applies(see):
    down = see("gpus = 2\n[link 0:1]\nstate = down\n")
    old, new = NcclVersion("loaded", "2.11.4"), NcclVersion("loaded", "2.12.7")
    assert down.plus(old, rank=0).findings().keys() == {"CD220", "CD310"}
    assert down.plus(new, rank=0).findings().keys() == {"CD220"}
    assert see("gpus = 2\n").plus(old, rank=0).findings() == {}
