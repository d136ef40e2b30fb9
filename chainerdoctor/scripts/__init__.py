"""Training scripts → facts, by reading their source with ``ast``. Nothing is imported or run."""
