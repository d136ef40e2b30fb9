"""chainerdoctor finds why Chainer on more than one GPU is slow, wrong or stuck, and says how to mend it.

Importing this package imports nothing else: the part that runs inside the user's interpreter has to stay cheap
and free of third-party packages. For programs that would rather import than be run by a command there are
``watch(optimizer)`` and the Trainer extension ``GradientMonitor()``.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chainerdoctor.instrument.library import GradientMonitor as GradientMonitor
    from chainerdoctor.instrument.library import watch as watch

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in ("watch", "GradientMonitor"):
        from chainerdoctor.instrument import library

        return getattr(library, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
