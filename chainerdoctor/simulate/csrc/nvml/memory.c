/* Simulated NVML: memory, its errors, and the processes that use it. */
#include "nvml.h"

#include <string.h>
#include <time.h>

struct nvml_memory {
    unsigned long long total, free, used;
};
struct nvml_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
enum { MEMORY_V2 = 0x2000028 };

static int memory(nvml_device device, uint64_t *total, uint64_t *reserved, uint64_t *used)
{
    READ(device, memory_total, *total);
    READ(device, memory_reserved, *reserved);
    READ(device, memory_used, *used);
    if (*reserved > *total)
        *reserved = *total;
    if (*used > *total - *reserved)
        *used = *total - *reserved;
    return NVML_OK;
}
/* The first version counts the reserved part as used, the second does not. */
SIM_EXPORT int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *out)
{
    nvml_device parent;
    struct sim_mig *mig = sim_scenario() ? nvml_mig(device, &parent) : NULL;
    uint64_t total, reserved, used;
    if (mig) {
        ENTER_DEVICE(parent);
        *out = (struct nvml_memory){mig->bytes_total, mig->bytes_total - mig->bytes_used, mig->bytes_used};
        return NVML_OK;
    }
    ENTER_DEVICE(device);
    int code = memory(device, &total, &reserved, &used);
    if (!code)
        *out = (struct nvml_memory){total, total - reserved - used, used + reserved};
    return code;
}
SIM_EXPORT int nvmlDeviceGetMemoryInfo_v2(nvml_device device, struct nvml_memory_v2 *out)
{
    nvml_device parent;
    struct sim_mig *mig = sim_scenario() ? nvml_mig(device, &parent) : NULL;
    uint64_t total, reserved, used;
    if (out->version != MEMORY_V2)
        return NVML_VERSION_MISMATCH;
    if (mig) {
        ENTER_DEVICE(parent);
        *out = (struct nvml_memory_v2){MEMORY_V2, mig->bytes_total, 0, mig->bytes_total - mig->bytes_used, mig->bytes_used};
        return NVML_OK;
    }
    ENTER_DEVICE(device);
    int code = memory(device, &total, &reserved, &used);
    if (!code)
        *out = (struct nvml_memory_v2){MEMORY_V2, total, reserved, total - reserved - used, used};
    return code;
}
SIM_EXPORT int nvmlDeviceGetBAR1MemoryInfo(nvml_device device, struct nvml_memory *out)
{
    ENTER_DEVICE(device);
    READ(device, bar1_total, out->total);
    READ(device, bar1_used, out->used);
    out->free = out->total > out->used ? out->total - out->used : 0;
    return NVML_OK;
}

enum { CORRECTED, UNCORRECTED };
enum { SINCE_LOAD, EVER };
enum { DRAM = 2, SRAM = 7 };

static int ecc_on(nvml_device device)
{
    unsigned mode;
    READ(device, ecc_mode, mode);
    return mode ? NVML_OK : NVML_NOT_SUPPORTED;
}
SIM_EXPORT int nvmlDeviceGetMemoryErrorCounter(nvml_device device, int type, int counter, int location, unsigned long long *out)
{
    ENTER_DEVICE(device);
    int code = ecc_on(device);
    if (code)
        return code;
    if (type < CORRECTED || type > UNCORRECTED || counter < SINCE_LOAD || counter > EVER)
        return NVML_INVALID_ARGUMENT;
    if (location == DRAM && type == UNCORRECTED && counter == SINCE_LOAD)
        READ(device, ecc_uncorrected, *out);
    else if (location == DRAM && type == UNCORRECTED)
        READ(device, ecc_uncorrected_ever, *out);
    else if (location == DRAM && counter == SINCE_LOAD)
        READ(device, ecc_corrected, *out);
    else if (location == DRAM)
        READ(device, ecc_corrected_ever, *out);
    else if (location == SRAM && type == UNCORRECTED && counter == SINCE_LOAD)
        READ(device, ecc_uncorrected_sram, *out);
    else if (location == SRAM && type == UNCORRECTED)
        READ(device, ecc_uncorrected_sram_ever, *out);
    else if (location == SRAM)
        *out = 0; /* the scenario's corrected errors are all in DRAM */
    else
        return NVML_NOT_SUPPORTED;
    return NVML_OK;
}
SIM_EXPORT int nvmlDeviceGetTotalEccErrors(nvml_device device, int type, int counter, unsigned long long *out)
{
    ENTER_DEVICE(device);
    unsigned long long dram = 0, sram = 0;
    int code = nvmlDeviceGetMemoryErrorCounter(device, type, counter, DRAM, &dram);
    if (!code)
        code = nvmlDeviceGetMemoryErrorCounter(device, type, counter, SRAM, &sram);
    if (!code)
        *out = dram + sram;
    return code;
}
SIM_EXPORT int nvmlDeviceGetRemappedRows(nvml_device device, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failure)
{
    ENTER_DEVICE(device);
    READ(device, remap_corrected, *corrected);
    READ(device, remap_uncorrected, *uncorrected);
    READ(device, remap_pending, *pending);
    READ(device, remap_failure, *failure);
    return NVML_OK;
}
SIM_EXPORT int nvmlDeviceGetRetiredPages(nvml_device device, int cause, unsigned *count, unsigned long long *addresses)
{
    ENTER_DEVICE(device);
    unsigned pages = 0, room = *count;
    if (cause == 0)
        READ(device, retired_single, pages);
    else if (cause == 1)
        READ(device, retired_double, pages);
    else
        return NVML_INVALID_ARGUMENT;
    *count = pages;
    if (pages > room)
        return NVML_INSUFFICIENT_SIZE;
    for (unsigned i = 0; addresses && i < pages; i++)
        addresses[i] = 0x10000ull * (i + 1);
    return NVML_OK;
}
SIM_EXPORT int nvmlDeviceGetRetiredPagesPendingStatus(nvml_device device, unsigned *out)
{
    ENTER_DEVICE(device);
    READ(device, retired_pending, *out);
    return NVML_OK;
}

