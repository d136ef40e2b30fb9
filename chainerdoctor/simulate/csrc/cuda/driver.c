/* Simulated CUDA driver: contexts, modules, and kernels that nvrtc.c compiled. */
#define _GNU_SOURCE
#include "cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char contexts[SIM_GPUS]; /* the address of an entry is the device's context */

SIM_EXPORT int cuInit(unsigned flags)
{
    (void)flags;
    return cuda_fault("cuInit");
}
SIM_EXPORT int cuDriverGetVersion(int *out)
{
    ENTER();
    *out = atoi(sim_scenario()->system[SIM_cuda_driver_version]);
    return CUDA_OK;
}
SIM_EXPORT int cuDeviceGetCount(int *out)
{
    ENTER();
    *out = cuda_device_count();
    return CUDA_OK;
}
SIM_EXPORT int cuDeviceGet(int *out, int ordinal)
{
    ENTER();
    if (!cuda_gpu(ordinal))
        return CUDA_INVALID_DEVICE;
    *out = ordinal;
    return CUDA_OK;
}
SIM_EXPORT int cuCtxGetCurrent(void **out)
{
    *out = &contexts[cuda_current()];
    return CUDA_OK;
}
SIM_EXPORT int cuCtxSetCurrent(void *context)
{
    ENTER();
    long device = (char *)context - contexts;
    return device < 0 || device >= SIM_GPUS ? CUDA_INVALID_VALUE : cuda_set_current((int)device);
}
SIM_EXPORT int cuCtxCreate_v2(void **out, unsigned flags, int device)
{
    (void)flags;
    ENTER();
    int code = cuda_set_current(device);
    if (!code)
        *out = &contexts[device];
    return code;
}
SIM_EXPORT int cuCtxDestroy_v2(void *context)
{
    (void)context;
    return CUDA_OK;
}
SIM_EXPORT int cuCtxGetDevice(int *out)
{
    *out = cuda_current();
    return CUDA_OK;
}
SIM_EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    return CUDA_OK;
}
SIM_EXPORT int cuStreamGetCtx(void *stream, void **out)
{
    (void)stream;
    return cuCtxGetCurrent(out);
}

/* A runtime that is linked statically (CuPy 13 and later) asks the driver for its private tables. They are not forged. */
static int refuse_static_runtime(void)
{
    static int told;
    if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
        fprintf(stderr, "chainerdoctor simulation: this program brings its own CUDA runtime (CuPy 13 and later do); "
                        "simulated GPUs need CuPy 12.3: pip install cupy-cuda12x==12.3.0\n");
    return CUDA_NOT_SUPPORTED;
}
SIM_EXPORT int cuGetExportTable(const void **out, const void *id)
{
    (void)id;
    *out = NULL;
    return refuse_static_runtime();
}
SIM_EXPORT int cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags)
{
    (void)symbol;
    (void)version;
    (void)flags;
    *out = NULL;
    return refuse_static_runtime();
}
SIM_EXPORT int cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags, int *status)
{
    if (status)
        *status = 1; /* symbol not found */
    return cuGetProcAddress(symbol, out, version, flags);
}

SIM_EXPORT int cuModuleLoadData(void **out, const void *image)
{
    ENTER();
    const char *text = image;
    if (strncmp(text, CUDA_IMAGE_HEAD, strlen(CUDA_IMAGE_HEAD))) {
        cuda_refuse("a kernel that was compiled for a real GPU");
        return cuda_note(CUDA_INVALID_IMAGE);
    }
    if (!(*out = dlopen(text + strlen(CUDA_IMAGE_HEAD), RTLD_NOW | RTLD_LOCAL))) {
        fprintf(stderr, "chainerdoctor simulation: %s\n", dlerror());
        return cuda_note(CUDA_INVALID_IMAGE);
    }
    return CUDA_OK;
}
SIM_EXPORT int cuModuleUnload(void *module)
{
    /* Kernels stay loaded: CuPy drops modules whose functions other threads may still be about to launch. */
    (void)module;
    return CUDA_OK;
}
SIM_EXPORT int cuModuleGetFunction(void **out, void *module, const char *name)
{
    ENTER();
    char entry[4096];
    if (snprintf(entry, sizeof entry, CUDA_ENTRY "%s", name) >= (int)sizeof entry)
        return cuda_note(CUDA_NOT_FOUND);
    *out = dlsym(module, entry);
    return *out ? CUDA_OK : cuda_note(CUDA_NOT_FOUND);
}
SIM_EXPORT int cuModuleGetGlobal_v2(void **out, size_t *size, void *module, const char *name)
{
    ENTER();
    if (size)
        *size = 0; /* an object file tells no sizes of variables through dlsym */
    *out = dlsym(module, name);
    return *out ? CUDA_OK : cuda_note(CUDA_NOT_FOUND);
}
SIM_EXPORT int cuFuncGetAttribute(int *out, int attribute, void *function)
{
    (void)function;
    enum { MAX_THREADS_PER_BLOCK = 0 };
    *out = attribute == MAX_THREADS_PER_BLOCK ? 1024 : 0;
    return CUDA_OK;
}
SIM_EXPORT int cuFuncSetAttribute(void *function, int attribute, int value)
{
    (void)function;
    (void)attribute;
    (void)value;
    return CUDA_OK;
}
SIM_EXPORT int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, void *function, void *size_of, size_t shared, int limit)
{
    (void)function;
    (void)size_of;
    (void)shared;
    *grid = 1;
    *block = limit > 0 && limit < 128 ? limit : 128;
    return CUDA_OK;
}
SIM_EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, void *function, int block, size_t shared)
{
    (void)function;
    (void)block;
    (void)shared;
    *out = 1;
    return CUDA_OK;
}

SIM_EXPORT int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments, void **extra)
{
    (void)stream;
    ENTER();
    if (extra || !function)
        return cuda_note(CUDA_INVALID_VALUE);
    if (!grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z || (uint64_t)block_x * block_y * block_z > 1024)
        return cuda_note(CUDA_INVALID_VALUE);
    /* a kernel keeps its thread indices in static variables of its object: one launch at a time */
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    const struct cuda_launch launch = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, arguments};
    pthread_mutex_lock(&one);
    ((cuda_kernel)function)(&launch);
    pthread_mutex_unlock(&one);
    return CUDA_OK;
}

/* A kernel with barriers over the whole grid: the caller may choose any grid for it, so one block is right too. */
SIM_EXPORT int cuLaunchCooperativeKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments)
{
    ENTER();
    if (!grid_x || !grid_y || !grid_z)
        return cuda_note(CUDA_INVALID_VALUE);
    return cuLaunchKernel(function, 1, 1, 1, block_x, block_y, block_z, shared, stream, arguments, NULL);
}

/* What compilers put into objects with kernels of their own (CuPy's Thrust and CUB): they load, and refuse to launch. */
SIM_EXPORT void **__cudaRegisterFatBinary(void *image)
{
    static void *handle;
    (void)image;
    return &handle;
}
SIM_EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}
SIM_EXPORT void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}
SIM_EXPORT void __cudaRegisterFunction(void)
{
}
SIM_EXPORT void __cudaRegisterVar(void)
{
}
SIM_EXPORT unsigned __cudaPushCallConfiguration(void)
{
    return 0;
}
SIM_EXPORT int __cudaPopCallConfiguration(void)
{
    return CUDA_NOT_SUPPORTED;
}
SIM_EXPORT int cudaLaunchKernel(void)
{
    cuda_refuse("a kernel that was compiled for a real GPU (CuPy's Thrust or CUB)");
    return cuda_note(CUDA_NOT_SUPPORTED);
}
