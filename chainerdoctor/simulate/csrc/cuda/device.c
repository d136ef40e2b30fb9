/* Simulated CUDA runtime: devices, versions, errors, peer access. */
#define _GNU_SOURCE
#include "cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static __thread int current_device;
static __thread int last_error;

/* CUDA_VISIBLE_DEVICES: indices or beginnings of UUIDs; the list ends at the first entry that names no device. */
static int visible(int place)
{
    const struct scenario *machine = sim_scenario();
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    char copy[1024], *rest;
    if (!machine)
        return -1;
    if (!list)
        return place < machine->gpus ? place : -1;
    snprintf(copy, sizeof copy, "%s", list);
    for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest), place--) {
        char *end;
        long index = strtol(word, &end, 10);
        if (end == word || *end) {
            for (index = 0; index < machine->gpus; index++)
                if (!strncasecmp(machine->gpu[index].text[SIM_uuid], word, strlen(word)))
                    break;
        }
        if (index < 0 || index >= machine->gpus)
            return -1;
        if (!place)
            return (int)index;
    }
    return -1;
}

int cuda_device_count(void)
{
    int count = 0;
    while (count < SIM_GPUS && visible(count) >= 0)
        count++;
    return count;
}
const struct sim_gpu *cuda_gpu(int device)
{
    int index = device < 0 ? -1 : visible(device);
    return index < 0 ? NULL : &sim_scenario()->gpu[index];
}
int cuda_current(void)
{
    return current_device;
}
int cuda_set_current(int device)
{
    if (!cuda_gpu(device))
        return CUDA_INVALID_DEVICE;
    current_device = device;
    return CUDA_OK;
}
int cuda_note(int error)
{
    if (error)
        last_error = error;
    return error;
}
int cuda_fault(const char *call)
{
    const struct scenario *machine = sim_scenario();
    if (!machine)
        return CUDA_NOT_INITIALIZED;
    const struct sim_gpu *gpu = cuda_gpu(current_device);
    int code = machine->faults ? sim_fault(call, gpu ? gpu->index : -1, -1) : 0;
    if (!code && gpu && sim_lost(gpu))
        code = CUDA_UNKNOWN; /* what a program sees when its GPU has fallen off the bus */
    return code;
}

void cuda_refuse(const char *function)
{
    static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    static const char *told[1024]; /* more than there are such functions */
    static int count;
    int known = 0;
    pthread_mutex_lock(&gate);
    for (int i = 0; i < count; i++)
        known |= told[i] == function;
    if (!known && count < (int)(sizeof told / sizeof *told))
        told[count++] = function;
    pthread_mutex_unlock(&gate);
    if (!known)
        fprintf(stderr, "chainerdoctor simulation: %s is not simulated\n", function);
}

SIM_EXPORT int cudaGetDeviceCount(int *out)
{
    ENTER();
    *out = cuda_device_count();
    return *out ? CUDA_OK : cuda_note(CUDA_NO_DEVICE);
}
SIM_EXPORT int cudaGetDevice(int *out)
{
    *out = current_device;
    return CUDA_OK;
}
SIM_EXPORT int cudaSetDevice(int device)
{
    ENTER();
    return cuda_note(cuda_set_current(device));
}
SIM_EXPORT int cudaDriverGetVersion(int *out)
{
    ENTER();
    *out = atoi(sim_scenario()->system[SIM_cuda_driver_version]);
    return CUDA_OK;
}
SIM_EXPORT int cudaRuntimeGetVersion(int *out)
{
    ENTER();
    *out = atoi(sim_scenario()->system[SIM_cuda_runtime_version]);
    return CUDA_OK;
}
SIM_EXPORT int cudaDeviceSynchronize(void)
{
    ENTER();
    return CUDA_OK;
}
SIM_EXPORT int cudaGetLastError(void)
{
    int error = last_error;
    last_error = CUDA_OK;
    return error;
}
SIM_EXPORT int cudaPeekAtLastError(void)
{
    return last_error;
}

