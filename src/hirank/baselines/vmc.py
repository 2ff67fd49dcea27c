"""Completion under an algebraic variety model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.baselines.irls_imputer import IRLSImputer
from hirank.baselines.reweighted import PenaltyPath
from hirank.kernels import Poly


@dataclass(eq=False, repr=False)
class VMC(IRLSImputer):
    """Imputation of tables whose rows lie on an algebraic variety, or a union of subspaces.

    Such rows satisfy polynomial equations, so their monomials up to some degree, the images of the
    rows under a polynomial kernel, span few dimensions. Missing entries are chosen such that the
    Schatten-p penalty of these images is low, by iteratively reweighted least squares (Ongie,
    Willett, Nowak and Balzano 2017).

    Parameters
    ----------
    degree : int, default=2
        Degree of the equations.
    offset : float, default=1.0
        Not negative. Weight of the lower degrees, in units of the mean of |x|^2: the kernel is
        (x.y / mean of |x|^2 + offset)^degree.
    power : float, default=0.5
        p of the penalty, above 0 and at most 1. Lower values are closer to a rank and get stuck
        more easily.
    smoothing : float or "auto", default="auto"
        Where the smoothing of the penalty ends, in units of the mean of k(x, x); it falls from 0.1,
        a decade a stage. ``"auto"`` goes down to 1e-8 or stops where a few hidden entries are
        recovered best.
    n_landmarks : int or "auto", default="auto"
        Samples that stand for all others in the kernel matrix, chosen anew in each stage. As many
        as samples is exact; memory is proportional to it. ``"auto"`` takes
        ``3.8 * n_samples**0.6``, between 150 and 400.
    max_iter : int, default=150
        Most steps in each stage.
    tol : float, default=1e-3
        A stage ends when the penalty fell by less than this fraction over ten steps.
    random_state : int, RandomState or None, default=None
        Chooses the entries that are hidden if ``smoothing="auto"``.
    scale, missing_values, add_indicator, keep_empty_features, verbose
        As in :class:`hirank.KFMC`.

    Attributes
    ----------
    kernel_ : Poly
        For scaled features.
    smoothing_ : float
        At the end, in units of the mean of k(x, x).
    objective_, n_iter_, stop_reason_, trace_, has_values_, n_features_in_, feature_names_in_
        As in :class:`hirank.KFMC`. The objective is the penalty in units of its steepest slope.

    Notes
    -----
    ``transform`` chooses the missing entries of a new sample such that its image is close to the
    span of the images of the landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.baselines import VMC
    >>> rng = np.random.default_rng(0)
    >>> P, s = rng.normal(size=(2, 8)), rng.uniform(-1, 1, size=(80, 1))
    >>> X = np.hstack([s, s**2]) @ P  # a parabola in a plane
    >>> holes = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    >>> filled = VMC(random_state=0).fit_transform(holes)
    >>> bool(np.abs(filled - X).max() < 0.01)
    True
    """

    degree: int = 2
    offset: float = 1.0

    def _check_parameters(self) -> None:
        Poly(self.degree, self.offset)
        super()._check_parameters()

    def _paths(self, X: Array, observed: BoolArray) -> list[PenaltyPath]:
        size = X.shape[1] * float(np.mean(np.square(X[observed])))
        return [self._path(Poly(self.degree, self.offset * size))]
