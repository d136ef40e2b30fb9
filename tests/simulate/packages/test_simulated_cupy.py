"""The unmodified CuPy 12.3 wheel on simulated CUDA: operations, memory, devices, faults."""

import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LIBRARIES = ("nvml", "nccl", "cuda")
FOUR = "gpus = 4\n[gpu *]\nmemory_total = 2GiB\nmemory_reserved = 0\nmemory_used = 100MiB + cuda\nprocesses = cuda\n"


def cupy(made, programs, code, **environ):
    done = made.run(programs("python"), "-c", "import json, sys, cupy, numpy as np\n" + code, timeout=300, **environ)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_operations_and_chainer_functions_match_numpy(machine, programs):
    done = machine(FOUR, LIBRARIES).run(programs("python"), str(HERE / "operations.py"), timeout=900)
    assert done.returncode == 0, done.stderr
    verdicts = json.loads(done.stdout)
    assert len(verdicts) >= 60
    assert {name: verdict for name, verdict in verdicts.items() if verdict != "ok"} == {}


def test_the_comparison_can_fail(machine, programs):
    """The twin of the test above: a wrong product, by a flipped float in the device's memory, is told."""
    code = f"sys.argv = ['x', 'none']; sys.path.insert(0, {str(HERE)!r}); import operations as o\n"
    code += "print(json.dumps([o.compare(np.float32([1, 2]), np.float32([1, 2.1])), o.compare(np.arange(3), np.arange(4))]))"
    done = machine(FOUR, LIBRARIES).run(programs("python"), "-c", "import json, sys, numpy as np\n" + code, timeout=300)
    first, second = json.loads(done.stdout.splitlines()[-1])
    assert first != "ok"
    assert second != "ok"


def test_out_of_memory_at_the_scenarios_size(machine, programs):
    """2 GiB less 100 MiB that others hold: 1.8 GiB fit, 2 GiB do not, and after a free they fit again."""
    got = cupy(
        machine(FOUR, LIBRARIES),
        programs,
        """
pool = cupy.get_default_memory_pool()
free, total = cupy.cuda.runtime.memGetInfo()
block = cupy.empty(1800 << 20, "u1")
try:
    cupy.empty(300 << 20, "u1"); said = ""
except cupy.cuda.memory.OutOfMemoryError as error:
    said = str(error)
used = pool.used_bytes()
del block
pool.free_all_blocks()
again = cupy.empty(1900 << 20, "u1").nbytes
print(json.dumps([free, total, said, used, again]))
""",
    )
    free, total, said, used, again = got
    assert (free, total) == ((2048 - 100) << 20, 2048 << 20)
    assert "Out of memory allocating 314,572,800 bytes" in said
    assert used == 1800 << 20
    assert again == 1900 << 20


def test_devices_are_shared_between_processes_and_seen_by_nvml(machine, programs):
    """Another process's memory counts, also for NVML; when it is killed, its memory is back."""
    got = cupy(
        machine(FOUR, LIBRARIES),
        programs,
        """
import subprocess, pynvml
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(2)
seen = lambda: pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2).used >> 20
child = subprocess.Popen([sys.executable, "-c", "import cupy; cupy.cuda.Device(2).use(); a = cupy.empty(1500 << 20, 'u1'); print('x', flush=True); input()"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
cupy.cuda.Device(2).use()
before, pids = seen(), [p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)]
try:
    cupy.empty(600 << 20, "u1"); full = False
except cupy.cuda.memory.OutOfMemoryError:
    full = True
child.kill(); child.wait()
after = seen()
mine = cupy.empty(600 << 20, "u1")
other = pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(1), pynvml.nvmlMemory_v2).used >> 20
print(json.dumps([before, full, after, seen(), other, pids == [child.pid]]))
""",
    )
    assert got == [1600, True, 100, 700, 100, True]


def test_several_devices_peer_copies_streams_and_events(machine, programs):
    scenario = FOUR + "[pair 0-3]\np2p_read = topology_not_supported\n"
    got = cupy(
        machine(scenario, LIBRARIES),
        programs,
        """
r = cupy.cuda.runtime
a = cupy.arange(1000, dtype="f4")
with cupy.cuda.Device(1):
    b = cupy.empty_like(a)
    b.data.copy_from_device_async(a.data, a.nbytes, cupy.cuda.Stream.null)
    c = cupy.asarray(a) * 2
stream, start, end = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Event(), cupy.cuda.Event()
with stream:
    start.record(); d = a + 1; end.record()
stream.synchronize()
pinned = cupy.cuda.alloc_pinned_memory(4000)
host = np.frombuffer(pinned, "f4", 1000); a.get(out=host)
try:
    r.deviceEnablePeerAccess(3); refused = False
except r.CUDARuntimeError as error:
    refused = "PeerAccessUnsupported" in str(error)
print(json.dumps([r.getDeviceCount(), bool((b.get() == np.arange(1000)).all()), int(c.device.id), float(c.sum()), float(d.sum()),
    cupy.cuda.get_elapsed_time(start, end) >= 0, bool((host == np.arange(1000)).all()), r.deviceCanAccessPeer(0, 1),
    r.deviceCanAccessPeer(0, 3), refused, r.deviceGetPCIBusId(2), r.deviceGetByPCIBusId("0000:17:00.0"),
    r.getDeviceProperties(0)["multiProcessorCount"], r.getDeviceProperties(1)["pciBusID"], r.getDeviceProperties(0)["major"],
    r.getDeviceProperties(0)["totalGlobalMem"], r.getDeviceProperties(0)["maxThreadsPerMultiProcessor"]]))
""",
    )
    assert got == [4, True, 1, 999000.0, 500500.0, True, True, 1, 0, True, "0000:17:00.0", 2, 108, 15, 8, 2 << 30, 2048]


