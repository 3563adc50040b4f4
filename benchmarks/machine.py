"""The machine, its load, and the versions of the libraries."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from pathlib import Path

from threadpoolctl import threadpool_info

_LIBRARIES = ("structrank", "numpy", "scipy", "numba", "osqp", "scikit-learn", "lightgbm", "xgboost", "dlib")


def facts():
    """Return date, processor, cores, load and versions as a dict of texts and numbers."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": load(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "blas": ", ".join(
            f"{pool['internal_api']} {pool['version']}" for pool in threadpool_info() if pool["user_api"] == "blas"
        ),
        **{name: _version(name) for name in _LIBRARIES},
    }


def load():
    """Return the load averages over 1, 5 and 15 minutes, if the system reports them."""
    return [round(value, 1) for value in os.getloadavg()] if hasattr(os, "getloadavg") else None


def _processor():
    listed = Path("/proc/cpuinfo")
    if listed.exists():
        for line in listed.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
