/* Simulated cuBLAS: handles, and products and sums of vectors. */
#define _GNU_SOURCE
#include "blas.h"

#include <math.h>
#include <stdlib.h>

SIM_EXPORT int cublasCreate_v2(struct blas_handle **out)
{
    BLAS_ENTER();
    return (*out = calloc(1, sizeof **out)) ? BLAS_OK : BLAS_ALLOC_FAILED;
}
SIM_EXPORT int cublasDestroy_v2(struct blas_handle *handle)
{
    free(handle);
    return BLAS_OK;
}
SIM_EXPORT int cublasGetVersion_v2(struct blas_handle *handle, int *out)
{
    (void)handle;
    *out = sim_scenario() ? atoi(sim_scenario()->system[SIM_cuda_runtime_version]) * 10 : 0;
    return BLAS_OK;
}
#define PROPERTY(name, type, member)                                              \
    SIM_EXPORT int cublasSet##name(struct blas_handle *handle, type value)        \
    {                                                                             \
        handle->member = value;                                                   \
        return BLAS_OK;                                                           \
    }                                                                             \
    SIM_EXPORT int cublasGet##name(struct blas_handle *handle, type *out)         \
    {                                                                             \
        *out = handle->member;                                                    \
        return BLAS_OK;                                                           \
    }
PROPERTY(Stream_v2, void *, stream)
PROPERTY(PointerMode_v2, int, pointer_mode)
PROPERTY(MathMode, int, math_mode)
SIM_EXPORT int cublasSetWorkspace_v2(struct blas_handle *handle, void *workspace, size_t size)
{
    (void)handle;
    (void)workspace;
    (void)size;
    return BLAS_OK;
}

/* A vector with a negative step begins at its far end. */
#define START(vector, count, step) ((vector) + ((step) < 0 ? (ptrdiff_t)(1 - (count)) * (step) : 0))

#define VECTORS(letter, type, conjugate)                                                                        \
    SIM_EXPORT int cublas##letter##axpy_v2(struct blas_handle *handle, int n, const type *alpha, const type *x, int step_x, type *y, int step_y) \
    {                                                                                                           \
        (void)handle;                                                                                           \
        BLAS_ENTER();                                                                                           \
        x = START(x, n, step_x);                                                                                \
        y = START(y, n, step_y);                                                                                \
        for (ptrdiff_t i = 0; i < n; i++)                                                                       \
            y[i * step_y] += *alpha * x[i * step_x];                                                            \
        return BLAS_OK;                                                                                         \
    }                                                                                                           \
    SIM_EXPORT int cublas##letter##scal_v2(struct blas_handle *handle, int n, const type *alpha, type *x, int step) \
    {                                                                                                           \
        (void)handle;                                                                                           \
        BLAS_ENTER();                                                                                           \
        for (ptrdiff_t i = 0; i < n; i++)                                                                       \
            x[i * step] *= *alpha;                                                                              \
        return BLAS_OK;                                                                                         \
    }                                                                                                           \
    SIM_EXPORT int cublas##letter##gemv_v2(struct blas_handle *handle, int op, int m, int n, const type *alpha, const type *a, int lda, const type *x, int step_x, const type *beta, type *y, int step_y) \
    {                                                                                                           \
        (void)handle;                                                                                           \
        BLAS_ENTER();                                                                                           \
        int out = op == BLAS_PLAIN ? m : n, in = op == BLAS_PLAIN ? n : m;                                      \
        x = START(x, in, step_x);                                                                               \
        y = START(y, out, step_y);                                                                              \
        for (ptrdiff_t i = 0; i < out; i++) {                                                                   \
            type sum = 0;                                                                                       \
            for (ptrdiff_t k = 0; k < in; k++) {                                                                \
                type value = op == BLAS_PLAIN ? a[i + k * lda] : a[k + i * lda];                                \
                sum += (op == BLAS_CONJUGATED ? conjugate(value) : value) * x[k * step_x];                      \
            }                                                                                                   \
            y[i * step_y] = *alpha * sum + (*beta == 0 ? 0 : *beta * y[i * step_y]);                            \
        }                                                                                                       \
        return BLAS_OK;                                                                                         \
    }                                                                                                           \
    /* C = alpha op(A) + beta op(B) */                                                                          \
    SIM_EXPORT int cublas##letter##geam(struct blas_handle *handle, int opa, int opb, int m, int n, const type *alpha, const type *a, int lda, const type *beta, const type *b, int ldb, type *c, int ldc) \
    {                                                                                                           \
        (void)handle;                                                                                           \
        BLAS_ENTER();                                                                                           \
        for (ptrdiff_t j = 0; j < n; j++)                                                                       \
            for (ptrdiff_t i = 0; i < m; i++) {                                                                 \
                type sum = 0;                                                                                   \
                if (*alpha != 0) {                                                                              \
                    type value = opa == BLAS_PLAIN ? a[i + j * lda] : a[j + i * lda];                           \
                    sum += *alpha * (opa == BLAS_CONJUGATED ? conjugate(value) : value);                        \
                }                                                                                               \
                if (*beta != 0) {                                                                               \
                    type value = opb == BLAS_PLAIN ? b[i + j * ldb] : b[j + i * ldb];                           \
                    sum += *beta * (opb == BLAS_CONJUGATED ? conjugate(value) : value);                         \
                }                                                                                               \
                c[i + j * ldc] = sum;                                                                           \
            }                                                                                                   \
        return BLAS_OK;                                                                                         \
    }                                                                                                           \
    /* C = A diag(x) or diag(x) A */                                                                            \
    SIM_EXPORT int cublas##letter##dgmm(struct blas_handle *handle, int right, int m, int n, const type *a, int lda, const type *x, int step, type *c, int ldc) \
    {                                                                                                           \
        (void)handle;                                                                                           \
        BLAS_ENTER();                                                                                           \
        x = START(x, right ? n : m, step);                                                                      \
        for (ptrdiff_t j = 0; j < n; j++)                                                                       \
            for (ptrdiff_t i = 0; i < m; i++)                                                                   \
                c[i + j * ldc] = a[i + j * lda] * x[(right ? j : i) * step];                                    \
        return BLAS_OK;                                                                                         \
    }
