"""Speed bars, each measured beside its peer in one interleaved run: ``make bench``."""