def test_visible_devices(machine, programs):
    made = machine(FOUR, LIBRARIES)
    code = "r = cupy.cuda.runtime\nprint(json.dumps([r.deviceGetPCIBusId(i)[5:7] for i in range(r.getDeviceCount())]))"
    assert cupy(made, programs, code, CUDA_VISIBLE_DEVICES="2,0") == ["17", "07"]
    assert cupy(made, programs, code, CUDA_VISIBLE_DEVICES="GPU-5111a7ed-0000-4000-8000-000000000003") == ["1F"]
    assert cupy(made, programs, code, CUDA_VISIBLE_DEVICES="1,9,0") == ["0F"]


RAW = r'''
source = r"""
extern "C" __global__ void scale(const float *x, float *y, int n, float by) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) y[i] = x[i] * by;
}
extern "C" __global__ void reverse(int *x) {
    extern __shared__ int temp[];
    temp[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = temp[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void warp(const int *x, int *out) {
    int v = x[threadIdx.x];
    for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
    unsigned odd = __ballot_sync(0xffffffff, x[threadIdx.x] & 1);
    if (threadIdx.x % 32 == 0) { out[threadIdx.x / 32] = v; out[2 + threadIdx.x / 32] = __popc(odd); }
}
template <typename T> __global__ void twice(T *x) { x[threadIdx.x] *= 2; }
"""
module = cupy.RawModule(code=source, options=("-std=c++11",), name_expressions=["twice<double>"])
x = cupy.arange(1000, dtype="f4"); y = cupy.zeros_like(x)
module.get_function("scale")((8,), (128,), (x, y, np.int32(1000), np.float32(3)))
z = cupy.arange(256, dtype="i4"); module.get_function("reverse")((1,), (256,), (z,), shared_mem=1024)
w = cupy.arange(64, dtype="i4"); out = cupy.zeros(4, "i4"); module.get_function("warp")((1,), (64,), (w, out))
d = cupy.arange(10, dtype="f8"); module.get_function("twice<double>")((1,), (10,), (d,))
@cupy.fuse()
def fused(a, b):
    return cupy.sum(a * b + 1)
try:
    cupy.RawKernel('extern "C" __global__ void f() { nonsense; }', "f")((1,), (1,), ()); said = ""
except cupy.cuda.compiler.CompileException as error:
    said = str(error)
print(json.dumps([bool((y.get() == np.arange(1000) * 3).all()), z.get().tolist() == list(range(255, -1, -1)), out.get().tolist(),
    d.get().tolist(), "nonsense" in said, fused(x, x).item()]))
'''


def test_raw_kernels_shared_memory_warps_templates_and_errors(machine, programs):
    got = cupy(machine(FOUR, LIBRARIES), programs, RAW)
    assert got == [
        True,
        True,
        [496, 1520, 16, 16],
        [2.0 * i for i in range(10)],
        True,
        pytest.approx(332834500.0, rel=1e-6),
    ]


def test_the_same_without_the_assembler_switch(machine, programs):
    """Fibers over ucontext, as on processors other than x86-64."""
    made = machine(FOUR, LIBRARIES)
    made.variables["CHAINERDOCTOR_SIM_CXX"] = _compiler_with(made, "-DSIM_UCONTEXT")
    made.variables["CHAINERDOCTOR_SIM_KERNELS"] = str(made.shared)
    assert cupy(made, programs, RAW)[2] == [496, 1520, 16, 16]


def _compiler_with(made, flag):
    script = made.shared / "cxx"
    script.write_text(f'#!/bin/sh\nexec {made.variables["CHAINERDOCTOR_SIM_CXX"]} {flag} "$@"\n')
    script.chmod(0o755)
    return str(script)


