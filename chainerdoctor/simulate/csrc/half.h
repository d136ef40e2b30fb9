/* float16 and bfloat16 to and from float, by bits: not every compiler has the types. Rounds to nearest, ties to even. */
#ifndef SIM_HALF_H
#define SIM_HALF_H
#include <stdint.h>
#include <string.h>

static inline float sim_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline uint32_t sim_bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float sim_float_of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
    if (exponent == 0x1f)
        return sim_float_of_bits(sign | 0x7f800000 | fraction << 13);
    if (exponent)
        return sim_float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    /* subnormal: fraction * 2^-24, exact in float */
    float value = (float)fraction * sim_float_of_bits(0x33800000);
    return sign ? -value : value;
}

static inline uint16_t sim_half_of_float(float value)
{
    uint32_t bits = sim_bits_of_float(value), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (size >= 0x477ff000) /* 65520 and more round to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x38800000) { /* below 2^-14: adding 0.5 lets the FPU round to multiples of 2^-24 */
        float scaled = sim_float_of_bits(size) + 0.5f;
        return (uint16_t)(sign | (sim_bits_of_float(scaled) - 0x3f000000));
    }
    uint32_t rounded = size + 0xfff + (size >> 13 & 1);
    return (uint16_t)(sign | (rounded - 0x38000000) >> 13);
}

static inline float sim_float_of_bfloat(uint16_t value)
{
    return sim_float_of_bits((uint32_t)value << 16);
}
static inline uint16_t sim_bfloat_of_float(float value)
{
    uint32_t bits = sim_bits_of_float(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
#endif
