/* What the simulated cuBLAS's files share. Numbers follow the public cublas_api.h and library_types.h. */
#ifndef SIM_BLAS_H
#define SIM_BLAS_H
#include "cuda.h"

#include <complex.h>

enum { BLAS_OK = 0, BLAS_ALLOC_FAILED = 3, BLAS_INVALID_VALUE = 7, BLAS_EXECUTION_FAILED = 13, BLAS_NOT_SUPPORTED = 15 };
enum { BLAS_PLAIN = 0, BLAS_TRANSPOSED = 1, BLAS_CONJUGATED = 2 };

struct blas_handle {
    void *stream;
    int pointer_mode, math_mode;
};
/* The scenario's fault for a call, as cuBLAS tells it. */
int blas_enter(const char *call);
#define BLAS_ENTER()                        \
    do {                                    \
        int code_ = blas_enter(__func__);   \
        if (code_)                          \
            return code_;                   \
    } while (0)

/* Four types: letter in the function's name, C type, conjugate. */
#define BLAS_TYPES(F)                             \
    F(S, float, BLAS_SAME)                        \
    F(D, double, BLAS_SAME)                       \
    F(C, float complex, conjf)                    \
    F(Z, double complex, conj)
#define BLAS_SAME(x) (x)
#endif
