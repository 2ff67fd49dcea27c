"""A compiled core that cannot be used: the NumPy code runs, and one warning states the reason."""

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from helpers.compiled import COMPILED

import hirank

PACKAGE = Path(hirank.__file__).parent
CODE = """
import warnings
from hirank import _compiled

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert _compiled.core() is _compiled.core()
print(_compiled.describe())
for one in caught:
    print(one.category.__name__, one.message)
"""


@pytest.fixture
def installed(tmp_path):
    """A copy of the package, as a wheel installs it."""
    ignored = shutil.ignore_patterns("*.cpp", "*.h", "__pycache__")
    return Path(shutil.copytree(PACKAGE, tmp_path / "hirank", ignore=ignored))


def run(folder: Path) -> list[str]:
    """Return what the code prints, with the package in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder.parent), "HIRANK_COMPILED": ""}
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def modules(folder: Path) -> list[Path]:
    return [path for name in COMPILED for path in (folder / "_compiled").glob(f"{name}.*")]


def remove(folder: Path) -> None:
    for path in modules(folder):
        path.unlink()


def test_without_modules_numpy_is_used_without_a_warning(installed):
    remove(installed)
    assert run(installed) == ["off (it was not built; NumPy is used instead)"]


def test_modules_of_another_python_are_as_none(installed):
    for path in modules(installed):
        path.rename(path.with_name(path.name.split(".")[0] + ".cpython-27-nowhere.so"))
    assert run(installed) == ["off (it was not built; NumPy is used instead)"]


@pytest.mark.skipif(sys.platform != "linux" or not COMPILED, reason="ELF files only")
@pytest.mark.parametrize("part", [0.1, 0.5, 0.99])
def test_a_module_that_is_cut_off_is_reported_and_does_not_crash(installed, part):
    for path in modules(installed):
        path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])
    core, *warnings = run(installed)
    assert core == f"off ({COMPILED[0]} cannot be loaded: the file is cut off)"
    assert len(warnings) == 1


@pytest.mark.parametrize("content", [b"", b"not a library"])
def test_a_damaged_module_is_reported_once(installed, content):
    remove(installed)
    for name in ("baseline", "x86_64_v3"):
        (installed / "_compiled" / (name + EXTENSION_SUFFIXES[0])).write_bytes(content)
    core, *warnings = run(installed)
    assert core.startswith("off (x86_64_v3 cannot be loaded: ")
    assert len(warnings) == 1
    assert warnings[0].startswith("CompiledCoreWarning The compiled core x86_64_v3 cannot be load")
    assert "NumPy is used instead" in warnings[0]
    assert "HIRANK_COMPILED=off" in warnings[0]


@pytest.mark.skipif(not COMPILED, reason="not compiled")
def test_a_module_that_was_built_from_other_sources_is_reported_once(installed):
    for path in [*(PACKAGE / "_compiled").glob("*.cpp"), *(PACKAGE / "_compiled").glob("*.h")]:
        shutil.copy(path, installed / "_compiled")
    with (installed / "_compiled" / "module.cpp").open("a") as file:
        file.write("// changed\n")
    core, *warnings = run(installed)
    assert core.startswith("off (x86_64_v3 was built from other sources")
    assert len(warnings) == 1


@pytest.mark.skipif(len(COMPILED) < 2, reason="one instruction set")
def test_one_damaged_module_leaves_the_other(installed):
    path = modules(installed)[0]
    path.write_bytes(b"not a library")
    core, *warnings = run(installed)
    assert core == COMPILED[1]
    assert len(warnings) == 1
    assert f"{COMPILED[1]} is used instead" in warnings[0]
