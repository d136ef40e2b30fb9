/* CuPy's three entries into Thrust, on the CPU. Loaded before CuPy's own (LD_PRELOAD), as those are compiled for real GPUs.
 *
 * The names are those that C++ makes of thrust_sort, thrust_lexsort and thrust_argsort (cupy/cuda/cupy_thrust.cu in the
 * CuPy 12.3 wheel). A std::vector is three pointers. Sorting is by merging, so equal keys keep their order; NaN comes
 * last, as in NumPy.
 */
#include "../half.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct shape {
    const ptrdiff_t *begin, *end, *room;
};
typedef int (*before)(const void *keys, size_t a, size_t b); /* does key a come before key b? */

#define WHOLE(name, type)                                          \
    static int before_##name(const void *keys, size_t a, size_t b) \
    {                                                              \
        const type *k = keys;                                      \
        return k[a] < k[b];                                        \
    }
WHOLE(i8, int8_t)
WHOLE(u8, uint8_t)
WHOLE(i16, int16_t)
WHOLE(u16, uint16_t)
WHOLE(i32, int32_t)
WHOLE(u32, uint32_t)
WHOLE(i64, int64_t)
WHOLE(u64, uint64_t)

static int real_before(double a, double b)
{
    return a < b || (b != b && a == a);
}
static int before_f16(const void *keys, size_t a, size_t b)
{
    const uint16_t *k = keys;
    return real_before(sim_float_of_half(k[a]), sim_float_of_half(k[b]));
}
static int before_f32(const void *keys, size_t a, size_t b)
{
    const float *k = keys;
    return real_before(k[a], k[b]);
}
static int before_f64(const void *keys, size_t a, size_t b)
{
    const double *k = keys;
    return real_before(k[a], k[b]);
}
/* Complex: numbers with a NaN last, then by real and imaginary part. */
static int complex_before(double ar, double ai, double br, double bi)
{
    if (real_before(ar, br) || real_before(br, ar))
        return real_before(ar, br);
    return real_before(ai, bi);
}
static int before_c64(const void *keys, size_t a, size_t b)
{
    const float *k = keys;
    return complex_before(k[2 * a], k[2 * a + 1], k[2 * b], k[2 * b + 1]);
}
static int before_c128(const void *keys, size_t a, size_t b)
{
    const double *k = keys;
    return complex_before(k[2 * a], k[2 * a + 1], k[2 * b], k[2 * b + 1]);
}

/* By CuPy's numbers of types (type_dispatcher.cuh). */
static const struct {
    size_t width;
    before order;
} types[] = {
    {1, before_i8}, {1, before_u8}, {2, before_i16}, {2, before_u16}, {4, before_i32}, {4, before_u32}, {8, before_i64}, {8, before_u64},
    {2, before_f16}, {4, before_f32}, {8, before_f64}, {8, before_c64}, {16, before_c128}, {1, before_u8},
};

static void *room(size_t bytes)
{
    void *memory = malloc(bytes + 1);
    if (!memory) {
        fprintf(stderr, "chainerdoctor simulation: no memory to sort in\n");
        abort(); /* the entries return nothing, and a result that is not sorted would be a lie */
    }
    return memory;
}
static void merge_sort(size_t *index, size_t *scratch, size_t count, const void *keys, before order)
{
    if (count < 2)
        return;
    size_t half = count / 2, left = 0, right = half, out = 0;
    merge_sort(index, scratch, half, keys, order);
    merge_sort(index + half, scratch, count - half, keys, order);
    memcpy(scratch, index, count * sizeof *index);
    while (left < half && right < count)
        index[out++] = order(keys, scratch[right], scratch[left]) ? scratch[right++] : scratch[left++];
    while (left < half)
        index[out++] = scratch[left++];
    while (right < count)
        index[out++] = scratch[right++];
}
/* index becomes the order of keys' elements */
static void sort_one(size_t *index, const void *keys, size_t count, before order)
{
    size_t *scratch = room(count * sizeof *scratch);
    for (size_t i = 0; i < count; i++)
        index[i] = i;
    merge_sort(index, scratch, count, keys, order);
    free(scratch);
}

static size_t elements(const struct shape *shape)
{
    size_t count = 1;
    for (const ptrdiff_t *at = shape->begin; at < shape->end; at++)
        count *= (size_t)*at;
    return count;
}
/* Each row along the last axis by itself. indices: where each element was in its row, or NULL. */
static void sort_rows(int type, char *data, size_t *indices, const struct shape *shape)
{
    size_t width = types[type].width, count = shape->begin == shape->end ? 1 : (size_t)shape->end[-1], all = elements(shape);
    size_t *order = room(count * sizeof *order);
    char *sorted = room(count * width);
    for (size_t first = 0; count && first < all; first += count) {
        char *row = data + first * width;
        sort_one(order, row, count, types[type].order);
        for (size_t i = 0; i < count; i++)
            memcpy(sorted + i * width, row + order[i] * width, width);
        memcpy(row, sorted, count * width);
        if (indices)
            memcpy(indices + first, order, count * sizeof *order);
    }
    free(sorted);
    free(order);
}

EXPORT void _Z11thrust_sortiPvPmRKSt6vectorIlSaIlEElS_(int type, void *data, size_t *keys, const struct shape *shape, intptr_t stream, void *memory)
{
    (void)keys;
    (void)stream;
    (void)memory;
    sort_rows(type, data, NULL, shape);
}
EXPORT void _Z14thrust_argsortiPmPvS0_RKSt6vectorIlSaIlEElS0_(int type, size_t *indices, void *data, void *keys, const struct shape *shape, intptr_t stream, void *memory)
{
    (void)keys;
    (void)stream;
    (void)memory;
    sort_rows(type, data, indices, shape);
}
/* rows keys of count elements each; the last row is the first key */
EXPORT void _Z14thrust_lexsortiPmPvmmlS0_(int type, size_t *indices, void *keys, size_t rows, size_t count, intptr_t stream, void *memory)
{
    (void)stream;
    (void)memory;
    size_t *scratch = room(count * sizeof *scratch);
    for (size_t i = 0; i < count; i++)
        indices[i] = i;
    for (size_t row = 0; row < rows; row++)
        merge_sort(indices, scratch, count, (char *)keys + row * count * types[type].width, types[type].order);
    free(scratch);
}
