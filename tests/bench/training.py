"""A training of known size whose iterations are timed by itself: ``python training.py mlp|cnn|ranks ITERATIONS``.

Prints the median seconds of an iteration, without the first ten.
"""

import os
import statistics
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import chainer  # noqa: E402
import chainer.functions as F  # noqa: E402
import chainer.links as L  # noqa: E402
import numpy as np  # noqa: E402


class MLP(chainer.ChainList):
    """Seven layers, 3 to 8 ms an iteration."""

    def __init__(self, width: int = 256) -> None:
        super().__init__(*(L.Linear(width, width) for _ in range(6)), L.Linear(width, 10))

    def forward(self, x):
        for link in list(self)[:-1]:
            x = F.relu(link(x))
        return self[6](x)


class CNN(chainer.Chain):
    """Three convolutions with batch normalisation, 40 ms or more an iteration."""

    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.c1 = L.Convolution2D(3, 16, 3, pad=1)
            self.b1 = L.BatchNormalization(16)
            self.c2 = L.Convolution2D(16, 32, 3, pad=1)
            self.b2 = L.BatchNormalization(32)
            self.c3 = L.Convolution2D(32, 32, 3, pad=1)
            self.l = L.Linear(32 * 4 * 4, 10)

    def forward(self, x):
        h = F.max_pooling_2d(F.relu(self.b1(self.c1(x))), 2)
        h = F.max_pooling_2d(F.relu(self.b2(self.c2(h))), 2)
        return self.l(F.max_pooling_2d(F.relu(self.c3(h)), 2))


def main(what: str, iterations: int) -> None:
    np.random.seed(0)
    optimizer = chainer.optimizers.MomentumSGD(0.01)
    shape = (32, 3, 32, 32) if what == "cnn" else (128, 256)
    if what == "ranks":
        import chainermn

        comm = chainermn.create_communicator("naive")
        optimizer = chainermn.create_multi_node_optimizer(optimizer, comm)
    model = L.Classifier(CNN() if what == "cnn" else MLP())
    optimizer.setup(model)
    x = np.random.randn(*shape).astype(np.float32)
    t = np.random.randint(0, 10, shape[0]).astype(np.int32)
    taken = []
    for _ in range(iterations):
        began = time.perf_counter()
        loss = model(x, t)
        model.cleargrads()
        loss.backward()
        del loss
        optimizer.update()
        taken.append(time.perf_counter() - began)
    if what != "ranks" or comm.rank == 0:
        print(f"{statistics.median(taken[10:]):.9f}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
