/* Simulated NVML: what a device is, its clocks, temperatures, power and modes. */
#include "nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Functions that give one value of the scenario. */
#define GETTER(function, key, type)                                  \
    SIM_EXPORT int function(nvml_device device, type *out)           \
    {                                                                \
        ENTER_DEVICE(device);                                        \
        READ(device, key, *out);                                     \
        return NVML_OK;                                              \
    }
#define GETTER2(function, first, second)                                              \
    SIM_EXPORT int function(nvml_device device, unsigned *one, unsigned *two)         \
    {                                                                                 \
        ENTER_DEVICE(device);                                                         \
        READ(device, first, *one);                                                    \
        READ(device, second, *two);                                                   \
        return NVML_OK;                                                               \
    }
#define TEXT_GETTER(function, key)                                                    \
    SIM_EXPORT int function(nvml_device device, char *out, unsigned size)             \
    {                                                                                 \
        ENTER_DEVICE(device);                                                         \
        return nvml_copy_text(out, size, device->text[SIM_##key]);                    \
    }

TEXT_GETTER(nvmlDeviceGetSerial, serial)
TEXT_GETTER(nvmlDeviceGetVbiosVersion, vbios_version)

SIM_EXPORT int nvmlDeviceGetName(nvml_device device, char *out, unsigned size)
{
    nvml_device parent;
    if (sim_scenario() && nvml_mig(device, &parent))
        device = parent;
    ENTER_DEVICE(device);
    return nvml_copy_text(out, size, device->text[SIM_name]);
}
SIM_EXPORT int nvmlDeviceGetUUID(nvml_device device, char *out, unsigned size)
{
    nvml_device parent;
    struct sim_mig *mig = sim_scenario() ? nvml_mig(device, &parent) : NULL;
    if (mig) {
        ENTER_DEVICE(parent);
        return nvml_copy_text(out, size, mig->uuid);
    }
    ENTER_DEVICE(device);
    return nvml_copy_text(out, size, device->text[SIM_uuid]);
}
SIM_EXPORT int nvmlDeviceGetIndex(nvml_device device, unsigned *out)
{
    ENTER_DEVICE(device);
    *out = (unsigned)device->index;
    return NVML_OK;
}
SIM_EXPORT int nvmlDeviceGetMinorNumber(nvml_device device, unsigned *out)
{
    return nvmlDeviceGetIndex(device, out);
}

int nvml_fill_pci(nvml_device device, struct nvml_pci *out)
{
    memset(out, 0, sizeof *out);
    const char *bus_id = device->text[SIM_bus_id];
    if (sscanf(bus_id, "%x:%x:%x", &out->domain, &out->bus, &out->device) != 3)
        return NVML_UNKNOWN;
    snprintf(out->bus_id, sizeof out->bus_id, "%.31s", bus_id);
    /* the old field holds a domain of four digits */
    snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "%04X:%02X:%02X.0", out->domain & 0xffff, out->bus & 0xff, out->device & 0xff);
    out->device_id = (unsigned)strtoul(device->text[SIM_pci_device], NULL, 16);
    return NVML_OK;
}
SIM_EXPORT int nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci *out)
{
    ENTER_DEVICE(device);
    return nvml_fill_pci(device, out);
}
SIM_EXPORT int nvmlDeviceGetPciInfo_v2(nvml_device device, struct nvml_pci *out)
{
    return nvmlDeviceGetPciInfo_v3(device, out);
}
SIM_EXPORT int nvmlDeviceGetPciInfo(nvml_device device, struct nvml_pci *out)
{
    return nvmlDeviceGetPciInfo_v3(device, out);
}

SIM_EXPORT int nvmlDeviceGetCudaComputeCapability(nvml_device device, int *major, int *minor)
{
    ENTER_DEVICE(device);
    return sscanf(device->text[SIM_compute_capability], "%d.%d", major, minor) == 2 ? NVML_OK : NVML_UNKNOWN;
}
SIM_EXPORT int nvmlDeviceGetNumGpuCores(nvml_device device, unsigned *out)
{
    ENTER_DEVICE(device);
    READ(device, multiprocessors, *out);
    *out *= 64; /* CUDA cores of one A100 SM */
    return NVML_OK;
}

