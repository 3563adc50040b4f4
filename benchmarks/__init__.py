"""Ratios of times, measured on this machine in one run: ``make bench``, or ``python -m benchmarks --help``."""
