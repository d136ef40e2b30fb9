/* Simulated NCCL: element-wise reductions. float16 and bfloat16 are rounded after each step, as on a GPU. */
#include "nccl.h"
#include "../half.h"

const size_t nccl_type_size[NCCL_TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

#define REDUCE(type)                                               \
    static void reduce_##type(type *into, const type *from, size_t count, enum nccl_op op) \
    {                                                              \
        switch (op) {                                              \
        case NCCL_PROD:                                            \
            for (size_t i = 0; i < count; i++)                     \
                into[i] = (type)(into[i] * from[i]);               \
            break;                                                 \
        case NCCL_MAX:                                             \
            for (size_t i = 0; i < count; i++)                     \
                into[i] = into[i] > from[i] ? into[i] : from[i];   \
            break;                                                 \
        case NCCL_MIN:                                             \
            for (size_t i = 0; i < count; i++)                     \
                into[i] = into[i] < from[i] ? into[i] : from[i];   \
            break;                                                 \
        default: /* a mean is a sum until the end */               \
            for (size_t i = 0; i < count; i++)                     \
                into[i] = (type)(into[i] + from[i]);               \
        }                                                          \
    }
REDUCE(int8_t)
REDUCE(uint8_t)
REDUCE(int32_t)
REDUCE(uint32_t)
REDUCE(int64_t)
REDUCE(uint64_t)
REDUCE(float)
REDUCE(double)

static float load(uint16_t bits, enum nccl_type type)
{
    return type == NCCL_FLOAT16 ? sim_float_of_half(bits) : sim_float_of_bfloat(bits);
}
static uint16_t store(float value, enum nccl_type type)
{
    return type == NCCL_FLOAT16 ? sim_half_of_float(value) : sim_bfloat_of_float(value);
}
static void reduce_short(uint16_t *into, const uint16_t *from, size_t count, enum nccl_type type, enum nccl_op op)
{
    for (size_t i = 0; i < count; i++) {
        float value = load(into[i], type);
        reduce_float(&value, &(float){load(from[i], type)}, 1, op);
        into[i] = store(value, type);
    }
}

void nccl_accumulate(void *into, const void *from, size_t count, enum nccl_type type, enum nccl_op op)
{
    switch (type) {
    case NCCL_INT8:
        reduce_int8_t(into, from, count, op);
        break;
    case NCCL_UINT8:
        reduce_uint8_t(into, from, count, op);
        break;
    case NCCL_INT32:
        reduce_int32_t(into, from, count, op);
        break;
    case NCCL_UINT32:
        reduce_uint32_t(into, from, count, op);
        break;
    case NCCL_INT64:
        reduce_int64_t(into, from, count, op);
        break;
    case NCCL_UINT64:
        reduce_uint64_t(into, from, count, op);
        break;
    case NCCL_FLOAT32:
        reduce_float(into, from, count, op);
        break;
    case NCCL_FLOAT64:
        reduce_double(into, from, count, op);
        break;
    default:
        reduce_short(into, from, count, type, op);
    }
}

#define DIVIDE(type)                                   \
    for (size_t i = 0; i < count; i++)                 \
        ((type *)values)[i] /= (type)by;               \
    break

void nccl_divide(void *values, size_t count, enum nccl_type type, int by)
{
    switch (type) {
    case NCCL_INT8:
        DIVIDE(int8_t);
    case NCCL_UINT8:
        DIVIDE(uint8_t);
    case NCCL_INT32:
        DIVIDE(int32_t);
    case NCCL_UINT32:
        DIVIDE(uint32_t);
    case NCCL_INT64:
        DIVIDE(int64_t);
    case NCCL_UINT64:
        DIVIDE(uint64_t);
    case NCCL_FLOAT32:
        DIVIDE(float);
    case NCCL_FLOAT64:
        DIVIDE(double);
    default:
        for (size_t i = 0; i < count; i++)
            ((uint16_t *)values)[i] = store(load(((uint16_t *)values)[i], type) / (float)by, type);
    }
}