@pytest.mark.parametrize(
    ("section", "code", "said"),
    [
        (
            "[call cudaMalloc gpu 1]\nerror = cudaErrorECCUncorrectable",
            "cupy.cuda.Device(1).use(); cupy.zeros(3)",
            "ECCUncorrectable",
        ),
        ("[call cuLaunchKernel]\nerror = cudaErrorLaunchFailure", "cupy.arange(3) + 1", "LAUNCH_FAILED"),
        ("[gpu 1]\nlost_at = 0s", "cupy.cuda.Device(1).use(); cupy.cuda.Device(1).synchronize()", "Unknown"),
        (
            "[call cudaGetDeviceCount]\nerror = cudaErrorInsufficientDriver",
            "cupy.cuda.runtime.getDeviceCount()",
            "InsufficientDriver",
        ),
    ],
)
def test_faults_in_cuda(machine, programs, section, code, said):
    made = machine("gpus = 2\n" + section + "\n", LIBRARIES)
    done = made.run(programs("python"), "-c", f"import cupy\n{code}", timeout=300)
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]


def test_what_is_not_simulated_is_refused_by_name(machine, programs):
    done = machine(FOUR, LIBRARIES).run(
        programs("python"), "-c", "import cupy; cupy.fft.fft(cupy.arange(8.0))", timeout=300
    )
    assert done.returncode == 1
    assert "chainerdoctor simulation: cufft" in done.stderr
    assert "is not simulated" in done.stderr


def test_nccl_through_cupys_communicator(machine, programs):
    """Two threads of one process, two devices, device arrays: CuPy's unmodified NcclCommunicator."""
    got = cupy(
        machine(FOUR, LIBRARIES),
        programs,
        """
import threading
from cupy.cuda import nccl
identity, out = nccl.get_unique_id(), {}
def rank(r):
    cupy.cuda.Device(r).use()
    comm = nccl.NcclCommunicator(3, identity, r)
    for name, number in (("f2", nccl.NCCL_FLOAT16), ("f4", nccl.NCCL_FLOAT32), ("f8", nccl.NCCL_FLOAT64), ("i8", nccl.NCCL_INT64)):
        x = cupy.full(1001, r + 1, name); y = cupy.zeros_like(x)
        comm.allReduce(x.data.ptr, y.data.ptr, 1001, number, nccl.NCCL_SUM, cupy.cuda.Stream.null.ptr)
        out[r, name] = float(y.min()) == float(y.max()) == 6.0
    out[r, "rank"] = comm.rank_id() == r and comm.size() == 3
threads = [threading.Thread(target=rank, args=(r,)) for r in range(3)]
[t.start() for t in threads]; [t.join() for t in threads]
comms = nccl.NcclCommunicator.initAll([0, 1])
print(json.dumps([all(out.values()), len(out), nccl.get_version(), [c.rank_id() for c in comms]]))
""",
    )
    assert got == [True, 15, 22005, [0, 1]]


def test_two_ranks_on_one_gpu_are_told_as_nccl_does(machine, programs):
    code = """
import threading
from cupy.cuda import nccl
identity, said = nccl.get_unique_id(), []
def rank(r):
    cupy.cuda.Device(0).use()
    try:
        nccl.NcclCommunicator(2, identity, r)
    except nccl.NcclError as error:
        said.append(str(error))
threads = [threading.Thread(target=rank, args=(r,)) for r in range(2)]
[t.start() for t in threads]; [t.join() for t in threads]
print(json.dumps(said))
"""
    said = cupy(machine(FOUR, LIBRARIES), programs, code)
    assert len(said) == 2
    assert all("INVALID_USAGE" in text for text in said)


def test_ranks_that_want_one_kernel_compile_it_once(machine, programs):
    """Eight processes at once on an empty cache: one object file for each kernel, no part files."""
    made = machine(FOUR, LIBRARIES)
    made.variables["CHAINERDOCTOR_SIM_KERNELS"] = str(made.shared)
    code = "import cupy; print(float((cupy.arange(10.0) * 3).sum()))"
    import subprocess

    children = [
        subprocess.Popen([programs("python"), "-c", code], env=made.environ(), stdout=subprocess.PIPE) for _ in range(8)
    ]
    assert {child.communicate(timeout=300)[0] for child in children} == {b"135.0\n"}
    left = [path.name for path in made.shared.iterdir() if not path.name.startswith("gpu")]
    assert left
    assert all(name.endswith(".so") for name in left), left


def test_a_cuda_runtime_of_ones_own_is_refused_in_one_line(machine, programs):
    """CuPy 13 and later link the CUDA runtime statically; it asks the driver for its entry points like this."""
    code = (
        "import ctypes; entry = ctypes.c_void_p(); cuda = ctypes.CDLL('libcuda.so.1')\n"
        "for _ in range(2): print(cuda.cuGetProcAddress_v2(b'cuInit', ctypes.byref(entry), 12000, ctypes.c_ulonglong(0), None), entry.value)"
    )
    done = machine(FOUR, LIBRARIES).run(programs("python"), "-c", code)
    assert done.stdout == "801 None\n801 None\n"
    assert done.stderr.count("simulated GPUs need CuPy 12.3: pip install cupy-cuda12x==12.3.0") == 1
