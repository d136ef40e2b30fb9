"""chainerdoctor finds why Chainer on more than one GPU is slow, wrong or stuck, and says how to mend it.

Importing this package imports nothing else: the part that runs inside the user's interpreter has to stay cheap
and free of third-party packages. For programs that would rather import than be run by a command there are
``watch(optimizer)`` and the Trainer extension ``GradientMonitor()``.
"""

import importlib
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in ("watch", "GradientMonitor"):
        # By name, so that nothing here depends on the code that runs inside training.
        return getattr(importlib.import_module("chainerdoctor.instrument.library"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
