"""CMU motion capture as the paper uses it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hirank._checks import check_counts
from reproduction.readers.asf_amc import Motion, number_channels, read_amc
from reproduction.readers.files import find_file, read_mat

PAPER_FILE = "cmu_mocap_56_06.mat"
HOW = (
    "Download subject 56, trial 06 from http://mocap.cs.cmu.edu/ (an .amc file) and pass its path, "
    f"or save it in that folder as {PAPER_FILE}, with the table as key X, 62 x frames."
)
# fmt: off
CMU_BONES = {
    "root": 6, "lowerback": 3, "upperback": 3, "thorax": 3, "lowerneck": 3, "upperneck": 3,
    "head": 3, "rclavicle": 2, "rhumerus": 3, "rradius": 1, "rwrist": 1, "rhand": 2, "rfingers": 1,
    "rthumb": 2, "lclavicle": 2, "lhumerus": 3, "lradius": 1, "lwrist": 1, "lhand": 2,
    "lfingers": 1, "lthumb": 2, "rfemur": 3, "rtibia": 1, "rfoot": 2, "rtoes": 1, "lfemur": 3,
    "ltibia": 1, "lfoot": 2, "ltoes": 1,
}
# fmt: on
"""Bones of the CMU skeletons in the order of their files, and how many numbers each has."""


def load_mocap(
    path: str | Path | None = None, *, step: int = 2, skeleton: str | Path | None = None
) -> Motion:
    """Read a CMU motion as in the paper: 62 features, every second frame.

    Parameters
    ----------
    path : path, optional
        An .amc file, or a .mat file with the table as key X, 62 x frames, as a path or in the data
        folder. By default cmu_mocap_56_06.mat (subject 56, trial 06), the paper's table.
    step : int, default=2
        Take every step-th frame, from the first on.
    skeleton : path, optional
        An .asf file to check an .amc file against, see `read_amc`.

    Returns
    -------
    motion : record with X and names
        X is frames x 62. In the paper's table the fingers are constant, and so are the clavicles,
        up to rounding errors: exclude these six where features are standardized.

    Examples
    --------
    >>> from reproduction.readers import load_mocap
    >>> X, names = load_mocap()  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (3392, 62)
    """
    check_counts(step=step)
    path = find_file([PAPER_FILE if path is None else path], HOW)
    expected = sum(CMU_BONES.values())
    if path.suffix.lower() == ".amc":
        motion = read_amc(path, skeleton=skeleton)
        if motion.X.shape[1] != expected:
            raise ValueError(
                f"{path} has {motion.X.shape[1]} features, not the {expected} of the CMU "
                "skeletons. Read it with read_amc."
            )
    elif path.suffix.lower() == ".mat":
        if skeleton is not None:
            raise ValueError(f"skeleton requires an .amc file; got {path}.")
        table = read_mat(path, ("X",))["X"]
        if table.ndim != 2 or len(table) != expected or not table.size:
            raise ValueError(f"{path}: X must be {expected} x frames; its shape is {table.shape}.")
        motion = Motion(table.T.astype(np.float64), number_channels(CMU_BONES))
    else:
        raise ValueError(f"{path} is neither an .amc nor a .mat file.")
    return motion._replace(X=motion.X[::step])
