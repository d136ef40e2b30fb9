/* Simulated CUDA runtime: streams and events. Work is done when it is called for, so every stream is always ready. */
#define _GNU_SOURCE
#include "cuda.h"

#include <stdlib.h>
#include <time.h>

struct stream {
    int device;
};
SIM_EXPORT int cudaStreamCreateWithFlags(struct stream **out, unsigned flags)
{
    (void)flags;
    ENTER();
    if (!(*out = calloc(1, sizeof **out)))
        return cuda_note(CUDA_OUT_OF_MEMORY);
    (*out)->device = cuda_current();
    return CUDA_OK;
}
SIM_EXPORT int cudaStreamCreate(struct stream **out)
{
    return cudaStreamCreateWithFlags(out, 0);
}
SIM_EXPORT int cudaStreamDestroy(struct stream *stream)
{
    ENTER();
    if ((uintptr_t)stream > 2) /* 0, 1 and 2 are CUDA's own: default, legacy, per thread */
        free(stream);
    return CUDA_OK;
}
SIM_EXPORT int cudaStreamSynchronize(struct stream *stream)
{
    (void)stream;
    ENTER();
    return CUDA_OK;
}
SIM_EXPORT int cudaStreamQuery(struct stream *stream)
{
    (void)stream;
    ENTER();
    return CUDA_OK;
}
SIM_EXPORT int cudaStreamIsCapturing(struct stream *stream, int *out)
{
    (void)stream;
    ENTER();
    *out = 0;
    return CUDA_OK;
}
SIM_EXPORT int cudaLaunchHostFunc(struct stream *stream, void (*function)(void *), void *argument)
{
    (void)stream;
    ENTER();
    function(argument);
    return CUDA_OK;
}
SIM_EXPORT int cudaStreamAddCallback(struct stream *stream, void (*function)(struct stream *, int, void *), void *argument, unsigned flags)
{
    (void)flags;
    ENTER();
    function(stream, CUDA_OK, argument);
    return CUDA_OK;
}

struct event {
    double recorded_ms; /* negative: never */
};
SIM_EXPORT int cudaEventCreateWithFlags(struct event **out, unsigned flags)
{
    (void)flags;
    ENTER();
    if (!(*out = malloc(sizeof **out)))
        return cuda_note(CUDA_OUT_OF_MEMORY);
    (*out)->recorded_ms = -1;
    return CUDA_OK;
}
SIM_EXPORT int cudaEventCreate(struct event **out)
{
    return cudaEventCreateWithFlags(out, 0);
}
SIM_EXPORT int cudaEventDestroy(struct event *event)
{
    ENTER();
    free(event);
    return CUDA_OK;
}
SIM_EXPORT int cudaEventRecord(struct event *event, struct stream *stream)
{
    (void)stream;
    ENTER();
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->recorded_ms = (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
    return CUDA_OK;
}
SIM_EXPORT int cudaEventSynchronize(struct event *event)
{
    (void)event;
    ENTER();
    return CUDA_OK;
}
SIM_EXPORT int cudaEventQuery(struct event *event)
{
    (void)event;
    ENTER();
    return CUDA_OK;
}
SIM_EXPORT int cudaEventElapsedTime(float *ms, const struct event *start, const struct event *end)
{
    ENTER();
    if (start->recorded_ms < 0 || end->recorded_ms < 0)
        return cuda_note(CUDA_INVALID_HANDLE);
    *ms = (float)(end->recorded_ms - start->recorded_ms);
    return CUDA_OK;
}
SIM_EXPORT int cudaStreamWaitEvent(struct stream *stream, struct event *event, unsigned flags)
{
    (void)stream;
    (void)event;
    (void)flags;
    ENTER();
    return CUDA_OK;
}
