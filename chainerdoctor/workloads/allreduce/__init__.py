"""The rank's side of ``allreduce-bench``: what it times, how often, and how results are checked."""
