/* Functions of the device library. Host functions of the same meaning stand in; accuracy is the host's. */
#pragma once

#include "../../half.h"

static void __threadfence() {}
static void __threadfence_block() {}

static int __popc(unsigned x) { return __builtin_popcount(x); }
static int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
static int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
static int __ffs(int x) { return __builtin_ffs(x); }
static int __ffsll(long long x) { return __builtin_ffsll(x); }
static unsigned __brev(unsigned x)
{
    unsigned out = 0;
    for (int i = 0; i < 32; i++)
        out |= (x >> i & 1) << (31 - i);
    return out;
}
static unsigned __umulhi(unsigned a, unsigned b) { return unsigned(static_cast<unsigned long long>(a) * b >> 32); }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
static int __mul24(int a, int b) { return a * b; }
static unsigned __umul24(unsigned a, unsigned b) { return a * b; }
template <class T> static T __ldg(const T *p) { return *p; }

/* Atomics: nothing runs at the same time, so plain reads and writes do. The second parameter is not deduced, as CUDA's
 * functions are not templates and convert it. */
template <class T> struct sim_same {
    typedef T type;
};
#define SIM_ATOMIC(name, expression)                                              \
    template <class T> static T name(T *at, typename sim_same<T>::type value)     \
    {                                                                             \
        T old = *at;                                                              \
        *at = (expression);                                                       \
        return old;                                                               \
    }
SIM_ATOMIC(atomicAdd, T(old + value))
SIM_ATOMIC(atomicSub, T(old - value))
SIM_ATOMIC(atomicExch, value)
SIM_ATOMIC(atomicMax, value > old ? value : old)
SIM_ATOMIC(atomicMin, value < old ? value : old)
SIM_ATOMIC(atomicAnd, T(old & value))
SIM_ATOMIC(atomicOr, T(old | value))
SIM_ATOMIC(atomicXor, T(old ^ value))
SIM_ATOMIC(atomicInc, old >= value ? T(0) : T(old + 1))
SIM_ATOMIC(atomicDec, old == 0 || old > value ? value : T(old - 1))
template <class T> static T atomicCAS(T *at, typename sim_same<T>::type wanted, typename sim_same<T>::type value)
{
    T old = *at;
    if (old == wanted)
        *at = value;
    return old;
}

template <class To, class From> static To sim_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "as many bits");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
static int __float_as_int(float x) { return sim_bits<int>(x); }
static unsigned __float_as_uint(float x) { return sim_bits<unsigned>(x); }
static float __int_as_float(int x) { return sim_bits<float>(x); }
static float __uint_as_float(unsigned x) { return sim_bits<float>(x); }
static long long __double_as_longlong(double x) { return sim_bits<long long>(x); }
static double __longlong_as_double(long long x) { return sim_bits<double>(x); }

/* CuPy's own half type holds the bits and converts with these two. */
static unsigned short __float2half_rn(float x) { return sim_half_of_float(x); }
static float __half2float(unsigned short x) { return sim_float_of_half(x); }

/* Newer C libraries have some of these: the macros keep clear of their declarations. */
#define rsqrtf sim_rsqrtf
#define rsqrt sim_rsqrt
#define rcbrtf sim_rcbrtf
#define rcbrt sim_rcbrt
#define sinpif sim_sinpif
#define sinpi sim_sinpi
#define cospif sim_cospif
#define cospi sim_cospi
static float rsqrtf(float x) { return 1 / sqrtf(x); }
static double rsqrt(double x) { return 1 / sqrt(x); }
static float rsqrt(float x) { return 1 / sqrtf(x); }
static float rcbrtf(float x) { return 1 / cbrtf(x); }
static double rcbrt(double x) { return 1 / cbrt(x); }
static double sinpi(double x) { return sin(M_PI * x); }
static double cospi(double x) { return cos(M_PI * x); }
static float sinpif(float x) { return float(sinpi(x)); }
static float cospif(float x) { return float(cospi(x)); }
static float __fdividef(float a, float b) { return a / b; }
static float __expf(float x) { return expf(x); }
static float __logf(float x) { return logf(x); }
static float __powf(float a, float b) { return powf(a, b); }
static float __saturatef(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
static float __fmul_rn(float a, float b) { return a * b; }
static float __fadd_rn(float a, float b) { return a + b; }
static double normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }
static float normcdff(float x) { return float(normcdf(double(x))); }
static double erfcx(double x) { return exp(x * x) * erfc(x); }
/* The inverse of erf by Newton steps on erf from a rational start (Giles 2010 gives the start's form). */
static double erfinv(double y)
{
    if (!(y > -1 && y < 1))
        return y == 1 ? INFINITY : y == -1 ? -INFINITY : NAN;
    double w = -log((1 - y) * (1 + y)), a = 0.147, t = 2 / (M_PI * a) - w / 2;
    double x = copysign(sqrt(sqrt(t * t + w / a) - t), y);
    for (int i = 0; i < 4; i++)
        x -= (erf(x) - y) / (M_2_SQRTPI * exp(-x * x));
    return x;
}
static float erfinvf(float y) { return float(erfinv(double(y))); }
static double normcdfinv(double p) { return M_SQRT2 * erfinv(2 * p - 1); }
static double erfcinv(double y) { return erfinv(1 - y); }

using std::abs;
using std::ceil;
using std::exp;
using std::floor;
using std::fma;
using std::isfinite;
using std::isinf;
using std::isnan;
using std::log;
using std::pow;
using std::signbit;
using std::sqrt;
using std::tanh;
template <class A, class B> static typename std::common_type<A, B>::type max(A a, B b)
{
    typedef typename std::common_type<A, B>::type T;
    return T(a) < T(b) ? T(b) : T(a);
}
template <class A, class B> static typename std::common_type<A, B>::type min(A a, B b)
{
    typedef typename std::common_type<A, B>::type T;
    return T(b) < T(a) ? T(b) : T(a);
}
static unsigned long long clock64()
{
    static unsigned long long ticks;
    return ++ticks;
}
typedef int cudaError_t;
enum { cudaSuccess = 0 };

/* CuPy defines these itself. */
#undef FLT_MIN
#undef FLT_MAX
#undef FLT_EPSILON
#undef FLT_MAX_EXP
#undef FLT_MANT_DIG
#undef DBL_MIN
#undef DBL_MAX
#undef DBL_EPSILON
#undef DBL_MAX_EXP
#undef DBL_MANT_DIG
