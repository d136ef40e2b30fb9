/* What the simulated CUDA's files share.
 *
 * One shared object serves under the names of all the CUDA libraries (libcuda, libcudart, libnvrtc, libcublas…), so the
 * current device and the allocations are known to all of them. Device memory is host memory, streams run at once.
 * Types and numbers follow the public headers of CUDA 12.2.
 */
#ifndef SIM_CUDA_H
#define SIM_CUDA_H
#include "../scenario.h"

enum cuda_error {
    CUDA_OK = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NOT_INITIALIZED = 3,
    CUDA_INSUFFICIENT_DRIVER = 35,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_DEVICE = 101,
    CUDA_INVALID_IMAGE = 200,
    CUDA_PEER_UNSUPPORTED = 217,
    CUDA_INVALID_HANDLE = 400,
    CUDA_NOT_FOUND = 500,
    CUDA_NOT_READY = 600,
    CUDA_PEER_ALREADY_ENABLED = 704,
    CUDA_PEER_NOT_ENABLED = 705,
    CUDA_LAUNCH_FAILED = 719,
    CUDA_NOT_SUPPORTED = 801,
    CUDA_UNKNOWN = 999,
};

/* device.c: devices as this thread sees them, CUDA_VISIBLE_DEVICES applied */
int cuda_device_count(void);
int cuda_current(void);                           /* index among the visible ones */
int cuda_set_current(int device);                 /* an error code */
const struct sim_gpu *cuda_gpu(int device);       /* NULL if there is no such device */
int cuda_fault(const char *call);                 /* the scenario's fault for a call on the current device */
int cuda_note(int error);                         /* remember as the thread's last error, and give it back */

/* Leave the call with the scenario's fault, if there is one. */
#define ENTER()                                \
    do {                                       \
        int code_ = cuda_fault(__func__);      \
        if (code_)                             \
            return cuda_note(code_);           \
    } while (0)

/* memory.c */
enum cuda_memory_kind { CUDA_UNREGISTERED, CUDA_HOST, CUDA_DEVICE, CUDA_MANAGED };
int cuda_allocate(void **out, size_t size, enum cuda_memory_kind kind);
int cuda_release(void *pointer);
uint64_t cuda_capacity(const struct sim_gpu *gpu); /* what programs can have of a device, now */

/* nvrtc.c: how a compiled program travels through CuPy as a "cubin": this head, then the path of a shared object */
#define CUDA_IMAGE_HEAD "CHAINERDOCTOR "

/* device/kernel.h makes a function of this type for every kernel, named CUDA_ENTRY and the kernel's name */
struct cuda_launch {
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    void **arguments;
};
typedef void (*cuda_kernel)(const struct cuda_launch *launch);
#define CUDA_ENTRY "sim_launch_"

/* Say once per function that it is not simulated. */
void cuda_refuse(const char *function);
#endif