struct nvml_process { /* the same bytes in the calls' versions 2 and 3 */
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
};
enum { NO_INSTANCE = ~0u };

/* Those that the scenario names, and with `processes = cuda` those that hold simulated CUDA memory. */
static unsigned list_processes(nvml_device device, int graphics, struct nvml_process *out, unsigned room)
{
    unsigned count = 0;
    for (int i = 0; i < device->processes; i++) {
        if (device->process[i].graphics != graphics)
            continue;
        if (count < room)
            out[count] = (struct nvml_process){device->process[i].pid, device->process[i].bytes, NO_INSTANCE, NO_INSTANCE};
        count++;
    }
    struct sim_board *board = device->cuda_processes && !graphics ? sim_board(device->index) : NULL;
    for (int i = 0; board && i < SIM_GPUS; i++) {
        const struct sim_user *user = &board->user[i];
        if (!user->pid || sim_process_start(user->pid) != user->start)
            continue;
        if (count < room)
            out[count] = (struct nvml_process){user->pid, user->bytes, NO_INSTANCE, NO_INSTANCE};
        count++;
    }
    return count;
}
static int processes(const char *call, nvml_device device, int graphics, unsigned *count, struct nvml_process *out)
{
    int code = nvml_enter_device(call, device);
    if (code)
        return code;
    unsigned room = out ? *count : 0;
    *count = list_processes(device, graphics, out, room);
    return *count > room ? NVML_INSUFFICIENT_SIZE : NVML_OK;
}
SIM_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *count, struct nvml_process *out)
{
    return processes(__func__, device, 0, count, out);
}
SIM_EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(nvml_device device, unsigned *count, struct nvml_process *out)
{
    return processes(__func__, device, 0, count, out);
}
SIM_EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(nvml_device device, unsigned *count, struct nvml_process *out)
{
    return processes(__func__, device, 1, count, out);
}
SIM_EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v2(nvml_device device, unsigned *count, struct nvml_process *out)
{
    return processes(__func__, device, 1, count, out);
}
SIM_EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v3(nvml_device device, unsigned *count, struct nvml_process *out)
{
    (void)out;
    ENTER_DEVICE(device);
    *count = 0;
    return NVML_OK;
}

struct nvml_process_utilization {
    unsigned pid;
    unsigned long long timestamp_us;
    unsigned sm, memory, encoder, decoder;
};
/* The device's load, shared evenly by its compute processes. */
SIM_EXPORT int nvmlDeviceGetProcessUtilization(nvml_device device, struct nvml_process_utilization *out, unsigned *count, unsigned long long since)
{
    (void)since;
    ENTER_DEVICE(device);
    struct nvml_process running[SIM_PROCESSES + SIM_GPUS];
    unsigned room = out ? *count : 0, found = list_processes(device, 0, running, SIM_PROCESSES + SIM_GPUS), sm, mem;
    *count = found;
    if (!found)
        return NVML_NOT_FOUND;
    if (found > room)
        return NVML_INSUFFICIENT_SIZE;
    READ(device, util_gpu, sm);
    READ(device, util_memory, mem);
    unsigned long long now_us = (unsigned long long)time(NULL) * 1000000;
    for (unsigned i = 0; i < found; i++)
        out[i] = (struct nvml_process_utilization){running[i].pid, now_us, sm / found, mem / found, 0, 0};
    return NVML_OK;
}
