"""The folder that compat.reach_children puts on PYTHONPATH; a package only so that it is installed."""
