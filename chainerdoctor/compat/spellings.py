"""Expressions of Chainer's that new versions refuse or read in another way, each spelt so that it means what it did."""

from __future__ import annotations

from chainerdoctor.compat.patches import Spelling, version_of


def _numpy_2() -> bool:
    return version_of("numpy") >= (2, 0)


def _array_int_is_refused() -> bool:
    # Deprecated since 1.25; with -W error it fails there already.
    return version_of("numpy") >= (1, 25)


def _scipy_without_float16() -> bool:
    return version_of("scipy") >= (1, 15)


def _cupy_without_cudnn() -> bool:
    # Also below 14 where libcudnn.so.8 is not on the machine, which cannot be seen from here: harmless where it is.
    return _cupy_installed()


def _cupy_installed() -> bool:
    import importlib.util

    return importlib.util.find_spec("cupy") is not None


PATCHES = (
    Spelling(
        name="Variable.debug_print",
        why="NumPy 2 arrays have an attribute `device` ('cpu'), which Chainer takes for a GPU array's",
        needed=_numpy_2,
        module="chainer.variable",
        old="getattr(array, 'device', 'CPU')",
        new="'CPU' if isinstance(array, numpy.ndarray) else getattr(array, 'device', 'CPU')",
    ),
    Spelling(
        name="Categorical.log_prob",
        why="NumPy 2's meshgrid returns a tuple, to which a list cannot be added",
        needed=_numpy_2,
        module="chainer.distributions.categorical",
        old="self.log_p[mg + [",
        new="self.log_p[list(mg) + [",
        times=2,
    ),
    Spelling(
        name="F.pad_sequence",
        why="NumPy 2 refuses a Python integer outside the dtype's range (-1 into unsigned), which used to wrap",
        needed=_numpy_2,
        module="chainer.functions.array.pad_sequence",
        old="y[i, l:] = self.padding",
        new="y[i, l:] = numpy.array(self.padding).astype(y.dtype)",
    ),
    Spelling(
        name="F.sparse_matmul",
        why="new SciPy has no sparse float16: the product is taken in float32 and rounded, as SciPy itself did before",
        needed=_scipy_without_float16,
        module="chainer.functions.math.sparse_matmul",
        old="    _m, _k = A_shape\n    _n = B.shape[-1]\n    if B.ndim == 2:\n        sp_A = sparse.coo",
        new="    _m, _k = A_shape; A_data = A_data.astype('f') if A_data.dtype == 'e' else A_data\n"
        "    _n = B.shape[-1]\n    if B.ndim == 2:\n        sp_A = sparse.coo",
    ),
    Spelling(
        name="should_use_cudnn_tensor_core",
        why="CuPy 14 has no cuDNN, and Chainer then never binds the name `cudnn` that it reads here (NameError)",
        needed=_cupy_without_cudnn,
        module="chainer.backends.cuda",
        old="use_tensor_core = cudnn.is_tensor_core_available(dtype)",
        new="use_tensor_core = cudnn_enabled and cudnn.is_tensor_core_available(dtype)",
    ),
    Spelling(
        name="unpack_params",
        why="NumPy 2 takes copy=False as 'never copy' and raises where the dtype has to change",
        needed=_numpy_2,
        module="chainermn.communicators._memory_utility",
        old="xp.array(v, copy=False, dtype=",
        new="xp.asarray(v, dtype=",
    ),
    Spelling(
        name="create_multi_node_iterator",
        why="int() of an array with one dimension is an error from NumPy 2.5 on: one rank raises, the others wait",
        needed=_array_int_is_refused,
        module="chainermn.iterators.multi_node_iterator",
        old="self.dataset_size = int(_size)",
        new="self.dataset_size = int(_size.item())",
    ),
)
