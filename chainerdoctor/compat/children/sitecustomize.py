# Loaded by every Python below `chainerdoctor run --compat`, whatever its version and packages: so this file keeps to
# syntax that any Python 3 reads, and does nothing on one for which the layer is not made.
import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _load_compat():
    # type: () -> None
    try:
        import chainerdoctor.compat  # noqa: F401
    except ImportError:
        # Another interpreter's environment, or one without chainerdoctor: take it from where this file lies, without
        # showing the other packages that lie there.
        import importlib.util

        package = os.path.dirname(os.path.dirname(_FOLDER))
        spec = importlib.util.spec_from_file_location(
            "chainerdoctor", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
        )
        if spec is None or spec.loader is None:
            raise
        module = importlib.util.module_from_spec(spec)
        sys.modules["chainerdoctor"] = module
        spec.loader.exec_module(module)
        import chainerdoctor.compat  # noqa: F401


def _load_the_next_sitecustomize():
    # type: () -> None
    """Run the sitecustomize that would have been found without ours (Debian, conda and clusters have one)."""
    import importlib.machinery
    import importlib.util

    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


# The script is to see the sys.path that it would have without us.
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != _FOLDER]
if sys.version_info >= (3, 8):  # noqa: UP036  (not chainerdoctor's own Python)
    _load_compat()
    _load_the_next_sitecustomize()