/* "0-3,8" as a bit set */
SIM_EXPORT int nvmlDeviceGetCpuAffinity(nvml_device device, unsigned words, unsigned long *out)
{
    ENTER_DEVICE(device);
    const unsigned width = 8 * sizeof *out;
    memset(out, 0, words * sizeof *out);
    for (const char *text = device->text[SIM_cpu_affinity]; *text;) {
        char *end;
        unsigned long first = strtoul(text, &end, 10), last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        if (last >= (unsigned long)words * width)
            return NVML_INSUFFICIENT_SIZE;
        for (unsigned long cpu = first; cpu <= last; cpu++)
            out[cpu / width] |= 1ul << cpu % width;
        text = *end ? end + 1 : end;
    }
    return NVML_OK;
}

SIM_EXPORT int nvmlDeviceGetUtilizationRates(nvml_device device, unsigned out[2])
{
    ENTER_DEVICE(device);
    READ(device, util_gpu, out[0]);
    READ(device, util_memory, out[1]);
    return NVML_OK;
}
enum { CODEC_SAMPLING_US = 167000 };
SIM_EXPORT int nvmlDeviceGetEncoderUtilization(nvml_device device, unsigned *out, unsigned *period_us)
{
    ENTER_DEVICE(device);
    *period_us = CODEC_SAMPLING_US;
    READ(device, util_encoder, *out);
    return NVML_OK;
}
SIM_EXPORT int nvmlDeviceGetDecoderUtilization(nvml_device device, unsigned *out, unsigned *period_us)
{
    ENTER_DEVICE(device);
    *period_us = CODEC_SAMPLING_US;
    READ(device, util_decoder, *out);
    return NVML_OK;
}

SIM_EXPORT int nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned *out)
{
    ENTER_DEVICE(device);
    if (sensor != 0)
        return NVML_INVALID_ARGUMENT;
    READ(device, temperature, *out);
    return NVML_OK;
}
struct nvml_temperature {
    unsigned version;
    int sensor, celsius;
};
SIM_EXPORT int nvmlDeviceGetTemperatureV(nvml_device device, struct nvml_temperature *out)
{
    ENTER_DEVICE(device);
    if (out->sensor != 0)
        return NVML_INVALID_ARGUMENT;
    READ(device, temperature, out->celsius);
    return NVML_OK;
}
SIM_EXPORT int nvmlDeviceGetTemperatureThreshold(nvml_device device, int kind, unsigned *out)
{
    ENTER_DEVICE(device);
    if (kind == 0)
        READ(device, temperature_shutdown, *out);
    else if (kind == 1)
        READ(device, temperature_slowdown, *out);
    else
        return NVML_NOT_SUPPORTED;
    return NVML_OK;
}

/* NVML numbers the clocks as the scenario's keys follow each other: graphics, SM, memory, video. */
static int clock_mhz(const char *call, nvml_device device, int kind, unsigned *out, enum sim_number first)
{
    int code = nvml_enter_device(call, device);
    uint64_t value = 0;
    if (!code && (kind < 0 || kind > 3))
        code = NVML_INVALID_ARGUMENT;
    if (!code)
        code = sim_value(device, first + (unsigned)kind, &value);
    if (!code)
        *out = (unsigned)value;
    return code;
}
SIM_EXPORT int nvmlDeviceGetClockInfo(nvml_device device, int kind, unsigned *out)
{
    return clock_mhz(__func__, device, kind, out, SIM_clock_graphics);
}
SIM_EXPORT int nvmlDeviceGetMaxClockInfo(nvml_device device, int kind, unsigned *out)
{
    return clock_mhz(__func__, device, kind, out, SIM_clock_max_graphics);
}
SIM_EXPORT int nvmlDeviceGetApplicationsClock(nvml_device device, int kind, unsigned *out)
{
    ENTER_DEVICE(device);
    if (kind == 0 || kind == 1)
        READ(device, clock_app_graphics, *out);
    else if (kind == 2)
        READ(device, clock_app_memory, *out);
    else
        return NVML_NOT_SUPPORTED;
    return NVML_OK;
}
SIM_EXPORT int nvmlDeviceGetSupportedClocksThrottleReasons(nvml_device device, unsigned long long *out)
{
    ENTER_DEVICE(device);
    *out = 0x1ff;
    return NVML_OK;
}
SIM_EXPORT int nvmlDeviceGetSupportedClocksEventReasons(nvml_device device, unsigned long long *out)
{
    return nvmlDeviceGetSupportedClocksThrottleReasons(device, out);
}
GETTER(nvmlDeviceGetCurrentClocksThrottleReasons, throttle_reasons, unsigned long long)
GETTER(nvmlDeviceGetCurrentClocksEventReasons, throttle_reasons, unsigned long long)

