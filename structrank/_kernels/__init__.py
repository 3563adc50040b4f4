"""Compiled kernels: Numba functions on plain arrays.

Kernels do not validate their arguments, allocate results for the caller or use classes; callers check the arrays first. All
kernels release the GIL, so that threads run in parallel, and are cached on disk, so that later processes do not compile.
"""
