/* Simulated NVML: PCIe, NVLink, topology, peer access, NVSwitch fabric, and the field values. */
#include "nvml.h"

#include <string.h>
#include <time.h>

#define GETTER(function, key)                                         \
    SIM_EXPORT int function(nvml_device device, unsigned *out)        \
    {                                                                 \
        ENTER_DEVICE(device);                                         \
        READ(device, key, *out);                                      \
        return NVML_OK;                                               \
    }
GETTER(nvmlDeviceGetCurrPcieLinkGeneration, pcie_generation)
GETTER(nvmlDeviceGetCurrPcieLinkWidth, pcie_width)
GETTER(nvmlDeviceGetMaxPcieLinkGeneration, pcie_generation_max)
GETTER(nvmlDeviceGetMaxPcieLinkWidth, pcie_width_max)
GETTER(nvmlDeviceGetGpuMaxPcieLinkGeneration, pcie_generation_card)
GETTER(nvmlDeviceGetPcieReplayCounter, pcie_replay)

SIM_EXPORT int nvmlDeviceGetPcieThroughput(nvml_device device, int counter, unsigned *out)
{
    ENTER_DEVICE(device);
    if (counter == 0)
        READ(device, pcie_tx, *out);
    else if (counter == 1)
        READ(device, pcie_rx, *out);
    else
        return NVML_INVALID_ARGUMENT;
    return NVML_OK;
}

static int find_link(const char *call, nvml_device device, unsigned link, const struct sim_link **out)
{
    int code = nvml_enter_device(call, device);
    if (code)
        return code;
    unsigned count;
    READ(device, nvlinks, count);
    if (!count)
        return NVML_NOT_SUPPORTED;
    if (link >= count || link >= SIM_LINKS)
        return NVML_INVALID_ARGUMENT;
    *out = &device->link[link];
    return NVML_OK;
}
SIM_EXPORT int nvmlDeviceGetNvLinkState(nvml_device device, unsigned link, unsigned *out)
{
    const struct sim_link *found;
    int code = find_link(__func__, device, link, &found);
    if (!code)
        *out = !found->down;
    return code;
}
SIM_EXPORT int nvmlDeviceGetNvLinkVersion(nvml_device device, unsigned link, unsigned *out)
{
    const struct sim_link *found;
    int code = find_link(__func__, device, link, &found);
    if (!code)
        READ(device, nvlink_version, *out);
    return code;
}
SIM_EXPORT int nvmlDeviceGetNvLinkCapability(nvml_device device, unsigned link, int capability, unsigned *out)
{
    const struct sim_link *found;
    int code = find_link(__func__, device, link, &found);
    if (!code && (capability < 0 || capability > 5))
        return NVML_INVALID_ARGUMENT;
    if (!code)
        *out = 1;
    return code;
}
SIM_EXPORT int nvmlDeviceGetNvLinkErrorCounter(nvml_device device, unsigned link, int counter, unsigned long long *out)
{
    const struct sim_link *found;
    int code = find_link(__func__, device, link, &found);
    if (code)
        return code;
    switch (counter) {
    case 0:
        *out = found->replay;
        return NVML_OK;
    case 1:
        *out = found->recovery;
        return NVML_OK;
    case 2: /* flit */
        *out = found->crc;
        return NVML_OK;
    case 3: /* data CRC: the scenario has one CRC counter, which is the flit's */
    case 4:
        *out = 0;
        return NVML_OK;
    }
    return NVML_INVALID_ARGUMENT;
}
SIM_EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml_device device, unsigned link, struct nvml_pci *out)
{
    const struct sim_link *found;
    int code = find_link(__func__, device, link, &found);
    if (code)
        return code;
    if (found->remote >= 0)
        return nvml_fill_pci((nvml_device)&sim_scenario()->gpu[found->remote], out);
    memset(out, 0, sizeof *out); /* an NVSwitch */
    strcpy(out->bus_id, "00000000:C4:00.0");
    strcpy(out->bus_id_legacy, "0000:C4:00.0");
    out->bus = 0xc4;
    out->device_id = 0x1AF110DE;
    return NVML_OK;
}
SIM_EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(nvml_device device, unsigned link, unsigned *out)
{
    enum { GPU = 0, SWITCH = 2 };
    const struct sim_link *found;
    int code = find_link(__func__, device, link, &found);
    if (!code)
        *out = found->remote >= 0 ? GPU : SWITCH;
    return code;
}

