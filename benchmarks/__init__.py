"""Benchmarks: ratios of times measured in one run on one machine. See ``make bench`` or ``python -m benchmarks --help``."""
