"""Hopkins155: points tracked through a video, each on one of a few moving objects."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from hirank._checks import count
from hirank._typing import Array, IntArray
from reproduction.readers.files import find_file, read_mat

HOW = (
    "Download Hopkins155 from http://www.vision.jhu.edu/data/hopkins155/ and pass the path of a "
    "*_truth.mat file, or save the file in that folder."
)


class Trajectories(NamedTuple):
    """Points (n) with two coordinates in each frame, and the object that each is on."""

    X: Array  # n x (2 * frames)
    labels: IntArray  # n


def load_hopkins(name: str | Path, *, frames: int = 6) -> Trajectories:
    """Read a sequence of Hopkins155 as in the paper: 2 coordinates in 6 evenly spaced frames.

    Parameters
    ----------
    name : str or path
        A file, or the name of a sequence such as "1R2RC", whose file 1R2RC_truth.mat is here or in
        the folder that the environment variable HIRANK_DATA names (or in a subfolder 1R2RC).
    frames : int, default=6
        Of f frames those at ``np.linspace(0, f - 1, frames)``, rounded: the first, the last, and
        evenly between them. frames=1 takes the first.

    Returns
    -------
    trajectories : record with X and labels
        X is points x (2 * frames), in the order of the frames: x, y of the first, x, y of the
        second and so on. labels has a number for each point, as stored (from 1).

    Examples
    --------
    >>> import numpy as np, scipy.io, tempfile, pathlib
    >>> from reproduction.readers import load_hopkins
    >>> x = np.random.default_rng(0).random((3, 5, 10))
    >>> x[2] = 1
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "small_truth.mat"
    ...     scipy.io.savemat(path, {"x": x, "s": [[1], [1], [2], [2], [2]]})
    ...     X, labels = load_hopkins(path)
    >>> X.shape, labels.tolist()
    ((5, 12), [1, 1, 2, 2, 2])
    """
    name = Path(name)
    file = f"{name.name}_truth.mat"
    path = find_file([name] if name.suffix else [name.with_name(file), name / file], HOW)
    content = read_mat(path, ("x", "s"))
    x, s = content["x"], content["s"].ravel()
    if x.ndim != 3 or len(x) != 3 or not x.size:
        raise ValueError(f"{path}: x must be 3 x points x frames; its shape is {x.shape}.")
    if not np.allclose(x[2], 1):
        raise ValueError(f"{path}: the third coordinate in x must be 1 (homogeneous coordinates).")
    if len(s) != x.shape[1] or (s != s.astype(np.intp)).any():
        raise ValueError(
            f"{path}: s must contain an integer for each of the {x.shape[1]} points in x; "
            f"its shape is {content['s'].shape}."
        )
    count(most=x.shape[2])("frames", frames)
    selected = np.linspace(0, x.shape[2] - 1, frames).round().astype(int)
    X = x[:2, :, selected].transpose(1, 2, 0).reshape(len(s), 2 * frames)
    return Trajectories(X.astype(np.float64), s.astype(np.intp))
