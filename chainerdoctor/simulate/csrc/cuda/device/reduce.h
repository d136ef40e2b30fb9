/* How many threads of a block share one output of CuPy's reduction kernel. */
#pragma once

/* A thread adds up at most this many elements: rounding errors of float32 then stay near those of a GPU's tree. */
enum { SIM_ELEMENTS_A_THREAD = 16384 };

/* CuPy's _block_stride: outputs for a block, a power of two. Each output has block / stride threads. */
static int sim_reduction_stride(ptrdiff_t in, ptrdiff_t out, unsigned block)
{
    ptrdiff_t each = out ? in / out : 0;
    int stride = int(block);
    while (stride > 1 && each / (int(block) / stride) > SIM_ELEMENTS_A_THREAD)
        stride /= 2;
    /* threads for outputs beyond the last one would work for nothing */
    while (stride > 1 && stride / 2 >= out)
        stride /= 2;
    return stride;
}
