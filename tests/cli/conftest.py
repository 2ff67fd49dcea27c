"""The real program, run as users run it."""

import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.curves import curve, to_csv
from helpers.program import invoke
from helpers.streams import save_fitted


@pytest.fixture(scope="session")
def hirank():
    """A function that runs `hirank ARGUMENTS` and returns the finished process."""

    def run(*arguments, stdin=None, cwd=None, env=None, timeout=120):
        return subprocess.run(
            [sys.executable, "-m", "hirank", *map(str, arguments)],
            input=stdin,
            capture_output=True,
            text=not isinstance(stdin, bytes),
            cwd=cwd,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **(env or {})},
            timeout=timeout,
            check=False,
        )

    return run


@pytest.fixture
def in_process(monkeypatch):
    """The same in this process, which saves the second that imports take."""

    def run(*arguments, cwd=None):
        if cwd is not None:
            monkeypatch.chdir(cwd)
        result = invoke(*arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return SimpleNamespace(
            returncode=result.exit_code, stdout=result.stdout, stderr=result.stderr
        )

    return run


@pytest.fixture(scope="session")
def curved(tmp_path_factory):
    """A folder with table.csv, which has missing values, and truth.npy."""
    folder = tmp_path_factory.mktemp("curved")
    truth, missing = curve()
    (folder / "table.csv").write_text(to_csv(missing))
    np.save(folder / "truth.npy", truth)
    return folder


@pytest.fixture(scope="session")
def completed(curved, hirank, tmp_path_factory):
    """The finished process of `hirank complete` with all its outputs, and the folder of these."""
    folder = tmp_path_factory.mktemp("completed")
    done = hirank(
        "complete", curved / "table.csv", "-o", "f.csv", "--save", "m.hirank",
        "--report", "r.html", "--interval", "0.9", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done, folder


@pytest.fixture(scope="session")
def fitted(curved, completed):
    """The folder of table.csv, with the model.hirank that was fitted to it."""
    shutil.copy(completed[1] / "m.hirank", curved / "model.hirank")
    return curved


@pytest.fixture(scope="session")
def model_bytes(tmp_path_factory):
    """The file of a fitted model of a stream."""
    path = tmp_path_factory.mktemp("model") / "model.hirank"
    save_fitted(path)
    return path.read_bytes()


@pytest.fixture
def model(tmp_path, model_bytes):
    """A copy of this file."""
    path = tmp_path / "model.hirank"
    path.write_bytes(model_bytes)
    return path
