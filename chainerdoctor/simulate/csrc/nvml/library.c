/* Simulated libnvidia-ml.so.1: start and end, errors, the system, and how devices are found. */
#include "nvml.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int users;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

/* sim_scenario hands out a const machine; handles are not const in NVML's API, and nothing here writes through them. */
static struct sim_gpu *gpus(void)
{
    return (struct sim_gpu *)sim_scenario()->gpu;
}

int nvml_enter(const char *call)
{
    int code = sim_fault(call, -1, -1);
    if (code)
        return code;
    return users ? NVML_OK : NVML_UNINITIALIZED;
}

struct sim_mig *nvml_mig(nvml_device handle, nvml_device *parent)
{
    const char *at = (const char *)handle;
    for (int i = 0; i < sim_scenario()->gpus; i++) {
        struct sim_gpu *gpu = gpus() + i;
        for (int k = 0; k < gpu->migs; k++)
            if (at == (const char *)&gpu->mig[k]) {
                *parent = gpu;
                return &gpu->mig[k];
            }
    }
    return NULL;
}

static int is_device(nvml_device device)
{
    for (int i = 0; i < sim_scenario()->gpus; i++)
        if (device == gpus() + i)
            return 1;
    return 0;
}

int nvml_enter_device(const char *call, nvml_device device)
{
    nvml_device parent;
    if (!users)
        return NVML_UNINITIALIZED;
    if (!is_device(device))
        return device && nvml_mig(device, &parent) ? NVML_NOT_SUPPORTED : NVML_INVALID_ARGUMENT;
    int code = sim_fault(call, device->index, -1);
    if (code)
        return code;
    return sim_lost(device) ? NVML_GPU_IS_LOST : NVML_OK;
}

int nvml_copy_text(char *out, unsigned size, const char *text)
{
    if (strlen(text) + 1 > size)
        return NVML_INSUFFICIENT_SIZE;
    strcpy(out, text);
    return NVML_OK;
}

static int start(const char *call)
{
    if (!sim_scenario())
        return NVML_DRIVER_NOT_LOADED;
    int code = sim_fault(call, -1, -1);
    if (code)
        return code;
    pthread_mutex_lock(&gate);
    users++;
    pthread_mutex_unlock(&gate);
    return NVML_OK;
}
SIM_EXPORT int nvmlInit_v2(void)
{
    return start(__func__);
}
SIM_EXPORT int nvmlInit(void)
{
    return start(__func__);
}
SIM_EXPORT int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return start(__func__);
}
SIM_EXPORT int nvmlShutdown(void)
{
    ENTER();
    pthread_mutex_lock(&gate);
    int code = users ? NVML_OK : NVML_UNINITIALIZED;
    if (users)
        users--;
    pthread_mutex_unlock(&gate);
    return code;
}

SIM_EXPORT const char *nvmlErrorString(int code)
{
    static const char *const text[] = {
        "Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions", "Already Initialized",
        "Not Found", "Insufficient Size", "Insufficient External Power", "Driver Not Loaded", "Timeout",
        "Interrupt Request Issue", "NVML Shared Library Not Found", "Function Not Found", "Corrupted infoROM", "GPU is lost",
        "GPU requires reset", "GPU access blocked by the operating system", "Driver/library version mismatch",
        "In use by another client", "Insufficient Memory", "No data", "vGPU ECC Not Supported", "Insufficient Resources",
        "Frequency Not Supported", "Argument version mismatch", "Deprecated", "Not Ready", "GPU Not Found", "Invalid State"};
    return code >= 0 && code < (int)(sizeof text / sizeof *text) ? text[code] : "Unknown Error";
}

SIM_EXPORT int nvmlSystemGetDriverVersion(char *out, unsigned size)
{
    ENTER();
    return nvml_copy_text(out, size, sim_scenario()->system[SIM_driver_version]);
}
SIM_EXPORT int nvmlSystemGetNVMLVersion(char *out, unsigned size)
{
    ENTER();
    return nvml_copy_text(out, size, sim_scenario()->system[SIM_nvml_version]);
}
SIM_EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *out)
{
    ENTER();
    *out = atoi(sim_scenario()->system[SIM_cuda_driver_version]);
    return NVML_OK;
}
SIM_EXPORT int nvmlSystemGetCudaDriverVersion(int *out)
{
    return nvmlSystemGetCudaDriverVersion_v2(out);
}
SIM_EXPORT int nvmlSystemGetProcessName(unsigned pid, char *out, unsigned size)
{
    ENTER();
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return NVML_NOT_FOUND;
    char *line = size ? fgets(out, (int)size, file) : NULL;
    fclose(file);
    if (!line)
        return NVML_NOT_FOUND;
    out[strcspn(out, "\n")] = 0;
    return NVML_OK;
}

SIM_EXPORT int nvmlDeviceGetCount_v2(unsigned *out)
{
    ENTER();
    *out = (unsigned)sim_scenario()->gpus;
    return NVML_OK;
}
SIM_EXPORT int nvmlDeviceGetCount(unsigned *out)
{
    return nvmlDeviceGetCount_v2(out);
}
SIM_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *out)
{
    if (!users)
        return NVML_UNINITIALIZED;
    if (index >= (unsigned)sim_scenario()->gpus)
        return NVML_INVALID_ARGUMENT;
    nvml_device device = gpus() + index;
    ENTER_DEVICE(device);
    *out = device;
    return NVML_OK;
}
SIM_EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, nvml_device *out)
{
    return nvmlDeviceGetHandleByIndex_v2(index, out);
}

static int find(const char *call, enum sim_text key, const char *wanted, nvml_device *out)
{
    if (!users)
        return NVML_UNINITIALIZED;
    for (int i = 0; i < sim_scenario()->gpus; i++) {
        const char *text = gpus()[i].text[key];
        size_t length = strlen(text), tail = strlen(wanted);
        /* a PCI address may come with a short domain ("0000:07:00.0") or without one, in either case */
        int same = key == SIM_bus_id ? tail >= 7 && tail <= length && !strcasecmp(text + length - tail, wanted) : !strcmp(text, wanted);
        if (same) {
            *out = gpus() + i;
            return nvml_enter_device(call, gpus() + i);
        }
    }
    return NVML_NOT_FOUND;
}
SIM_EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, nvml_device *out)
{
    if (!users)
        return NVML_UNINITIALIZED;
    for (int i = 0; i < sim_scenario()->gpus; i++)
        for (int k = 0; k < gpus()[i].migs; k++)
            if (!strcmp(gpus()[i].mig[k].uuid, uuid)) {
                *out = (nvml_device)(void *)&gpus()[i].mig[k];
                return NVML_OK;
            }
    return find(__func__, SIM_uuid, uuid, out);
}
SIM_EXPORT int nvmlDeviceGetHandleBySerial(const char *serial, nvml_device *out)
{
    return find(__func__, SIM_serial, serial, out);
}
SIM_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvml_device *out)
{
    return find(__func__, SIM_bus_id, bus_id, out);
}
SIM_EXPORT int nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvml_device *out)
{
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, out);
}
