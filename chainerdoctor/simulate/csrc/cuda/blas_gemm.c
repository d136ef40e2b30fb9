/* Simulated cuBLAS: matrix products. Matrices are column-major; element (i, j) of A is at A[i + j * lda]. */
#define _GNU_SOURCE
#include "blas.h"
#include "../half.h"

#include <stdlib.h>
#include <string.h>

int blas_enter(const char *call)
{
    return cuda_fault(call) ? BLAS_EXECUTION_FAILED : BLAS_OK;
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FASTER __attribute__((target_clones("arch=haswell", "default")))
#else
#define FASTER
#endif

enum { ROWS = 256, DEPTH = 64 }; /* a ROWS x DEPTH piece of A stays in the second-level cache */

/* C += P * Q for P (m x k, contiguous columns of stride m) and Q (k x n, contiguous columns of stride k): four columns of
 * P at a time, so that each element of C is loaded and stored once for four products. */
#define PRODUCT(letter, type, conjugate)                                                                        \
    FASTER static void product_##letter(int m, int n, int k, const type *p, const type *q, type *c, int ldc)    \
    {                                                                                                           \
        for (int first = 0; first < m; first += ROWS)                                                           \
            for (int depth = 0; depth < k; depth += DEPTH)                                                      \
                for (int j = 0; j < n; j++) {                                                                   \
                    int rows = m - first < ROWS ? m - first : ROWS, last = depth + DEPTH < k ? depth + DEPTH : k; \
                    type *restrict into = c + first + (size_t)j * ldc;                                          \
                    const type *factor = q + (size_t)j * k;                                                     \
                    int l = depth;                                                                              \
                    for (; l + 4 <= last; l += 4) {                                                             \
                        const type *restrict column = p + first + (size_t)l * m;                                \
                        const type f0 = factor[l], f1 = factor[l + 1], f2 = factor[l + 2], f3 = factor[l + 3];  \
                        for (int i = 0; i < rows; i++)                                                          \
                            into[i] += column[i] * f0 + column[i + (size_t)m] * f1 + column[i + 2 * (size_t)m] * f2 + column[i + 3 * (size_t)m] * f3; \
                    }                                                                                           \
                    for (; l < last; l++) {                                                                     \
                        const type *restrict column = p + first + (size_t)l * m;                                \
                        for (int i = 0; i < rows; i++)                                                          \
                            into[i] += column[i] * factor[l];                                                   \
                    }                                                                                           \
                }                                                                                               \
    }                                                                                                           \
    /* op(X), rows x columns, into contiguous columns, scaled */                                                \
    static void pack_##letter(int op, int rows, int columns, const type *x, int ldx, type scale, type *out)     \
    {                                                                                                           \
        for (int j = 0; j < columns; j++)                                                                       \
            for (int i = 0; i < rows; i++) {                                                                    \
                type value = op == BLAS_PLAIN ? x[i + (size_t)j * ldx] : x[j + (size_t)i * ldx];                \
                out[i + (size_t)j * rows] = (op == BLAS_CONJUGATED ? conjugate(value) : value) * scale;         \
            }                                                                                                   \
    }                                                                                                           \
    static int gemm_##letter(int opa, int opb, int m, int n, int k, type alpha, const type *a, int lda, const type *b, int ldb, type beta, type *c, int ldc) \
    {                                                                                                           \
        if (m < 0 || n < 0 || k < 0)                                                                            \
            return BLAS_INVALID_VALUE;                                                                          \
        for (int j = 0; j < n; j++) {                                                                           \
            type *column = c + (size_t)j * ldc;                                                                 \
            if (beta == 0) /* NaN in C is overwritten, not multiplied */                                        \
                memset(column, 0, (size_t)m * sizeof(type));                                                    \
            else                                                                                                \
                for (int i = 0; i < m; i++)                                                                     \
                    column[i] *= beta;                                                                          \
        }                                                                                                       \
        if (!m || !n || !k || alpha == 0)                                                                       \
            return BLAS_OK;                                                                                     \
        type *p = malloc(((size_t)m + (size_t)n) * (size_t)k * sizeof *p), *q = p + (size_t)m * k;              \
        if (!p)                                                                                                 \
            return BLAS_ALLOC_FAILED;                                                                           \
        pack_##letter(opa, m, k, a, lda, 1, p);                                                                 \
        pack_##letter(opb, k, n, b, ldb, alpha, q);                                                             \
        product_##letter(m, n, k, p, q, c, ldc);                                                                \
        free(p);                                                                                                \
        sim_spoil(c, sizeof *c);                                                                                \
        return BLAS_OK;                                                                                         \
    }
BLAS_TYPES(PRODUCT)

#define GEMM(letter, type, conjugate)                                                                           \
    SIM_EXPORT int cublas##letter##gemm_v2(struct blas_handle *handle, int opa, int opb, int m, int n, int k, const type *alpha, const type *a, int lda, const type *b, int ldb, const type *beta, type *c, int ldc) \
    {                                                                                                           \
        (void)handle;                                                                                           \
        BLAS_ENTER();                                                                                           \
        return gemm_##letter(opa, opb, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc);                         \
    }                                                                                                           \
    SIM_EXPORT int cublas##letter##gemmStridedBatched(struct blas_handle *handle, int opa, int opb, int m, int n, int k, const type *alpha, const type *a, int lda, long long stride_a, const type *b, int ldb, long long stride_b, const type *beta, type *c, int ldc, long long stride_c, int count) \
    {                                                                                                           \
        int code = blas_enter(__func__);                                                                        \
        (void)handle;                                                                                           \
        for (int i = 0; !code && i < count; i++)                                                                \
            code = gemm_##letter(opa, opb, m, n, k, *alpha, a + i * stride_a, lda, b + i * stride_b, ldb, *beta, c + i * stride_c, ldc); \
        return code;                                                                                            \
    }                                                                                                           \
    SIM_EXPORT int cublas##letter##gemmBatched(struct blas_handle *handle, int opa, int opb, int m, int n, int k, const type *alpha, const type *const *a, int lda, const type *const *b, int ldb, const type *beta, type *const *c, int ldc, int count) \
    {                                                                                                           \
        int code = blas_enter(__func__);                                                                        \
        (void)handle;                                                                                           \
        for (int i = 0; !code && i < count; i++)                                                                \
            code = gemm_##letter(opa, opb, m, n, k, *alpha, a[i], lda, b[i], ldb, *beta, c[i], ldc);            \
        return code;                                                                                            \
    }
BLAS_TYPES(GEMM)

/* --- products of other storage types: through float */
enum { REAL_32 = 0, REAL_64 = 1, REAL_16 = 2, COMPLEX_32 = 4, COMPLEX_64 = 5, BFLOAT_16 = 14 };
enum { COMPUTE_16 = 64, COMPUTE_16_PEDANTIC = 65 };

static float *widen(int type, const uint16_t *from, size_t count)
{
    float *out = malloc((count + 1) * sizeof *out);
    for (size_t i = 0; out && i < count; i++)
        out[i] = type == REAL_16 ? sim_float_of_half(from[i]) : sim_float_of_bfloat(from[i]);
    return out;
}
static size_t stored(int op, int rows, int columns, int ld)
{
    int stored_columns = op == BLAS_PLAIN ? columns : rows, stored_rows = op == BLAS_PLAIN ? rows : columns;
    return stored_columns ? (size_t)ld * (size_t)(stored_columns - 1) + (size_t)stored_rows : 0;
}
static int gemm_short(int opa, int opb, int m, int n, int k, float alpha, const void *a, int a_type, int lda, const void *b, int b_type, int ldb, float beta, void *c, int c_type, int ldc)
{
    int short_a = a_type != REAL_32, short_b = b_type != REAL_32, short_c = c_type != REAL_32;
    size_t c_count = stored(BLAS_PLAIN, m, n, ldc);
    float *wide_a = short_a ? widen(a_type, a, stored(opa, m, k, lda)) : (float *)a;
    float *wide_b = short_b ? widen(b_type, b, stored(opb, k, n, ldb)) : (float *)b;
    float *wide_c = short_c ? widen(c_type, c, c_count) : c;
    int code = wide_a && wide_b && wide_c ? gemm_S(opa, opb, m, n, k, alpha, wide_a, lda, wide_b, ldb, beta, wide_c, ldc) : BLAS_ALLOC_FAILED;
    if (!code && short_c)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) {
                size_t at = (size_t)i + (size_t)j * (size_t)ldc;
                ((uint16_t *)c)[at] = c_type == REAL_16 ? sim_half_of_float(wide_c[at]) : sim_bfloat_of_float(wide_c[at]);
            }
    if (short_a)
        free(wide_a);
    if (short_b)
        free(wide_b);
    if (short_c)
        free(wide_c);
    return code;
}
static int is_short(int type)
{
    return type == REAL_32 || type == REAL_16 || type == BFLOAT_16;
}
static int gemm_any(int opa, int opb, int m, int n, int k, const void *alpha, const void *a, int a_type, int lda, const void *b, int b_type, int ldb, const void *beta, void *c, int c_type, int ldc, int compute)
{
    if (is_short(a_type) && is_short(b_type) && is_short(c_type)) {
        int halves = compute == COMPUTE_16 || compute == COMPUTE_16_PEDANTIC;
        float scale = halves ? sim_float_of_half(*(const uint16_t *)alpha) : *(const float *)alpha;
        float keep = halves ? sim_float_of_half(*(const uint16_t *)beta) : *(const float *)beta;
        return gemm_short(opa, opb, m, n, k, scale, a, a_type, lda, b, b_type, ldb, keep, c, c_type, ldc);
    }
    if (a_type != b_type || a_type != c_type)
        return BLAS_NOT_SUPPORTED;
    switch (a_type) {
    case REAL_64:
        return gemm_D(opa, opb, m, n, k, *(const double *)alpha, a, lda, b, ldb, *(const double *)beta, c, ldc);
    case COMPLEX_32:
        return gemm_C(opa, opb, m, n, k, *(const float complex *)alpha, a, lda, b, ldb, *(const float complex *)beta, c, ldc);
    case COMPLEX_64:
        return gemm_Z(opa, opb, m, n, k, *(const double complex *)alpha, a, lda, b, ldb, *(const double complex *)beta, c, ldc);
    }
    return BLAS_NOT_SUPPORTED;
}
SIM_EXPORT int cublasGemmEx(struct blas_handle *handle, int opa, int opb, int m, int n, int k, const void *alpha, const void *a, int a_type, int lda, const void *b, int b_type, int ldb, const void *beta, void *c, int c_type, int ldc, int compute, int algorithm)
{
    (void)handle;
    (void)algorithm;
    BLAS_ENTER();
    return gemm_any(opa, opb, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, compute);
}
SIM_EXPORT int cublasSgemmEx(struct blas_handle *handle, int opa, int opb, int m, int n, int k, const float *alpha, const void *a, int a_type, int lda, const void *b, int b_type, int ldb, const float *beta, void *c, int c_type, int ldc)
{
    (void)handle;
    BLAS_ENTER();
    return gemm_any(opa, opb, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, 0);
}
static size_t width(int type)
{
    return type == REAL_16 || type == BFLOAT_16 ? 2 : type == REAL_32 ? 4 : type == COMPLEX_64 ? 16 : 8;
}
SIM_EXPORT int cublasGemmStridedBatchedEx(struct blas_handle *handle, int opa, int opb, int m, int n, int k, const void *alpha, const void *a, int a_type, int lda, long long stride_a, const void *b, int b_type, int ldb, long long stride_b, const void *beta, void *c, int c_type, int ldc, long long stride_c, int count, int compute, int algorithm)
{
    (void)handle;
    (void)algorithm;
    int code = blas_enter(__func__);
    for (long long i = 0; !code && i < count; i++)
        code = gemm_any(opa, opb, m, n, k, alpha, (const char *)a + i * stride_a * (long long)width(a_type), a_type, lda, (const char *)b + i * stride_b * (long long)width(b_type), b_type, ldb, beta, (char *)c + i * stride_c * (long long)width(c_type), c_type, ldc, compute);
    return code;
}
