"""CuPy operations and Chainer functions on a GPU, simulated or real, against NumPy. Prints one JSON object: name -> verdict.

An operation is a function of an array module; the wanted value is the same function of NumPy. Without Chainer only
CuPy's operations run. Arguments choose operations by name.
"""

import json
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
import cupy  # noqa: E402

try:
    import chainer
    import chainer.functions as F  # noqa: N812
    import chainer.links as L  # noqa: N812
except ImportError:
    chainer = None  # a machine with only CuPy: the first list still runs
else:
    chainer.config.use_ideep = "never"
RANDOM = np.random.RandomState(3)
X = RANDOM.randn(7, 33).astype("f4")
Y = RANDOM.rand(7, 33).astype("f4") + 0.5
BIG = RANDOM.randn(70000).astype("f4")
WHOLE = RANDOM.randint(-50, 50, (9, 41)).astype("i4")
CUBE = RANDOM.randn(3, 5, 6).astype("f4")
IMAGE = RANDOM.randn(2, 3, 8, 8).astype("f4")
LABELS = (np.arange(7) % 5).astype("i4")
HALF = RANDOM.randn(6, 19).astype("f2")
COMPLEX = (RANDOM.randn(5, 4) + 1j * RANDOM.randn(5, 4)).astype("c8")

