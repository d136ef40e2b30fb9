/* What the simulated NVML's files share. Types follow NVIDIA's public NVML API, as nvidia-ml-py declares it. */
#ifndef SIM_NVML_H
#define SIM_NVML_H
#include "../scenario.h"

typedef struct sim_gpu *nvml_device;

enum nvml_return {
    NVML_OK = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_GPU_IS_LOST = 15,
    NVML_VERSION_MISMATCH = 25,
    NVML_UNKNOWN = 999,
};

/* The entry of every call: faults of the scenario, then whether NVML is initialised. */
int nvml_enter(const char *call);
/* The same for calls about a device; MIG devices are refused (they support only what memory.c and device.c name). */
int nvml_enter_device(const char *call, nvml_device device);

#define ENTER()                            \
    do {                                   \
        int code_ = nvml_enter(__func__);  \
        if (code_)                         \
            return code_;                  \
    } while (0)
#define ENTER_DEVICE(device)                              \
    do {                                                  \
        int code_ = nvml_enter_device(__func__, device);  \
        if (code_)                                        \
            return code_;                                 \
    } while (0)
/* variable = the key's value now, or leave the call with the key's error */
#define READ(device, key, variable)                               \
    do {                                                          \
        uint64_t value_ = 0;                                      \
        int code_ = sim_value(device, SIM_##key, &value_);        \
        if (code_)                                                \
            return code_;                                         \
        (variable) = (__typeof__(variable))value_;                \
    } while (0)

/* The MIG device that a handle stands for and its GPU, or NULL if the handle is not a MIG device's. */
struct sim_mig *nvml_mig(nvml_device handle, nvml_device *parent);
int nvml_copy_text(char *out, unsigned size, const char *text);

struct nvml_pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};
int nvml_fill_pci(nvml_device device, struct nvml_pci *out);
#endif
