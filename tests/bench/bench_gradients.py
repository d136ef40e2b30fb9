"""check-gradients against the plain training, beside Chainer's debug mode on the same one."""

import sys
from typing import Any, Dict

from tests.bench.instrumented import figure, iteration_s, overhead


def measure() -> Dict[str, Any]:
    """Ratios of the median iteration."""
    figures: Dict[str, Any] = {}
    figures.update(overhead("check-gradients, convolutional model", "cnn", {"gradients": {}}, "≤ 1.03"))
    figures.update(overhead("check-gradients, small MLP", "mlp", {"gradients": {}}, "≤ 1.10"))
    figures.update(overhead("check-gradients, two ranks with agreement", "ranks", {"gradients": {}}, "≤ 1.05"))
    for what in ("cnn", "mlp"):
        plain, debug = [], []
        for _ in range(5):
            plain.append(iteration_s(what, [sys.executable]))
            debug.append(iteration_s(what, [sys.executable], {"CHAINER_DEBUG": "1"}))
        ratios = [one / other for one, other in zip(debug, plain)]
        figures[f"peer: Chainer's debug mode, {what}"] = figure(debug, plain, ratios, "a peer")
    return figures
