"""The folder with data files, and MATLAB files with checked keys."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

VARIABLE = "HIRANK_DATA"
"""The environment variable with the path of the data folder."""
DEFAULT = Path(__file__).parents[2] / "data"


def data_folder() -> Path:
    """Return the folder in HIRANK_DATA; `data` in the repository if that is not set."""
    return Path(os.environ.get(VARIABLE) or DEFAULT)


def find_file(names: Sequence[str | Path], how_to_get: str) -> Path:
    """Return the first of the names that is a file, as a path or in the data folder."""
    folder = data_folder()
    for place in (*map(Path, names), *(folder / name for name in names)):
        if place.is_file():
            return place
    raise FileNotFoundError(
        f"File {' or '.join(map(str, names))} was not found, nor is it in the data folder "
        f"{folder}. {how_to_get} Set the data folder with the environment variable {VARIABLE}, "
        "or with the option --data."
    )


def read_mat(path: Path, keys: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a MATLAB file under `keys`; raise if one is absent or not numeric."""
    try:
        content = loadmat(path)
    except Exception as error:  # SciPy raises many kinds of errors for broken files
        raise ValueError(f"{path} cannot be read as a MATLAB file: {error}") from error
    found = [key for key in content if not key.startswith("__")]
    for key in keys:
        if key not in content:
            raise ValueError(
                f"{path} has no key {key!r} (keys: {', '.join(map(repr, found)) or 'none'}). "
                "This is not the expected file."
            )
        values = content[key]
        if values.dtype.kind not in "fiu" or not np.isfinite(values).all():
            raise ValueError(f"{path}: key {key!r} must contain finite real numbers only.")
    return {key: content[key] for key in keys}