SIM_EXPORT int nvmlDeviceGetTopologyCommonAncestor(nvml_device a, nvml_device b, int *out)
{
    ENTER_DEVICE(a);
    ENTER_DEVICE(b);
    *out = a == b ? 0 : sim_scenario()->pair[a->index][b->index].topology;
    return NVML_OK;
}
SIM_EXPORT int nvmlDeviceGetP2PStatus(nvml_device a, nvml_device b, int capability, int *out)
{
    ENTER_DEVICE(a);
    ENTER_DEVICE(b);
    if (capability < 0 || capability > 4)
        return NVML_INVALID_ARGUMENT;
    *out = sim_scenario()->pair[a->index][b->index].p2p[capability];
    return NVML_OK;
}
SIM_EXPORT int nvmlDeviceGetTopologyNearestGpus(nvml_device device, int level, unsigned *count, nvml_device *out)
{
    ENTER_DEVICE(device);
    unsigned found = 0;
    for (int i = 0; i < sim_scenario()->gpus; i++)
        if (i != device->index && sim_scenario()->pair[device->index][i].topology == level) {
            if (out && found < *count)
                out[found] = (nvml_device)&sim_scenario()->gpu[i];
            found++;
        }
    *count = found;
    return NVML_OK;
}

struct nvml_fabric {
    unsigned char cluster[16];
    int status;
    unsigned clique, state;
};
struct nvml_fabric_v2 {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique, state, health;
};
static int fabric(nvml_device device, int *status, unsigned *state)
{
    READ(device, fabric_state, *state);
    READ(device, fabric_status, *status);
    return NVML_OK;
}
SIM_EXPORT int nvmlDeviceGetGpuFabricInfo(nvml_device device, struct nvml_fabric *out)
{
    ENTER_DEVICE(device);
    memset(out, 0, sizeof *out);
    return fabric(device, &out->status, &out->state);
}
SIM_EXPORT int nvmlDeviceGetGpuFabricInfoV(nvml_device device, struct nvml_fabric_v2 *out)
{
    ENTER_DEVICE(device);
    if (out->version != 0x2000024)
        return NVML_VERSION_MISMATCH;
    return fabric(device, &out->status, &out->state);
}

struct nvml_field {
    unsigned id, scope;
    long long timestamp_us, latency_us;
    int type, code;
    union {
        double real;
        unsigned whole;
        unsigned long long large;
    } value;
};
enum { TYPE_UINT = 1, TYPE_ULONG_LONG = 3 };
enum {
    FIELD_CRC_FLIT_TOTAL = 38,
    FIELD_CRC_DATA_TOTAL = 45,
    FIELD_REPLAY_TOTAL = 52,
    FIELD_RECOVERY_TOTAL = 59,
    FIELD_MEMORY_TEMPERATURE = 82,
    FIELD_SPEED_LINK0 = 84,
    FIELD_SPEED_COMMON = 90,
    FIELD_LINK_COUNT = 91,
    FIELD_REMAP_CORRECTED = 142,
    FIELD_REMAP_UNCORRECTED = 143,
    FIELD_REMAP_PENDING = 144,
    FIELD_REMAP_FAILURE = 145,
};
static int field(nvml_device device, struct nvml_field *out)
{
    unsigned long long crc = 0, replay = 0, recovery = 0;
    for (int i = 0; i < SIM_LINKS; i++) {
        crc += device->link[i].crc;
        replay += device->link[i].replay;
        recovery += device->link[i].recovery;
    }
    out->type = TYPE_UINT;
    switch (out->id) {
    case FIELD_MEMORY_TEMPERATURE:
        READ(device, temperature_memory, out->value.whole);
        return NVML_OK;
    case FIELD_SPEED_LINK0:
    case FIELD_SPEED_COMMON:
        READ(device, nvlink_speed, out->value.whole);
        return NVML_OK;
    case FIELD_LINK_COUNT:
        READ(device, nvlinks, out->value.whole);
        return NVML_OK;
    case FIELD_REMAP_CORRECTED:
        READ(device, remap_corrected, out->value.whole);
        return NVML_OK;
    case FIELD_REMAP_UNCORRECTED:
        READ(device, remap_uncorrected, out->value.whole);
        return NVML_OK;
    case FIELD_REMAP_PENDING:
        READ(device, remap_pending, out->value.whole);
        return NVML_OK;
    case FIELD_REMAP_FAILURE:
        READ(device, remap_failure, out->value.whole);
        return NVML_OK;
    }
    out->type = TYPE_ULONG_LONG;
    switch (out->id) {
    case FIELD_CRC_FLIT_TOTAL:
        out->value.large = crc;
        return NVML_OK;
    case FIELD_CRC_DATA_TOTAL:
        out->value.large = 0;
        return NVML_OK;
    case FIELD_REPLAY_TOTAL:
        out->value.large = replay;
        return NVML_OK;
    case FIELD_RECOVERY_TOTAL:
        out->value.large = recovery;
        return NVML_OK;
    }
    return NVML_NOT_SUPPORTED;
}
SIM_EXPORT int nvmlDeviceGetFieldValues(nvml_device device, int count, struct nvml_field *out)
{
    ENTER_DEVICE(device);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < count; i++) {
        out[i].value.large = 0;
        out[i].timestamp_us = (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
        out[i].latency_us = 1;
        out[i].code = field(device, &out[i]);
    }
    return NVML_OK;
}
