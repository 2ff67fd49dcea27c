"""Real files for tests: from HIRANK_DATA or ../shared/data, and a skip without them."""

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture
def real_folder(monkeypatch):
    """The folder with the real files, in HIRANK_DATA for the readers to find."""
    folder = Path(os.environ.get("HIRANK_DATA", BESIDE))
    if not (folder / "cmu_mocap_56_06.mat").is_file():
        pytest.skip(f"no real data in {folder}; set HIRANK_DATA to the folder that has them")
    monkeypatch.setenv("HIRANK_DATA", str(folder))
    return folder
