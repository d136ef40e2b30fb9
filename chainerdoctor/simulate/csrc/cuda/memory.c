/* Simulated CUDA runtime: memory. Allocations are counted per device over all processes, so NVML can tell them. */
#define _GNU_SOURCE
#include "cuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct block {
    char *start;
    size_t size;
    int device;
    enum cuda_memory_kind kind;
};
static struct block *blocks; /* ascending by address */
static size_t block_count, block_room;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

enum { GRANULE = 512 };

uint64_t cuda_capacity(const struct sim_gpu *gpu)
{
    uint64_t total = 0, reserved = 0, others = sim_value_of_others(gpu, SIM_memory_used);
    if (sim_value(gpu, SIM_memory_total, &total) || sim_value(gpu, SIM_memory_reserved, &reserved))
        return 0;
    return total > reserved + others ? total - reserved - others : 0;
}

/* The first block that begins after the address. */
static size_t place_after(const void *address)
{
    size_t low = 0, high = block_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (blocks[middle].start > (const char *)address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
static struct block *find(const void *address)
{
    size_t place = place_after(address);
    if (!place || (const char *)address >= blocks[place - 1].start + blocks[place - 1].size)
        return NULL;
    return &blocks[place - 1];
}
static int insert(struct block block)
{
    if (block_count == block_room) {
        size_t room = block_room ? 2 * block_room : 256;
        struct block *more = realloc(blocks, room * sizeof *more);
        if (!more)
            return -1;
        blocks = more;
        block_room = room;
    }
    size_t place = place_after(block.start);
    memmove(blocks + place + 1, blocks + place, (block_count - place) * sizeof *blocks);
    blocks[place] = block;
    block_count++;
    return 0;
}

int cuda_allocate(void **out, size_t size, enum cuda_memory_kind kind)
{
    *out = NULL;
    if (!size)
        return CUDA_OK;
    size = (size + GRANULE - 1) / GRANULE * GRANULE;
    const struct sim_gpu *gpu = cuda_gpu(cuda_current());
    struct sim_board *board = NULL;
    if (kind != CUDA_HOST) {
        if (!gpu)
            return CUDA_NO_DEVICE;
        if (!(board = sim_board(gpu->index)))
            return CUDA_NOT_INITIALIZED;
        if (sim_board_add(board, (int64_t)size, cuda_capacity(gpu)))
            return CUDA_OUT_OF_MEMORY;
    }
    int code = CUDA_OK;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        code = CUDA_OUT_OF_MEMORY;
    pthread_mutex_lock(&gate);
    if (!code && insert((struct block){memory, size, cuda_current(), kind})) {
        munmap(memory, size);
        code = CUDA_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&gate);
    if (code && board)
        sim_board_add(board, -(int64_t)size, 0);
    if (!code)
        *out = memory;
    return code;
}

int cuda_release(void *pointer)
{
    if (!pointer)
        return CUDA_OK;
    pthread_mutex_lock(&gate);
    struct block *found = find(pointer), gone = {0};
    int code = found && found->start == pointer ? CUDA_OK : CUDA_INVALID_VALUE;
    if (!code) {
        gone = *found;
        size_t place = (size_t)(found - blocks);
        memmove(found, found + 1, (block_count - place - 1) * sizeof *blocks);
        block_count--;
    }
    pthread_mutex_unlock(&gate);
    if (code)
        return code;
    munmap(gone.start, gone.size);
    const struct sim_gpu *gpu = gone.kind == CUDA_HOST ? NULL : cuda_gpu(gone.device);
    struct sim_board *board = gpu ? sim_board(gpu->index) : NULL;
    if (board)
        sim_board_add(board, -(int64_t)gone.size, 0);
    return CUDA_OK;
}

/* A process that ends takes its share off the board; one that is killed is not counted as it is dead. */
static __attribute__((destructor)) void give_back(void)
{
    for (size_t i = 0; i < block_count; i++) {
        const struct sim_gpu *gpu = blocks[i].kind == CUDA_HOST ? NULL : cuda_gpu(blocks[i].device);
        struct sim_board *board = gpu ? sim_board(gpu->index) : NULL;
        if (board)
            sim_board_add(board, -(int64_t)blocks[i].size, 0);
    }
}

SIM_EXPORT int cudaMalloc(void **out, size_t size)
{
    ENTER();
    return cuda_note(cuda_allocate(out, size, CUDA_DEVICE));
}
SIM_EXPORT int cudaMallocManaged(void **out, size_t size, unsigned flags)
{
    (void)flags;
    ENTER();
    return cuda_note(cuda_allocate(out, size, CUDA_MANAGED));
}
SIM_EXPORT int cudaHostAlloc(void **out, size_t size, unsigned flags)
{
    (void)flags;
    ENTER();
    return cuda_note(cuda_allocate(out, size, CUDA_HOST));
}
SIM_EXPORT int cudaFree(void *pointer)
{
    ENTER();
    return cuda_note(cuda_release(pointer));
}
SIM_EXPORT int cudaFreeHost(void *pointer)
{
    ENTER();
    return cuda_note(cuda_release(pointer));
}
SIM_EXPORT int cudaMallocAsync(void **out, size_t size, void *stream)
{
    (void)stream;
    ENTER();
    return cuda_note(cuda_allocate(out, size, CUDA_DEVICE));
}
SIM_EXPORT int cudaFreeAsync(void *pointer, void *stream)
{
    (void)stream;
    ENTER();
    return cuda_note(cuda_release(pointer));
}
SIM_EXPORT int cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    ENTER();
    const struct sim_gpu *gpu = cuda_gpu(cuda_current());
    uint64_t all = 0;
    if (!gpu)
        return cuda_note(CUDA_NO_DEVICE);
    if (sim_value(gpu, SIM_memory_total, &all))
        return cuda_note(CUDA_UNKNOWN);
    struct sim_board *board = sim_board(gpu->index);
    uint64_t used = board ? sim_board_bytes(board) : 0, capacity = cuda_capacity(gpu);
    *total = all;
    *free_bytes = capacity > used ? capacity - used : 0;
    return CUDA_OK;
}

static int copy(void *to, const void *from, size_t size)
{
    if (size && (!to || !from))
        return CUDA_INVALID_VALUE;
    memmove(to, from, size);
    sim_spoil(to, size);
    return CUDA_OK;
}
SIM_EXPORT int cudaMemcpy(void *to, const void *from, size_t size, int kind)
{
    (void)kind;
    ENTER();
    return cuda_note(copy(to, from, size));
}
SIM_EXPORT int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream)
{
    (void)kind;
    (void)stream;
    ENTER();
    return cuda_note(copy(to, from, size));
}
static int copy_between(void *to, int to_device, const void *from, int from_device, size_t size)
{
    return cuda_gpu(to_device) && cuda_gpu(from_device) ? copy(to, from, size) : CUDA_INVALID_DEVICE;
}
SIM_EXPORT int cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t size)
{
    ENTER();
    return cuda_note(copy_between(to, to_device, from, from_device, size));
}
SIM_EXPORT int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t size, void *stream)
{
    (void)stream;
    ENTER();
    return cuda_note(copy_between(to, to_device, from, from_device, size));
}
static int copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height)
{
    int code = width > to_pitch || width > from_pitch ? CUDA_INVALID_VALUE : CUDA_OK;
    for (size_t row = 0; !code && row < height; row++)
        code = copy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
    return code;
}
SIM_EXPORT int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind)
{
    (void)kind;
    ENTER();
    return cuda_note(copy_rows(to, to_pitch, from, from_pitch, width, height));
}
SIM_EXPORT int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind, void *stream)
{
    (void)kind;
    (void)stream;
    ENTER();
    return cuda_note(copy_rows(to, to_pitch, from, from_pitch, width, height));
}
SIM_EXPORT int cudaMemset(void *to, int value, size_t size)
{
    ENTER();
    memset(to, value, size);
    return CUDA_OK;
}
SIM_EXPORT int cudaMemsetAsync(void *to, int value, size_t size, void *stream)
{
    (void)stream;
    ENTER();
    memset(to, value, size);
    return CUDA_OK;
}
SIM_EXPORT int cudaMemPrefetchAsync(const void *pointer, size_t size, int device, void *stream)
{
    (void)pointer;
    (void)size;
    (void)stream;
    ENTER();
    return device < 0 || cuda_gpu(device) ? CUDA_OK : cuda_note(CUDA_INVALID_DEVICE);
}
SIM_EXPORT int cudaMemAdvise(const void *pointer, size_t size, int advice, int device)
{
    (void)pointer;
    (void)size;
    (void)advice;
    (void)device;
    ENTER();
    return CUDA_OK;
}
SIM_EXPORT int cudaHostRegister(void *pointer, size_t size, unsigned flags)
{
    (void)flags;
    ENTER();
    return pointer && size ? CUDA_OK : cuda_note(CUDA_INVALID_VALUE);
}
SIM_EXPORT int cudaHostUnregister(void *pointer)
{
    ENTER();
    return pointer ? CUDA_OK : cuda_note(CUDA_INVALID_VALUE);
}

struct cuda_pointer_attributes {
    int kind, device;
    void *device_pointer, *host_pointer;
};
SIM_EXPORT int cudaPointerGetAttributes(struct cuda_pointer_attributes *out, const void *pointer)
{
    ENTER();
    pthread_mutex_lock(&gate);
    const struct block *found = find(pointer);
    if (found) {
        *out = (struct cuda_pointer_attributes){(int)found->kind, found->device, (void *)pointer, found->kind == CUDA_DEVICE ? NULL : (void *)pointer};
    } else
        *out = (struct cuda_pointer_attributes){CUDA_UNREGISTERED, -1, NULL, (void *)pointer};
    pthread_mutex_unlock(&gate);
    return CUDA_OK;
}
