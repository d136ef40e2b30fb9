"""Short real computations whose results are checked: on every GPU, on the CPU, and between ranks.

They run on the ranks: standard library, and the user's own NumPy, CuPy and mpi4py. Nothing here judges.
"""