GETTER(nvmlDeviceGetPowerUsage, power_usage, unsigned)
GETTER(nvmlDeviceGetEnforcedPowerLimit, power_limit, unsigned)
GETTER(nvmlDeviceGetPowerManagementLimit, power_limit, unsigned)
GETTER(nvmlDeviceGetPowerManagementDefaultLimit, power_default, unsigned)
GETTER2(nvmlDeviceGetPowerManagementLimitConstraints, power_min, power_max)
GETTER(nvmlDeviceGetTotalEnergyConsumption, energy, unsigned long long)
GETTER(nvmlDeviceGetFanSpeed, fan, unsigned)
GETTER(nvmlDeviceGetPerformanceState, pstate, unsigned)
GETTER(nvmlDeviceGetPersistenceMode, persistence_mode, unsigned)
GETTER(nvmlDeviceGetComputeMode, compute_mode, unsigned)
GETTER(nvmlDeviceGetDisplayMode, display_mode, unsigned)
GETTER(nvmlDeviceGetDisplayActive, display_active, unsigned)
GETTER(nvmlDeviceGetNumaNodeId, numa_node, unsigned)
GETTER(nvmlDeviceGetMemoryBusWidth, memory_bus_width, unsigned)
GETTER2(nvmlDeviceGetMigMode, mig_mode, mig_mode_pending)
GETTER2(nvmlDeviceGetEccMode, ecc_mode, ecc_mode_pending)

SIM_EXPORT int nvmlDeviceGetMaxMigDeviceCount(nvml_device device, unsigned *out)
{
    ENTER_DEVICE(device);
    unsigned mode;
    READ(device, mig_mode, mode);
    *out = mode ? SIM_MIGS : 0;
    return NVML_OK;
}
SIM_EXPORT int nvmlDeviceIsMigDeviceHandle(nvml_device device, unsigned *out)
{
    nvml_device parent;
    if (sim_scenario() && nvml_mig(device, &parent)) {
        ENTER_DEVICE(parent);
        *out = 1;
        return NVML_OK;
    }
    ENTER_DEVICE(device);
    *out = 0;
    return NVML_OK;
}
SIM_EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned index, nvml_device *out)
{
    ENTER_DEVICE(device);
    if (index >= (unsigned)device->migs)
        return NVML_NOT_FOUND;
    *out = (nvml_device)(void *)&device->mig[index];
    return NVML_OK;
}
static int mig_call(const char *call, nvml_device handle, struct sim_mig **mig, nvml_device *parent)
{
    *mig = sim_scenario() ? nvml_mig(handle, parent) : NULL;
    if (!*mig)
        return NVML_INVALID_ARGUMENT;
    return nvml_enter_device(call, *parent);
}
SIM_EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvml_device device, nvml_device *out)
{
    struct sim_mig *mig;
    return mig_call(__func__, device, &mig, out);
}
SIM_EXPORT int nvmlDeviceGetGpuInstanceId(nvml_device device, unsigned *out)
{
    struct sim_mig *mig;
    nvml_device parent;
    int code = mig_call(__func__, device, &mig, &parent);
    if (!code)
        *out = mig->gpu_instance;
    return code;
}
SIM_EXPORT int nvmlDeviceGetComputeInstanceId(nvml_device device, unsigned *out)
{
    struct sim_mig *mig;
    nvml_device parent;
    int code = mig_call(__func__, device, &mig, &parent);
    if (!code)
        *out = mig->compute_instance;
    return code;
}
SIM_EXPORT int nvmlDeviceGetDriverModel(nvml_device device, unsigned *current, unsigned *pending)
{
    (void)current;
    (void)pending;
    ENTER_DEVICE(device);
    return NVML_NOT_SUPPORTED; /* Windows only */
}
SIM_EXPORT int nvmlDeviceGetDriverModel_v2(nvml_device device, unsigned *current, unsigned *pending)
{
    return nvmlDeviceGetDriverModel(device, current, pending);
}
SIM_EXPORT int nvmlDeviceGetConfComputeMemSizeInfo(nvml_device device, void *out)
{
    (void)out;
    ENTER_DEVICE(device);
    return NVML_NOT_SUPPORTED;
}
