"""Build backend: setuptools, and kernels that are compiled once, when a wheel is built.

Wheels get the tag of the Python version and the platform then. They are built without kernels, for any platform, with
``--config-settings kernels=no``, and where the requirements of the package cannot be imported, as without build isolation.
"""

import base64
import configparser
import hashlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  the hooks for editable installations and source distributions

_COMPILE = """
from structrank._support.kernel_cache import compile_for_wheels
compile_for_wheels()
import sys
from structrank.cli import main
sys.exit(main(["warmup"]))
"""
_PURE = "py3-none-any"


def get_requires_for_build_wheel(config_settings=None):
    """Return the requirements of building, and those of the package, which compiling needs."""
    setup = configparser.ConfigParser()
    setup.read("setup.cfg", encoding="utf-8")
    needed = setup["options"]["install_requires"].split("\n")[1:] if _are_wanted(config_settings) else []
    return [*build_meta.get_requires_for_build_wheel(config_settings), *needed]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Build a wheel, with compiled kernels if possible; return its name."""
    name = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    if not _are_wanted(config_settings):
        return name
    if importlib.util.find_spec("numba") is None:
        print("numba is not installed: the wheel has no compiled kernels; they are compiled on first use")
        return name
    print("compiling kernels for the wheel, which takes about a minute", flush=True)
    return add_kernels(pathlib.Path(wheel_directory, name)).name


def _are_wanted(config_settings):
    return (config_settings or {}).get("kernels", "yes") != "no"


def add_kernels(pure):
    """Replace a wheel without kernels by one with kernels; return its path."""
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    made = pure.with_name(pure.name.replace(_PURE, tag))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with zipfile.ZipFile(pure) as wheel:
            wheel.extractall(folder)
        run(_COMPILE, folder)
        keep_kernels(folder)
        (info,) = folder.glob("*.dist-info")
        text = (info / "WHEEL").read_text(encoding="utf-8")
        text = text.replace("Root-Is-Pure: true", "Root-Is-Pure: false").replace(_PURE, tag)
        (info / "WHEEL").write_text(text, encoding="utf-8", newline="\n")
        _write_record(folder, info)
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as wheel:
            for path in _files(folder):
                wheel.write(path, path.relative_to(folder))
    pure.unlink()
    return made


def run(code, folder):
    """Run code on the package in a folder, without the user's settings of numba."""
    # Intel's functions of vectors are not installed everywhere.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment["NUMBA_DISABLE_INTEL_SVML"] = "1"
    subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, check=True)


def keep_kernels(folder):
    """Move what numba has cached beside the source files to where `structrank._support.kernel_cache` looks for it."""
    for path in [*folder.rglob("*.nbi"), *folder.rglob("*.nbc")]:
        kept = path.parent.with_name("prebuilt")
        kept.mkdir(exist_ok=True)
        path.rename(kept / path.name)
    for cache in [*folder.rglob("__pycache__")]:
        shutil.rmtree(cache)


def _files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _write_record(folder, info):
    """Write the list of files of a wheel with their SHA-256."""
    record, lines = info / "RECORD", []
    for path in _files(folder):
        name, content = path.relative_to(folder).as_posix(), path.read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        lines.append(f"{name},," if path == record else f"{name},sha256={digest},{len(content)}")
    record.write_text("\n".join([*lines, ""]), encoding="utf-8", newline="\n")
