/* Empty on purpose: CuPy includes the name, and its own half type (carray.cuh) is what its kernels use here. */
