"""ChainerMN trains a small CNN on every rank. Rank 0 prints JSON: losses of each iteration, and whether ranks agree.

Usage: train.py COMMUNICATOR [gpu] [ITERATIONS]
"""

import json
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
import chainer  # noqa: E402
import chainer.functions as F  # noqa: E402, N812
import chainer.links as L  # noqa: E402, N812
import chainermn  # noqa: E402


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv1 = L.Convolution2D(1, 8, 3, pad=1)
            self.bn1 = L.BatchNormalization(8)
            self.conv2 = L.Convolution2D(8, 8, 3, pad=1)
            self.fc = L.Linear(8 * 16, 10)

    def forward(self, x):
        h = F.max_pooling_2d(F.relu(self.bn1(self.conv1(x))), 2)
        h = F.max_pooling_2d(F.relu(self.conv2(h)), 2)
        return self.fc(h)


def main():
    gpu = "gpu" in sys.argv[2:]
    iterations = int(sys.argv[-1]) if sys.argv[-1].isdigit() else 8
    comm = chainermn.create_communicator(sys.argv[1])
    np.random.seed(0)
    model = L.Classifier(Net())
    device = "@numpy"
    if gpu:
        device = f"@cupy:{comm.intra_rank}"
        chainer.get_device(device).use()
        model.to_device(device)
    optimizer = chainermn.create_multi_node_optimizer(chainer.optimizers.MomentumSGD(0.05), comm)
    optimizer.setup(model)
    random = np.random.RandomState(100 + comm.rank)
    x = random.rand(16, 1, 16, 16).astype("f4")
    t = (np.arange(16) % 10).astype("i4")
    x, t = (chainer.get_device(device).send(a) for a in (x, t))
    losses = []
    for _ in range(iterations):
        optimizer.update(model, x, t)
        losses.append(float(model.loss.array))
    total = float(sum(abs(chainer.get_device("@numpy").send(p.array)).sum() for _, p in sorted(model.namedparams())))
    gathered = comm.gather_obj((losses, total, str(model.predictor.fc.W.device)))
    if comm.rank == 0:
        print(
            json.dumps(
                {
                    "losses": [g[0] for g in gathered],
                    "sums": [g[1] for g in gathered],
                    "devices": [g[2] for g in gathered],
                }
            )
        )


main()
