/* Everything else that CuPy links to: it loads, and when it is called it says what is missing and fails. */
#include "cuda.h"

#define UNSUPPORTED(function, code)        \
    SIM_EXPORT int function(void);         \
    SIM_EXPORT int function(void)          \
    {                                      \
        cuda_refuse(#function);            \
        return code;                       \
    }
#include "unsupported.h"