CUPY = {
    "add": lambda xp, a: a(X) + a(Y),
    "divide and power": lambda xp, a: (a(X) / a(Y)) ** 2,
    "floor divide and modulo": lambda xp, a: (a(WHOLE) // 7) + (a(WHOLE) % 7),
    "exp log sqrt": lambda xp, a: xp.exp(a(X)) + xp.log(a(Y)) + xp.sqrt(a(Y)),
    "tanh sin arctan": lambda xp, a: xp.tanh(a(X)) + xp.sin(a(X)) + xp.arctan(a(X)),
    "maximum minimum clip": lambda xp, a: xp.clip(xp.maximum(a(X), a(Y)), -1, 1) + xp.minimum(a(X), a(Y)),
    "comparison and where": lambda xp, a: xp.where(a(X) > 0, a(X), a(Y)),
    "integer bits": lambda xp, a: (a(WHOLE) & 12) ^ (a(WHOLE) << 2) | (a(WHOLE) >> 1),
    "cast": lambda xp, a: a(X).astype("i8") + a(WHOLE)[:7, :33].astype("f8"),
    "isnan isinf": lambda xp, a: xp.isnan(a(X) / 0 - a(X) / 0) | xp.isinf(a(X)),
    "broadcasting": lambda xp, a: a(X)[:, None, :] * a(Y)[None, :, :],
    "sum": lambda xp, a: a(BIG).sum(),
    "sum over axis": lambda xp, a: a(CUBE).sum(axis=1),
    "sum over axes": lambda xp, a: a(CUBE).sum(axis=(0, 2), keepdims=True),
    "mean var std": lambda xp, a: a(X).mean(axis=0) + a(X).var(axis=0) + a(X).std(axis=0),
    "prod": lambda xp, a: a(Y).prod(axis=1),
    "max min": lambda xp, a: a(X).max(axis=1) - a(X).min(axis=1),
    "argmax argmin": lambda xp, a: a(X).argmax(axis=1) * 100 + a(X).argmin(axis=1),
    "any all": lambda xp, a: xp.stack([(a(X) > 2).any(axis=1), (a(X) < 3).all(axis=1)]),
    "norm": lambda xp, a: xp.linalg.norm(a(X), axis=1),
    "count_nonzero": lambda xp, a: xp.count_nonzero(a(WHOLE) > 3),
    "boolean mask": lambda xp, a: a(X)[a(X) > 0.3],
    "boolean mask, large": lambda xp, a: a(BIG)[a(BIG) > 0.3],
    "boolean assignment": lambda xp, a: _assign(a(X), a(X) < 0, 0),
    "nonzero": lambda xp, a: xp.stack(xp.nonzero(a(WHOLE) > 20)),
    "cumsum": lambda xp, a: xp.cumsum(a(WHOLE).ravel()),
    "cumsum, large": lambda xp, a: xp.cumsum(a(BIG).astype("f8")),
    "cumsum over axis": lambda xp, a: xp.cumsum(a(X), axis=1),
    "cumprod": lambda xp, a: xp.cumprod(a(Y), axis=0),
    "integer index": lambda xp, a: a(X)[a(LABELS)],
    "two integer indices": lambda xp, a: a(X)[a(LABELS), a(LABELS) * 3],
    "take": lambda xp, a: xp.take(a(X), a(LABELS), axis=1),
    "slice assignment": lambda xp, a: _assign(a(X), (slice(1, 5, 2), slice(None, None, -3)), 4),
    "transpose reshape": lambda xp, a: a(CUBE).transpose(2, 0, 1).reshape(18, 5).copy(),
    "concatenate stack": lambda xp, a: xp.concatenate([a(X), a(Y)], axis=1).sum() + xp.stack([a(X), a(Y)]).max(),
    "tile repeat roll flip": lambda xp, a: xp.roll(xp.tile(a(X), (2, 1)), 3, axis=1)[:, ::-1].repeat(2, axis=0),
    "pad": lambda xp, a: xp.pad(a(X), ((1, 2), (3, 0)), "constant"),
    "arange eye tri": lambda xp, a: xp.eye(6, 5, k=1) * 3 + xp.arange(30).reshape(6, 5) + xp.tri(6, 5),
    "sort": lambda xp, a: xp.sort(a(X), axis=1),
    "sort along the first axis": lambda xp, a: xp.sort(a(X), axis=0),
    "argsort": lambda xp, a: a(BIG)[xp.argsort(a(BIG))],
    "argsort over axis": lambda xp, a: xp.argsort(a(X), axis=1),
    "sort with NaN": lambda xp, a: xp.sort(xp.where(a(X) > 1, xp.nan, a(X)).astype("f4"), axis=1),
    "lexsort": lambda xp, a: xp.lexsort(a(np.stack([WHOLE.ravel(), WHOLE.ravel()[::-1] // 9]))),
    "unique": lambda xp, a: xp.unique(a(WHOLE)),
    "searchsorted": lambda xp, a: xp.searchsorted(xp.sort(a(BIG)), a(X).ravel()),
    "bincount": lambda xp, a: xp.bincount(a(WHOLE).ravel() + 50),
    "histogram": lambda xp, a: xp.histogram(a(BIG), bins=10)[0],
    "dot": lambda xp, a: a(X).dot(a(Y).T),
    "matmul batched": lambda xp, a: xp.matmul(a(CUBE), a(CUBE).transpose(0, 2, 1)),
    "dot of vectors": lambda xp, a: a(X)[0].dot(a(Y)[0]),
    "tensordot": lambda xp, a: xp.tensordot(a(CUBE), a(CUBE), axes=((1, 2), (1, 2))),
    "einsum": lambda xp, a: xp.einsum("ijk,ilk->jl", a(CUBE), a(CUBE)),
    "matrix times vector": lambda xp, a: a(X).dot(a(Y)[0]),
    "outer": lambda xp, a: xp.outer(a(X)[0], a(Y)[0]),
    "float16 arithmetic": lambda xp, a: a(HALF) * a(HALF) + a(HALF) / 3,
    "float16 sum": lambda xp, a: a(HALF).sum(axis=1, dtype="f4"),
    "float16 dot": lambda xp, a: a(HALF).dot(a(HALF).T),
    "float16 exp and cast": lambda xp, a: xp.exp(a(HALF)).astype("f4"),
    "complex": lambda xp, a: a(COMPLEX) * a(COMPLEX).conj() + xp.abs(a(COMPLEX)),
    "complex dot": lambda xp, a: a(COMPLEX).T.dot(a(COMPLEX).conj()),
    "scatter add": lambda xp, a: _scatter_add(xp, a(np.zeros((5, 33), "f4")), a(LABELS), a(X)),
    "scatter add float16": lambda xp, a: _scatter_add(xp, a(np.zeros((5, 19), "f2")), a(LABELS[:6]), a(HALF)),
}


def _assign(array, where, value):
    array = array.copy()
    array[where] = value
    return array


def _scatter_add(xp, array, where, values):
    if xp is np:
        np.add.at(array, where, values)
    else:
        import cupyx

        cupyx.scatter_add(array, where, values)
    return array


def _link(build, *inputs):
    """Forward and backward of a link: output, and the gradients of its inputs and parameters."""

    def run(device):
        np.random.seed(5)
        link = build()
        if device:
            link.to_gpu()
        variables = [chainer.Variable(device_array(x, device)) for x in inputs]
        out = link(*variables)
        link.cleargrads()
        F.sum(out * out).backward()
        return [
            out.array,
            *(v.grad for v in variables if v.grad is not None),
            *(p.grad for _, p in sorted(link.namedparams())),
        ]

    return run


def _function(function, *inputs, **options):
    """Forward and backward of a function."""

    def run(device):
        variables = [chainer.Variable(device_array(x, device)) for x in inputs]
        out = function(*variables, **options)
        F.sum(out * out).backward()
        return [out.array, *(v.grad for v in variables if v.grad is not None)]

    return run


def device_array(array, device):
    return cupy.asarray(array) if device else array.copy()


CHAINER = chainer and {
    "relu": _function(F.relu, X),
    "leaky_relu elu": _function(lambda x: F.leaky_relu(x) + F.elu(x), X),
    "sigmoid tanh softplus": _function(lambda x: F.sigmoid(x) + F.tanh(x) + F.softplus(x), X),
    "softmax log_softmax": _function(lambda x: F.softmax(x) + F.log_softmax(x), X),
    "softmax_cross_entropy": _function(F.softmax_cross_entropy, X, LABELS),
    "sigmoid_cross_entropy": _function(F.sigmoid_cross_entropy, X, (X > 0).astype("i4")),
    "mean_squared_error": _function(F.mean_squared_error, X, Y),
    "accuracy": lambda device: [F.accuracy(device_array(X, device), device_array(LABELS, device)).array],
    "max_pooling_2d": _function(lambda x: F.max_pooling_2d(x, 3, stride=2), IMAGE),
    "average_pooling_2d": _function(lambda x: F.average_pooling_2d(x, 2), IMAGE),
    "lstm": _function(lambda c, x: F.lstm(c, x)[1], X[:, :8], np.tile(X, 2)[:, :32]),
    "concat split_axis": _function(lambda x, y: F.concat(F.split_axis(x + y, 3, 1)[::-1]), X, Y),
    "reshape transpose broadcast": _function(lambda x: F.broadcast_to(F.transpose(x)[None], (4, 33, 7)), X),
    "get_item": _function(lambda x: F.get_item(x, (slice(1, 5), slice(None, None, 2))), X),
    "clipped_relu clip": _function(lambda x: F.clip(F.clipped_relu(x, 2.0), 0.1, 1.5), X),
    "batch_l2_norm normalize": _function(lambda x: F.normalize(x), X),
    "matmul": _function(lambda x, y: F.matmul(x, y, transb=True), X, Y),
    "local_response_normalization": _function(F.local_response_normalization, IMAGE),
    "resize_images": _function(lambda x: F.resize_images(x, (5, 11)), IMAGE),
    "select_item": _function(
        lambda x: F.select_item(x, LABELS if not isinstance(x.array, cupy.ndarray) else cupy.asarray(LABELS)), X
    ),
    "Linear": _link(lambda: L.Linear(33, 4), X),
    "Convolution2D": _link(lambda: L.Convolution2D(3, 4, 3, pad=1), IMAGE),
    "Deconvolution2D": _link(lambda: L.Deconvolution2D(3, 4, 3, stride=2), IMAGE),
    "DepthwiseConvolution2D": _link(lambda: L.DepthwiseConvolution2D(3, 2, 3), IMAGE),
    "BatchNormalization": _link(lambda: L.BatchNormalization(3), IMAGE),
    "LayerNormalization": _link(lambda: L.LayerNormalization(33), X),
    "EmbedID": _link(lambda: L.EmbedID(5, 8), LABELS),
    "Maxout": _link(lambda: L.Maxout(33, 4, 3), X),
    "GRU": _link(lambda: L.StatelessGRU(33, 6), X[:, :6], X),
}


def compare(got, wanted, half=False):
    got, wanted = np.asarray(got), np.asarray(wanted)
    if got.shape != wanted.shape:
        return f"shape {got.shape} for {wanted.shape}"
    if wanted.dtype.kind in "biu":
        return "ok" if np.array_equal(got, wanted) else f"{(got != wanted).sum()} of {got.size} differ"
    tolerance = 5e-3 if half else 1e-4
    if np.allclose(got, wanted, rtol=tolerance, atol=tolerance, equal_nan=True):
        return "ok"
    return f"largest difference {np.nanmax(np.abs(got.astype('c16') - wanted.astype('c16')))}"


def attempt(work):
    try:
        return work()
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:600]}"


def check_cupy(name, operation):
    wanted = operation(np, lambda x: x.copy())
    return compare(cupy.asnumpy(operation(cupy, cupy.asarray)), wanted, "float16" in name)


def check_chainer(run):
    verdicts = [compare(cupy.asnumpy(got), wanted) for got, wanted in zip(run(True), run(False))]
    return next((verdict for verdict in verdicts if verdict != "ok"), "ok")


def main():
    chosen = sys.argv[1:]
    verdicts = {}
    for name, operation in CUPY.items():
        if not chosen or name in chosen:
            verdicts[f"cupy {name}"] = attempt(lambda name=name, operation=operation: check_cupy(name, operation))
    for name, run in CHAINER.items() if chainer else ():
        if not chosen or name in chosen:
            verdicts[f"chainer {name}"] = attempt(lambda run=run: check_chainer(run))
    print(json.dumps(verdicts))


main()
