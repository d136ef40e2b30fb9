/* Simulated cuRAND: its calls, not its numbers. xorshift64* and Box-Muller. */
#define _GNU_SOURCE
#include "cuda.h"

#include <math.h>
#include <stdlib.h>

enum { RAND_OK = 0, RAND_ALLOCATION_FAILED = 102, RAND_LAUNCH_FAILURE = 201 };

struct generator {
    uint64_t state;
};
static uint64_t next(struct generator *generator)
{
    uint64_t x = generator->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    generator->state = x;
    return x * 2685821657736338717ull;
}
/* In (0, 1], as cuRAND's. */
static double uniform(struct generator *generator)
{
    return (double)((next(generator) >> 11) + 1) * (1.0 / 9007199254740992.0);
}
static float uniform_float(struct generator *generator)
{
    return (float)((next(generator) >> 40) + 1) * (1.0f / 16777216.0f);
}
static double normal(struct generator *generator)
{
    double radius = sqrt(-2 * log(uniform(generator)));
    return radius * cos(2 * M_PI * uniform(generator));
}
static void seed(struct generator *generator, uint64_t value)
{
    generator->state = value * 6364136223846793005ull + 1442695040888963407ull;
    if (!generator->state)
        generator->state = 1;
    for (int i = 0; i < 8; i++)
        next(generator);
}

SIM_EXPORT int curandCreateGenerator(struct generator **out, int kind)
{
    (void)kind;
    if (cuda_fault(__func__))
        return RAND_LAUNCH_FAILURE;
    if (!(*out = calloc(1, sizeof **out)))
        return RAND_ALLOCATION_FAILED;
    seed(*out, 0);
    return RAND_OK;
}
SIM_EXPORT int curandDestroyGenerator(struct generator *generator)
{
    free(generator);
    return RAND_OK;
}
SIM_EXPORT int curandGetVersion(int *out)
{
    *out = 10303;
    return RAND_OK;
}
SIM_EXPORT int curandSetStream(struct generator *generator, void *stream)
{
    (void)generator;
    (void)stream;
    return RAND_OK;
}
SIM_EXPORT int curandSetPseudoRandomGeneratorSeed(struct generator *generator, unsigned long long value)
{
    seed(generator, value);
    return RAND_OK;
}
SIM_EXPORT int curandSetGeneratorOffset(struct generator *generator, unsigned long long offset)
{
    for (unsigned long long i = 0; i < offset; i++)
        next(generator);
    return RAND_OK;
}
SIM_EXPORT int curandSetGeneratorOrdering(struct generator *generator, int ordering)
{
    (void)generator;
    (void)ordering;
    return RAND_OK;
}

#define GENERATE(name, type, expression, ...)                                               \
    SIM_EXPORT int name(struct generator *generator, type *out, size_t count __VA_ARGS__)   \
    {                                                                                       \
        if (cuda_fault(__func__))                                                           \
            return RAND_LAUNCH_FAILURE;                                                     \
        for (size_t i = 0; i < count; i++)                                                  \
            out[i] = (type)(expression);                                                    \
        return RAND_OK;                                                                     \
    }
GENERATE(curandGenerate, unsigned, next(generator) >> 32)
GENERATE(curandGenerateLongLong, unsigned long long, next(generator))
GENERATE(curandGenerateUniform, float, uniform_float(generator))
GENERATE(curandGenerateUniformDouble, double, uniform(generator))
GENERATE(curandGenerateNormal, float, mean + deviation * (float)normal(generator), , float mean, float deviation)
GENERATE(curandGenerateNormalDouble, double, mean + deviation * normal(generator), , double mean, double deviation)
GENERATE(curandGenerateLogNormal, float, exp(mean + deviation * normal(generator)), , float mean, float deviation)
GENERATE(curandGenerateLogNormalDouble, double, exp(mean + deviation * normal(generator)), , double mean, double deviation)

/* Knuth's product of uniforms for small means; a rounded normal for large ones, as exp(-mean) would underflow. */
static unsigned poisson(struct generator *generator, double mean)
{
    if (mean > 60) {
        double value = floor(mean + sqrt(mean) * normal(generator) + 0.5);
        return value < 0 ? 0 : (unsigned)value;
    }
    double limit = exp(-mean), product = uniform(generator);
    unsigned count = 0;
    while (product > limit) {
        product *= uniform(generator);
        count++;
    }
    return count;
}
GENERATE(curandGeneratePoisson, unsigned, poisson(generator, mean), , double mean)