BLAS_TYPES(VECTORS)

#define DOT(name, type, conjugate)                                                                              \
    SIM_EXPORT int name(struct blas_handle *handle, int n, const type *x, int step_x, const type *y, int step_y, type *out) \
    {                                                                                                           \
        (void)handle;                                                                                           \
        BLAS_ENTER();                                                                                           \
        type sum = 0;                                                                                           \
        x = START(x, n, step_x);                                                                                \
        y = START(y, n, step_y);                                                                                \
        for (ptrdiff_t i = 0; i < n; i++)                                                                       \
            sum += conjugate(x[i * step_x]) * y[i * step_y];                                                    \
        *out = sum;                                                                                             \
        return BLAS_OK;                                                                                         \
    }
DOT(cublasSdot_v2, float, BLAS_SAME)
DOT(cublasDdot_v2, double, BLAS_SAME)
DOT(cublasCdotu_v2, float complex, BLAS_SAME)
DOT(cublasCdotc_v2, float complex, conjf)
DOT(cublasZdotu_v2, double complex, BLAS_SAME)
DOT(cublasZdotc_v2, double complex, conj)

#define OUTER(name, type, conjugate)                                                                            \
    SIM_EXPORT int name(struct blas_handle *handle, int m, int n, const type *alpha, const type *x, int step_x, const type *y, int step_y, type *a, int lda) \
    {                                                                                                           \
        (void)handle;                                                                                           \
        BLAS_ENTER();                                                                                           \
        x = START(x, m, step_x);                                                                                \
        y = START(y, n, step_y);                                                                                \
        for (ptrdiff_t j = 0; j < n; j++)                                                                       \
            for (ptrdiff_t i = 0; i < m; i++)                                                                   \
                a[i + j * lda] += *alpha * x[i * step_x] * conjugate(y[j * step_y]);                            \
        return BLAS_OK;                                                                                         \
    }
OUTER(cublasSger_v2, float, BLAS_SAME)
OUTER(cublasDger_v2, double, BLAS_SAME)
OUTER(cublasCgeru_v2, float complex, BLAS_SAME)
OUTER(cublasCgerc_v2, float complex, conjf)
OUTER(cublasZgeru_v2, double complex, BLAS_SAME)
OUTER(cublasZgerc_v2, double complex, conj)

/* Sums over one vector; complex amounts are |re| + |im| for asum and amax, as in BLAS. */
#define REAL_SUMS(letter, index, type, absolute)                                                                \
    SIM_EXPORT int cublas##letter##nrm2_v2(struct blas_handle *handle, int n, const type *x, int step, type *out) \
    {                                                                                                           \
        (void)handle;                                                                                           \
        BLAS_ENTER();                                                                                           \
        double sum = 0;                                                                                         \
        for (ptrdiff_t i = 0; i < n; i++)                                                                       \
            sum += (double)x[i * step] * x[i * step];                                                           \
        *out = (type)sqrt(sum);                                                                                 \
        return BLAS_OK;                                                                                         \
    }                                                                                                           \
    SIM_EXPORT int cublas##letter##asum_v2(struct blas_handle *handle, int n, const type *x, int step, type *out) \
    {                                                                                                           \
        (void)handle;                                                                                           \
        BLAS_ENTER();                                                                                           \
        type sum = 0;                                                                                           \
        for (ptrdiff_t i = 0; i < n; i++)                                                                       \
            sum += absolute(x[i * step]);                                                                       \
        *out = sum;                                                                                             \
        return BLAS_OK;                                                                                         \
    }                                                                                                           \
    SIM_EXPORT int cublas##index##amax_v2(struct blas_handle *handle, int n, const type *x, int step, int *out) \
    {                                                                                                           \
        (void)handle;                                                                                           \
        BLAS_ENTER();                                                                                           \
        *out = n > 0; /* counts from 1 */                                                                       \
        for (int i = 1; i < n; i++)                                                                             \
            if (absolute(x[(ptrdiff_t)i * step]) > absolute(x[(ptrdiff_t)(*out - 1) * step]))                   \
                *out = i + 1;                                                                                   \
        return BLAS_OK;                                                                                         \
    }
REAL_SUMS(S, Is, float, fabsf)
REAL_SUMS(D, Id, double, fabs)
