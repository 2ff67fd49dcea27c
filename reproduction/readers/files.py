"""Where data files are, and MATLAB files read with their keys checked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

FOLDER = "HIRANK_DATA"
"""The environment variable that names the folder with data files."""


def find_file(names: Sequence[str | Path], how_to_get: str) -> Path:
    """The first of the names that is a file, as it is or in the folder HIRANK_DATA."""
    folder = os.environ.get(FOLDER)
    places = [Path(name) for name in names]
    if folder:
        places += [Path(folder) / name for name in names]
    for place in places:
        if place.is_file():
            return place
    where = f"{FOLDER} is {folder}" if folder else f"{FOLDER} is not set"
    raise FileNotFoundError(
        f"No file {' or '.join(map(str, names))} here or in the folder that the environment "
        f"variable {FOLDER} names ({where}). {how_to_get}"
    )


def read_mat(path: Path, keys: Iterable[str]) -> dict[str, NDArray[Any]]:
    """The arrays of a MATLAB file under `keys`; raise if one is absent or no numbers."""
    try:
        content = loadmat(path)
    except Exception as error:  # SciPy raises many kinds of them on broken files
        raise ValueError(f"{path} can't be read as a MATLAB file: {error}") from error
    found = [key for key in content if not key.startswith("__")]
    for key in keys:
        if key not in content:
            raise ValueError(
                f"{path} has no key {key!r} (it has {', '.join(map(repr, found)) or 'none'}): "
                "this is not the expected file."
            )
        values = content[key]
        if values.dtype.kind not in "fiu" or not np.isfinite(values).all():
            raise ValueError(f"{path}: key {key!r} must hold finite real numbers only.")
    return {key: content[key] for key in keys}