static const struct {
    int code;
    const char *runtime_name, *driver_name, *text;
} errors[] = {
    {CUDA_OK, "cudaSuccess", "CUDA_SUCCESS", "no error"},
    {CUDA_INVALID_VALUE, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_OUT_OF_MEMORY, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_NOT_INITIALIZED, "cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_INSUFFICIENT_DRIVER, "cudaErrorInsufficientDriver", "CUDA_ERROR_STUB_LIBRARY", "CUDA driver version is insufficient for CUDA runtime version"},
    {46, "cudaErrorDevicesUnavailable", "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {CUDA_NO_DEVICE, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_INVALID_DEVICE, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_INVALID_IMAGE, "cudaErrorInvalidKernelImage", "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {214, "cudaErrorECCUncorrectable", "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {CUDA_PEER_UNSUPPORTED, "cudaErrorPeerAccessUnsupported", "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported between these two devices"},
    {220, "cudaErrorNvlinkUncorrectable", "CUDA_ERROR_NVLINK_UNCORRECTABLE", "uncorrectable NVLink error detected during the execution"},
    {CUDA_INVALID_HANDLE, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_NOT_FOUND, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_NOT_READY, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CUDA_PEER_ALREADY_ENABLED, "cudaErrorPeerAccessAlreadyEnabled", "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {CUDA_PEER_NOT_ENABLED, "cudaErrorPeerAccessNotEnabled", "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
    {CUDA_LAUNCH_FAILED, "cudaErrorLaunchFailure", "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_NOT_SUPPORTED, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {802, "cudaErrorSystemNotReady", "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {CUDA_UNKNOWN, "cudaErrorUnknown", "CUDA_ERROR_UNKNOWN", "unknown error"},
};
static int error_row(int code)
{
    int last = (int)(sizeof errors / sizeof *errors) - 1;
    for (int i = 0; i < last; i++)
        if (errors[i].code == code)
            return i;
    return last;
}
SIM_EXPORT const char *cudaGetErrorName(int code)
{
    return errors[error_row(code)].runtime_name;
}
SIM_EXPORT const char *cudaGetErrorString(int code)
{
    return errors[error_row(code)].text;
}
SIM_EXPORT int cuGetErrorName(int code, const char **out)
{
    *out = errors[error_row(code)].driver_name;
    return CUDA_OK;
}
SIM_EXPORT int cuGetErrorString(int code, const char **out)
{
    *out = errors[error_row(code)].text;
    return CUDA_OK;
}

static void capability(const struct sim_gpu *gpu, int *major, int *minor)
{
    if (sscanf(gpu->text[SIM_compute_capability], "%d.%d", major, minor) != 2)
        *major = *minor = 0;
}
static unsigned bus_number(const struct sim_gpu *gpu, unsigned *domain, unsigned *slot)
{
    unsigned bus = 0;
    if (sscanf(gpu->text[SIM_bus_id], "%x:%x:%x", domain, &bus, slot) != 3)
        *domain = *slot = 0;
    return bus;
}
static int number(const struct sim_gpu *gpu, enum sim_number key)
{
    uint64_t value = 0;
    return sim_value(gpu, key, &value) ? 0 : (int)value;
}

/* cudaDeviceProp of CUDA 12 (driver_types.h); the texture and surface limits are one array here. */
struct cuda_properties {
    char name[256];
    char uuid[16];
    char luid[8];
    unsigned luid_node_mask;
    size_t total_memory, shared_per_block;
    int registers_per_block, warp_size;
    size_t memory_pitch;
    int threads_per_block, block_dimensions[3], grid_dimensions[3], clock_khz;
    size_t constant_memory;
    int major, minor;
    size_t texture_alignment, texture_pitch_alignment;
    int overlap, multiprocessors, timeout, integrated, map_host_memory, compute_mode;
    int texture_and_surface_limits[40];
    size_t surface_alignment;
    int concurrent_kernels, ecc, bus, slot, domain, tcc, copy_engines, unified_addressing, memory_clock_khz, memory_bus_width;
    int l2_size, persisting_l2, threads_per_multiprocessor, stream_priorities, global_l1, local_l1;
    size_t shared_per_multiprocessor;
    int registers_per_multiprocessor, managed, multi_board, board_group, native_atomics, double_ratio, pageable;
    int concurrent_managed, preemption, host_pointer_for_registered, cooperative, cooperative_multi;
    size_t shared_per_block_optin;
    int pageable_tables, direct_managed, blocks_per_multiprocessor, policy_window;
    size_t reserved_shared;
    int host_register, sparse_arrays, host_register_read_only, timeline, memory_pools, rdma;
    unsigned rdma_flush;
    int rdma_ordering;
    unsigned pool_handles;
    int deferred_arrays, ipc_events, clusters, unified_functions, reserved2[2], reserved[61];
};
_Static_assert(sizeof(struct cuda_properties) == 1032, "cudaDeviceProp of CUDA 12 has 1032 bytes");

enum { SHARED_PER_BLOCK = 49152, SHARED_OPTIN = 166912, SHARED_PER_SM = 167936, REGISTERS = 65536, THREADS = 1024, THREADS_PER_SM = 2048, L2_BYTES = 40 << 20 };

SIM_EXPORT int cudaGetDeviceProperties_v2(struct cuda_properties *out, int device)
{
    ENTER();
    const struct sim_gpu *gpu = cuda_gpu(device);
    unsigned domain, slot, bytes[16];
    uint64_t memory = 0;
    if (!gpu)
        return cuda_note(CUDA_INVALID_DEVICE);
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", gpu->text[SIM_name]);
    const char *uuid = gpu->text[SIM_uuid];
    if (sscanf(uuid, "GPU-%2x%2x%2x%2x-%2x%2x-%2x%2x-%2x%2x-%2x%2x%2x%2x%2x%2x", bytes, bytes + 1, bytes + 2, bytes + 3, bytes + 4, bytes + 5, bytes + 6, bytes + 7, bytes + 8, bytes + 9, bytes + 10, bytes + 11, bytes + 12, bytes + 13, bytes + 14, bytes + 15) == 16)
        for (int i = 0; i < 16; i++)
            out->uuid[i] = (char)bytes[i];
    if (sim_value(gpu, SIM_memory_total, &memory))
        return cuda_note(CUDA_UNKNOWN);
    out->total_memory = memory;
    out->shared_per_block = SHARED_PER_BLOCK;
    out->shared_per_block_optin = SHARED_OPTIN;
    out->shared_per_multiprocessor = SHARED_PER_SM;
    out->registers_per_block = out->registers_per_multiprocessor = REGISTERS;
    out->warp_size = 32;
    out->memory_pitch = 0x7fffffff;
    out->threads_per_block = THREADS;
    out->block_dimensions[0] = out->block_dimensions[1] = THREADS;
    out->block_dimensions[2] = 64;
    out->grid_dimensions[0] = 0x7fffffff;
    out->grid_dimensions[1] = out->grid_dimensions[2] = 65535;
    out->clock_khz = number(gpu, SIM_clock_max_sm) * 1000;
    out->memory_clock_khz = number(gpu, SIM_clock_max_memory) * 1000;
    out->memory_bus_width = number(gpu, SIM_memory_bus_width);
    out->constant_memory = 65536;
    capability(gpu, &out->major, &out->minor);
    out->texture_alignment = out->surface_alignment = 512;
    out->multiprocessors = number(gpu, SIM_multiprocessors);
    out->compute_mode = number(gpu, SIM_compute_mode);
    out->ecc = number(gpu, SIM_ecc_mode);
    out->bus = (int)bus_number(gpu, &domain, &slot);
    out->slot = (int)slot;
    out->domain = (int)domain;
    out->concurrent_kernels = out->map_host_memory = out->unified_addressing = out->managed = out->overlap = 1;
    out->copy_engines = 3;
    out->l2_size = L2_BYTES;
    out->threads_per_multiprocessor = THREADS_PER_SM;
    out->blocks_per_multiprocessor = 32;
    return CUDA_OK;
}

SIM_EXPORT int cudaDeviceGetAttribute(int *out, int attribute, int device)
{
    ENTER();
    const struct sim_gpu *gpu = cuda_gpu(device);
    int major = 0, minor = 0;
    unsigned domain, slot;
    if (!gpu)
        return cuda_note(CUDA_INVALID_DEVICE);
    capability(gpu, &major, &minor);
    /* numbers: enum cudaDeviceAttr */
    const struct {
        int attribute, value;
    } known[] = {
        {1, THREADS}, {2, THREADS}, {3, THREADS}, {4, 64}, {5, 0x7fffffff}, {6, 65535}, {7, 65535}, {8, SHARED_PER_BLOCK},
        {9, 65536}, {10, 32}, {11, 0x7fffffff}, {12, REGISTERS}, {13, number(gpu, SIM_clock_max_sm) * 1000}, {14, 512}, {15, 1},
        {16, number(gpu, SIM_multiprocessors)}, {19, 1}, {20, number(gpu, SIM_compute_mode)}, {29, 512}, {31, 1},
        {32, number(gpu, SIM_ecc_mode)}, {33, (int)bus_number(gpu, &domain, &slot)}, {34, (int)slot}, {36, number(gpu, SIM_clock_max_memory) * 1000},
        {37, number(gpu, SIM_memory_bus_width)}, {38, L2_BYTES}, {39, THREADS_PER_SM}, {40, 3}, {41, 1}, {50, (int)domain}, {51, 32},
        {75, major}, {76, minor}, {81, SHARED_PER_SM}, {82, REGISTERS}, {83, 1}, {97, SHARED_OPTIN}, {106, 32},
    };
    *out = 0; /* what is not named here the simulated device does not have: memory pools, cooperative launch, textures… */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].attribute == attribute)
            *out = known[i].value;
    return CUDA_OK;
}

SIM_EXPORT int cudaDeviceGetPCIBusId(char *out, int size, int device)
{
    ENTER();
    const struct sim_gpu *gpu = cuda_gpu(device);
    unsigned domain, slot;
    if (!gpu)
        return cuda_note(CUDA_INVALID_DEVICE);
    unsigned bus = bus_number(gpu, &domain, &slot);
    return snprintf(out, (size_t)size, "%04X:%02X:%02X.0", domain, bus, slot) < size ? CUDA_OK : cuda_note(CUDA_INVALID_VALUE);
}
SIM_EXPORT int cudaDeviceGetByPCIBusId(int *out, const char *address)
{
    ENTER();
    unsigned domain, bus, slot, own_domain, own_slot;
    if (sscanf(address, "%x:%x:%x", &domain, &bus, &slot) != 3)
        return cuda_note(CUDA_INVALID_VALUE);
    for (int device = 0; device < cuda_device_count(); device++)
        if (bus_number(cuda_gpu(device), &own_domain, &own_slot) == bus && own_domain == domain && own_slot == slot) {
            *out = device;
            return CUDA_OK;
        }
    return cuda_note(CUDA_INVALID_DEVICE);
}

static int peers(int from, int to, int *allowed)
{
    const struct sim_gpu *a = cuda_gpu(from), *b = cuda_gpu(to);
    if (!a || !b)
        return CUDA_INVALID_DEVICE;
    *allowed = a != b && !sim_scenario()->pair[a->index][b->index].p2p[0] && !sim_scenario()->pair[a->index][b->index].p2p[1];
    return CUDA_OK;
}
SIM_EXPORT int cudaDeviceCanAccessPeer(int *out, int device, int peer)
{
    ENTER();
    return cuda_note(peers(device, peer, out));
}
static char peer_enabled[SIM_GPUS][SIM_GPUS];
SIM_EXPORT int cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    int allowed;
    ENTER();
    if (flags)
        return cuda_note(CUDA_INVALID_VALUE);
    int code = peers(current_device, peer, &allowed);
    if (!code && !allowed)
        code = CUDA_PEER_UNSUPPORTED;
    if (!code && __atomic_exchange_n(&peer_enabled[current_device][peer], 1, __ATOMIC_RELAXED))
        code = CUDA_PEER_ALREADY_ENABLED;
    return cuda_note(code);
}
SIM_EXPORT int cudaDeviceDisablePeerAccess(int peer)
{
    ENTER();
    if (!cuda_gpu(peer))
        return cuda_note(CUDA_INVALID_DEVICE);
    return cuda_note(__atomic_exchange_n(&peer_enabled[current_device][peer], 0, __ATOMIC_RELAXED) ? CUDA_OK : CUDA_PEER_NOT_ENABLED);
}
SIM_EXPORT int cudaProfilerStart(void)
{
    return CUDA_OK;
}
SIM_EXPORT int cudaProfilerStop(void)
{
    return CUDA_OK;
}
