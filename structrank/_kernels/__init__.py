"""Compiled kernels: numba functions on plain arrays, nothing else.

Nothing here validates, allocates results for the caller or knows of classes; each function does one thing to arrays
that somebody else has checked. All release the GIL and are cached on disk, so that threads run side by side and a
second process pays no compilation.
"""
