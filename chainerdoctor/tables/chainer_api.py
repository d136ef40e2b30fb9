"""Chainer's API by version: what was removed or deprecated, and what to write instead.

Every row was checked against Chainer 7.8.1: removed names are not there or raise, deprecated ones are there. Names are
absolute; ``chainer.cuda`` stands for ``chainer.backends.cuda`` as well. Sources: the upgrade guide of docs.chainer.org
("v2" means its part on version 2, "v4" on version 4) or a file of Chainer 7.8.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Optional, Tuple


@dataclass(frozen=True)
class ApiChange:
    """One name. ``removed`` is the version that no longer has it, ``None`` while it is only deprecated (``since``)."""

    name: str
    since: str
    removed: Optional[str]
    instead: str
    source: str


#: Links that version 1.5 moved from chainer.functions to chainer.links; the aliases went with version 2.
_MOVED_LINKS = (
    "Linear", "Convolution2D", "EmbedID", "BinaryHierarchicalSoftmax", "NegativeSampling", "Inception", "PReLU",
    "BatchNormalization", "Bilinear", "MLPConvolution2D", "Maxout", "InceptionBN", "Deconvolution2D", "DilatedConvolution2D",
)  # fmt: skip

_NAMES: Tuple[ApiChange, ...] = (
    ApiChange("chainer.FunctionSet", "1.5", "2.0", "chainer.Chain", "v2"),
    ApiChange("chainer.Flag", "1.5", "2.0", "with chainer.no_backprop_mode():", "v2"),
    ApiChange("chainer.ON", "1.5", "2.0", "with chainer.no_backprop_mode():", "v2"),
    ApiChange("chainer.OFF", "1.5", "2.0", "with chainer.no_backprop_mode():", "v2"),
    ApiChange("chainer.AUTO", "1.5", "2.0", "with chainer.no_backprop_mode():", "v2"),
    ApiChange("chainer.functions.Parameter", "1.5", "2.0", "chainer.Parameter", "v2"),
    ApiChange("chainer.initializers.init_weight", "2.0", "2.0", "chainer.initializers.generate_array", "v2"),
    ApiChange("chainer.cuda.init", "1.3", "2.0", "chainer.backends.cuda.check_cuda_available()", "backends/cuda.py"),
    *[ApiChange(f"chainer.functions.{name}", "1.5", "2.0", f"chainer.links.{name}", "v2") for name in _MOVED_LINKS],
    ApiChange("chainer.cuda.get_device", "3.0", None, "chainer.backends.cuda.get_device_from_id", "backends/cuda.py"),
    ApiChange("chainer.training.StandardUpdater", "4.0", None, "chainer.training.updaters.StandardUpdater", "v4"),
    ApiChange("chainer.training.ParallelUpdater", "4.0", None, "chainer.training.updaters.ParallelUpdater", "v4"),
    ApiChange(
        "chainer.training.updater.StandardUpdater", "4.0", None, "chainer.training.updaters.StandardUpdater", "v4"
    ),
    ApiChange(
        "chainer.training.updater.ParallelUpdater", "4.0", None, "chainer.training.updaters.ParallelUpdater", "v4"
    ),
    ApiChange("chainer.optimizer.WeightDecay", "4.0", None, "chainer.optimizer_hooks.WeightDecay", "optimizer.py"),
    ApiChange("chainer.optimizer.Lasso", "4.0", None, "chainer.optimizer_hooks.Lasso", "optimizer.py"),
    ApiChange(
        "chainer.optimizer.GradientClipping", "4.0", None, "chainer.optimizer_hooks.GradientClipping", "optimizer.py"
    ),
    ApiChange("chainer.optimizer.GradientNoise", "4.0", None, "chainer.optimizer_hooks.GradientNoise", "optimizer.py"),
    ApiChange(
        "chainer.optimizer.GradientHardClipping",
        "4.0",
        None,
        "chainer.optimizer_hooks.GradientHardClipping",
        "optimizer.py",
    ),
    ApiChange("chainer.DebugMode", "2.0", None, "chainer.using_config('debug', True)", "__init__.py"),
    ApiChange("chainer.functions.batch_matmul", "3.0", None, "chainer.functions.matmul", "functions/math/matmul.py"),
)
#: Changes by absolute name.
NAMES: Dict[str, ApiChange] = {row.name: row for row in _NAMES}

#: Methods of optimizers and links, by name.
METHODS: Dict[str, ApiChange] = {
    row.name: row
    for row in (
        ApiChange("zero_grads", "1.5", "2.0", "model.cleargrads()", "v2"),
        ApiChange("accumulate_grads", "1.5", "2.0", "model.addgrads(other)", "v2"),
        ApiChange("clip_grads", "1.5", "2.0", "optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(x))", "v2"),
        ApiChange("weight_decay", "1.5", "2.0", "optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(x))", "v2"),
        ApiChange("compute_grads_norm", "1.5", "2.0", "chainer.optimizer_hooks.GradientClipping", "v2"),
        ApiChange("zerograds", "1.15", None, "cleargrads()", "link.py"),
        ApiChange("use_cleargrads", "2.0", None, "nothing: update() clears gradients anyway", "optimizer.py"),
    )
}

#: Keyword arguments that raise, by function: (names of functions or links, keyword, what to write instead).
_TEST_MODE = "with chainer.using_config('train', False):"
_DETERMINISTIC = "with chainer.using_config('cudnn_deterministic', True):"
_CUDNN = "with chainer.using_config('use_cudnn', 'never'):"
_F, _L = "chainer.functions.", "chainer.links."
KEYWORDS: Tuple[Tuple[Tuple[str, ...], str, str], ...] = (
    (("chainer.Variable",), "volatile", "with chainer.no_backprop_mode():"),
    (
        tuple(
            _F + name
            for name in (
                "dropout", "zoneout", "rrelu", "n_step_lstm", "n_step_bilstm", "n_step_gru", "n_step_bigru",
                "n_step_rnn", "n_step_birnn", "batch_normalization",
            )
        ),
        "train",
        _TEST_MODE,
    ),
    ((_L + "BatchNormalization()",), "test", _TEST_MODE),
    (
        (_F + "convolution_2d", _F + "deconvolution_2d", _L + "Convolution2D", _L + "Deconvolution2D"),
        "deterministic",
        _DETERMINISTIC,
    ),
    (
        tuple(
            _F + name
            for name in (
                "relu", "sigmoid", "tanh", "softmax", "log_softmax", "softmax_cross_entropy", "max_pooling_2d",
                "average_pooling_2d",
            )
        )
        + (_L + "Convolution2D", _L + "Deconvolution2D"),
        "use_cudnn",
        _CUDNN,
    ),
    ((_L + "Linear", _L + "Convolution2D", _L + "Deconvolution2D"), "wscale", "initialW=chainer.initializers.…"),
    ((_L + "Linear", _L + "Convolution2D", _L + "Deconvolution2D"), "bias", "initial_bias=…"),
    (("chainer.training.extensions.snapshot",), "trigger", "trainer.extend(extensions.snapshot(), trigger=…)"),
)  # fmt: skip
