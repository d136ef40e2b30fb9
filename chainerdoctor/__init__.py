"""chainerdoctor finds why Chainer on more than one GPU is slow, wrong or stuck, and says how to mend it.

Importing this package imports nothing else: the part that runs inside the user's interpreter has to stay cheap
and free of third-party packages.
"""

__version__ = "0.1.0"
