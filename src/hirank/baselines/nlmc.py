"""Nonlinear completion: the penalty of VMC with the RBF kernel."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from hirank._checks import Rule, number, optional
from hirank._typing import Array, BoolArray
from hirank.baselines.irls_imputer import IRLS_RULES, IRLSImputer
from hirank.baselines.reweighted import PenaltyPath
from hirank.kernels import RBF

# The authors' values; the first is taken where there are too few entries to hold any out.
BANDWIDTHS = (3.0, 1.0, 0.5)


@dataclass(eq=False, repr=False)
class NLMC(IRLSImputer):
    """Imputation of tables whose rows lie on smooth surfaces.

    Seen through an RBF kernel, the images of such rows are close to a space of few dimensions.
    Missing entries are chosen such that the Schatten-p penalty of these images is low, by
    iteratively reweighted least squares (Fan and Chow 2018), as in :class:`VMC`.

    Parameters
    ----------
    bandwidth : float or "auto", default="auto"
        Length scale of the kernel as a multiple of the mean distance between samples. ``"auto"``
        takes that of 0.5, 1 and 3 which recovers a few hidden entries best.
    smoothing : float or "auto", default="auto"
        As in :class:`VMC`. On noisy data, narrow kernels fit best with more of it.
    random_state : int, RandomState or None, default=None
        Chooses the entries that are hidden.
    power, n_landmarks, max_iter
        As in :class:`VMC`.
    tol : float, default=3e-4
        A stage ends when the penalty fell by less than this fraction over ten steps.
    scale, missing_values, add_indicator, keep_empty_features, verbose
        As in :class:`hirank.KFMC`.

    Attributes
    ----------
    bandwidth_ : float
    kernel_ : RBF
        For scaled features, at the end.
    smoothing_ : float
        At the end; k(x, x) is 1.
    objective_, n_iter_, stop_reason_, trace_, has_values_, n_features_in_, feature_names_in_
        As in :class:`hirank.KFMC`. The objective is the penalty in units of its steepest slope.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.baselines import NLMC
    >>> t = np.linspace(-1, 1, 60)
    >>> X = np.column_stack([t, t**2, t**3, np.cos(3 * t)])
    >>> holes = X.copy()
    >>> holes[::3, 1] = np.nan
    >>> filled = NLMC(random_state=0).fit_transform(holes)
    >>> bool(np.abs(filled - X).max() < 0.05)
    True
    """

    bandwidth: float | str = "auto"
    _: KW_ONLY
    tol: float = 3e-4

    _rules: ClassVar[dict[str, Rule]] = {
        "bandwidth": optional(number(above=0), "auto"),
        **IRLS_RULES,
    }

    def _paths(self, X: Array, observed: BoolArray) -> list[PenaltyPath]:
        bandwidths = BANDWIDTHS if self.bandwidth == "auto" else (float(self.bandwidth),)
        return [self._path(RBF(), bandwidth) for bandwidth in bandwidths]
