"""The data folder, and the program as users run it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reproduction.readers.files import VARIABLE

ROOT = Path(__file__).parents[2]


@pytest.fixture
def data_folder():
    """The folder with the real data files; skip without it."""
    folder = Path(os.environ.get(VARIABLE, "")).resolve()
    if not os.environ.get(VARIABLE) or not (folder / "cmu_mocap_56_06.mat").is_file():
        pytest.skip(f"{VARIABLE} is not set to a folder with the data files")
    return folder


@pytest.fixture(scope="session")
def reproduction():
    """Run `python -m reproduction ARGUMENTS`; return the finished process."""

    def run(*arguments, data=None, timeout=120):
        return subprocess.run(
            [sys.executable, "-m", "reproduction", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, **({VARIABLE: str(data)} if data else {})},
            timeout=timeout,
            check=False,
        )

    return run
