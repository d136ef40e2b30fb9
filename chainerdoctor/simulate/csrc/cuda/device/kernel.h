/* CUDA C on a CPU: what a kernel that CuPy generates needs from the language and the device library.
 *
 * A kernel runs in one of three ways (SIM_MODE, chosen by nvrtc.c from the source):
 *   SIM_STRIDE   the kernel only uses CuPy's grid-stride loop: one thread walks all of it, and the compiler can vectorise
 *   SIM_THREADS  threads of a block run one after another: no thread waits for another
 *   SIM_FIBERS   threads of a block are fibers that take turns: __syncthreads, __syncwarp and the warp's shuffles work
 *   SIM_REDUCTION  as fibers, in one block: CuPy's reduction kernel walks all outputs with whatever grid it gets
 * Blocks run one after another. Written as C++14; atomics need no locks as nothing runs at the same time.
 */
#pragma once
#include <cassert>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __constant__ static
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __CUDA_ARCH__ 800
#define __CUDACC_RTC__ 1
#define __CUDACC__ 1

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
};
static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
static const int warpSize = 32;

#include "fiber.h"
#include "warp.h"
#include "functions.h"
#include "reduce.h"

struct sim_launch_arguments { /* struct cuda_launch of cuda.h */
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    void **arguments;
};
enum sim_mode { SIM_STRIDE, SIM_THREADS, SIM_FIBERS, SIM_REDUCTION };
static char *sim_dynamic_shared;

template <class... Parameters, size_t... I>
static void sim_apply(void (*kernel)(Parameters...), void **arguments, std::index_sequence<I...>)
{
    kernel(*static_cast<std::remove_reference_t<Parameters> *>(arguments[I])...);
}
template <class... Parameters> struct sim_bound {
    void (*kernel)(Parameters...);
    void **arguments;
    static void run(void *self)
    {
        auto bound = static_cast<sim_bound *>(self);
        sim_apply(bound->kernel, bound->arguments, std::index_sequence_for<Parameters...>());
    }
};

template <class... Parameters>
static void sim_run(void (*kernel)(Parameters...), sim_mode mode, const sim_launch_arguments *launch)
{
    sim_bound<Parameters...> bound{kernel, launch->arguments};
    static const unsigned one_block[3] = {1, 1, 1};
    const unsigned *grid = mode == SIM_REDUCTION ? one_block : launch->grid, *block = launch->block;
    if (mode == SIM_STRIDE) {
        gridDim = blockDim = {1, 1, 1};
        threadIdx = blockIdx = {0, 0, 0};
        bound.run(&bound);
        return;
    }
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    const unsigned threads = block[0] * block[1] * block[2];
    sim_dynamic_shared = launch->shared_bytes ? static_cast<char *>(malloc(launch->shared_bytes)) : nullptr;
    for (unsigned z = 0; z < grid[2]; z++)
        for (unsigned y = 0; y < grid[1]; y++)
            for (unsigned x = 0; x < grid[0]; x++) {
                blockIdx = {x, y, z};
                if (mode == SIM_FIBERS || mode == SIM_REDUCTION) {
                    sim_run_block(bound.run, &bound, threads);
                    continue;
                }
                for (unsigned i = 0; i < threads; i++) {
                    sim_set_thread(i);
                    bound.run(&bound);
                }
            }
    free(sim_dynamic_shared);
}

#define SIM_KERNEL(name) \
    extern "C" __attribute__((visibility("default"))) void sim_launch_##name(const sim_launch_arguments *launch) { sim_run(name, SIM_MODE, launch); }
/* A template's instance, which nvrtcAddNameExpression asked for by an expression. */
#define SIM_EXPRESSION(number, ...) \
    extern "C" __attribute__((visibility("default"))) void sim_launch_sim_expression_##number(const sim_launch_arguments *launch) { sim_run(__VA_ARGS__, SIM_MODE, launch); }
