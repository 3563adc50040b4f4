"""Kernels that are compiled when a wheel is built: found wherever the wheel is installed, and ignored if they do not fit."""

import base64
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import packaging.tags
import pytest

from structrank._support import kernel_cache

ROOT = pathlib.Path(__file__).parent.parent
KERNEL = """
from structrank._support.compile import kernel

@kernel
def f(x):
    return 2 * x
"""
CALL = "from structrank.part.module import f; print(f(10), sum(f.stats.cache_hits.values()))"


@pytest.fixture
def package(tmp_path):
    """Return a folder with a package that has one kernel, beside the support that kernels need."""
    parts = tmp_path / "built" / "structrank"
    shutil.copytree(ROOT / "structrank" / "_support", parts / "_support", ignore=shutil.ignore_patterns("__pycache__"))
    (parts / "part").mkdir()
    (parts / "__init__.py").write_text("")
    (parts / "part" / "__init__.py").write_text("")
    (parts / "part" / "module.py").write_text(KERNEL)
    (parts / "cli.py").write_text("def main(argv):\n    from structrank.part.module import f\n    f(1)\n")
    return parts.parent


@pytest.fixture
def built(package, backend):
    """Return a folder with a package whose kernel was compiled for wheels."""
    backend.run(backend._COMPILE, package)
    backend.keep_kernels(package)
    return package


@pytest.fixture
def call(tmp_path):
    """Return a function that calls the kernel of a package with an empty cache, and returns its value and the cache hits."""

    def call_in(folder, code=CALL, **environment):
        cache = tmp_path / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        environment = {**inherited, "NUMBA_CACHE_DIR": str(cache), **environment}
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        files = [path for kind in ("nbi", "nbc") for path in cache.rglob(f"*.{kind}")]
        value, hits = map(int, done.stdout.split())
        assert bool(files) == (hits == 0)  # what is compiled is cached for the user, what was found is not
        return value, hits

    return call_in


def prebuilt(folder):
    """Return the paths of the machine code and of its index."""
    return sorted(folder.rglob("prebuilt/*"))


needs_instructions = pytest.mark.skipif(kernel_cache.prebuilt_target() is None, reason="the processor lacks instructions")


@needs_instructions
def test_prebuilt_kernels_are_found_in_another_folder_and_after_their_times_changed(built, tmp_path, call):
    moved = tmp_path / "moved"
    shutil.copytree(built, moved, copy_function=shutil.copyfile)
    shutil.rmtree(built)
    before = [path.read_bytes() for path in prebuilt(moved)]
    assert len(before) == 2
    assert call(moved) == (20, 1)
    assert call(moved, CALL.replace("f(10)", "int(f(10.0))")) == (20, 0)  # was compiled for no floats
    assert [path.read_bytes() for path in prebuilt(moved)] == before


@needs_instructions
@pytest.mark.parametrize("number", [0, 1])
def test_damaged_prebuilt_kernels_are_ignored(built, call, number):
    path = prebuilt(built)[number]
    whole = path.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:]):
        path.write_bytes(damaged)
        assert call(built) == (20, 0)
    path.write_bytes(whole)
    assert call(built) == (20, 1)


@needs_instructions
def test_prebuilt_kernels_of_other_sources_versions_or_processors_are_ignored(built, call):
    module = built / "structrank" / "part" / "module.py"
    module.write_text(KERNEL.replace("2 * x", "3 * x"))
    assert call(built) == (30, 0)
    module.write_text(KERNEL)
    assert call(built) == (20, 1)
    assert call(built, f"import llvmlite; llvmlite.__version__ += '.1'\n{CALL}") == (20, 0)
    patch = "from structrank._support import kernel_cache; kernel_cache.target = lambda: "
    assert call(built, f"{patch}('x86-64-v3', ('an unknown instruction',))\n{CALL}") == (20, 0)
    assert call(built, f"{patch}('another processor', ())\n{CALL}") == (20, 0)
    assert call(built, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="") == (20, 0)


def test_a_wheel_with_kernels_lists_them_and_has_the_tag_of_its_platform(backend, package, tmp_path):
    info = package / "structrank-1.0.dist-info"
    info.mkdir()
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Pure: true\nTag: py3-none-any\n")
    (info / "RECORD").write_text("")
    pure = tmp_path / "structrank-1.0-py3-none-any.whl"
    with zipfile.ZipFile(pure, "w") as wheel:
        for path in package.rglob("*"):
            wheel.write(path, path.relative_to(package))
    made = backend.add_kernels(pure)
    assert not pure.exists()
    with zipfile.ZipFile(made) as wheel:
        content = {name: wheel.read(name) for name in wheel.namelist()}
    assert sum(name.startswith("structrank/part/prebuilt/module.f") for name in content) == 2
    assert not any("__pycache__" in name for name in content)
    tag = made.name.removeprefix("structrank-1.0-").removesuffix(".whl")
    assert tag in map(str, packaging.tags.sys_tags())
    assert content[f"{info.name}/WHEEL"].decode().splitlines()[1:] == ["Root-Is-Pure: false", f"Tag: {tag}"]
    record = dict(line.split(",", 1) for line in content[f"{info.name}/RECORD"].decode().splitlines())
    assert record.pop(f"{info.name}/RECORD") == ","
    for name, entry in record.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content[name]).digest()).decode().rstrip("=")
        assert entry == f"sha256={digest},{len(content[name])}"
    assert {*record} == {*content} - {f"{info.name}/RECORD"}


def test_only_wheels_with_kernels_need_the_requirements_of_the_package(backend, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(backend.build_meta, "get_requires_for_build_wheel", lambda config_settings: [])
    assert any(name.startswith("numba>=") for name in backend.get_requires_for_build_wheel())
    assert backend.get_requires_for_build_wheel({"kernels": "no"}) == []


def test_a_wheel_is_built_without_kernels_on_request_and_where_numba_is_missing(backend, monkeypatch, tmp_path, capsys):
    (tmp_path / "pure.whl").write_text("")
    monkeypatch.setattr(backend.build_meta, "build_wheel", lambda *_: "pure.whl")
    monkeypatch.setattr(backend, "add_kernels", lambda path: path.with_name("kernels.whl"))
    assert backend.build_wheel(str(tmp_path)) == "kernels.whl"
    assert capsys.readouterr().out.startswith("compiling kernels for the wheel")
    assert backend.build_wheel(str(tmp_path), {"kernels": "no"}) == "pure.whl"
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(backend.importlib.util, "find_spec", lambda name: None)
    assert backend.build_wheel(str(tmp_path)) == "pure.whl"
    assert "numba is not installed" in capsys.readouterr().out
