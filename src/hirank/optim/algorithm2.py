"""The paper's Algorithm 2: samples come in order, and each, or each mini-batch, improves D.

With D fixed, codes and missing entries of a sample are improved in turn; then D takes one step.
A batch of one is the algorithm as printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from hirank import _compiled
from hirank._typing import Array, BoolArray, Shape
from hirank.kernels import RBF, Kernel, Poly
from hirank.optim.algorithm2_steps import sweep
from hirank.optim.newton import MOMENTUM, RELAXATION
from hirank.optim.path import Setting

# For standardized features; measured in docs/notes/algorithm2.md.
BANDWIDTH = 1.5  # of RBF, in mean distances of the table with 0 at missing entries
FIRST_BETA, LAST_BETA = 1e-1, 1e-3  # of RBF: the ridge of the first and the last of several passes
STREAM_BETA = 7e-3  # of RBF, for a single pass and for a stream without end
POLY_BETA, POLY_ALPHA = 1e-2, 1e-4  # of Poly of degree 2 and offset 1, in all passes


@dataclass(frozen=True)
class Algorithm2State:
    """What Algorithm 2 keeps of the samples it has seen.

    Parameters
    ----------
    D : array, r x m
        The dictionary.
    last_D : array, r x m
        The last step of D, for the momentum.
    rejected : int
        How many samples left no trace because they led to numbers that are not finite.
    """

    D: Annotated[Array, Shape("r v")]
    last_D: Annotated[Array, Shape("r v")]
    rejected: int = 0

    @classmethod
    def start(cls, D: Array) -> Algorithm2State:
        """Return a stream that has seen nothing, at the dictionary D, r x m."""
        return cls(D, np.zeros_like(D))

    def restart(self) -> Algorithm2State:
        """Return the stream without its momentum, as the paper begins every pass over a table."""
        return Algorithm2State(self.D, np.zeros_like(self.D), self.rejected)


class Pass(NamedTuple):
    """What a pass over samples gives."""

    X: Array  # the samples, imputed, n x m
    Z: Array  # their codes, n x r
    state: Algorithm2State  # after the last of them
    # Of each sample that was not rejected: its cost, and alpha / 2 tr k(D, D), with the D that it
    # was imputed with; NaN for the others, n x 2.
    costs: Array


def falling_betas(passes: int, first: float = FIRST_BETA, last: float = LAST_BETA) -> Array:
    """Return a beta for each pass over a table, falling by a constant factor.

    A single pass gets their geometric mean. The paper keeps beta. Early passes, when most imputed
    values are wrong, do better with more
    of it, and late ones with less.

    Examples
    --------
    >>> falling_betas(3)
    array([0.1  , 0.01 , 0.001])
    >>> falling_betas(1)
    array([0.01])
    """
    if passes == 1:
        return np.array([np.sqrt(first * last)])
    return np.geomspace(first, last, passes)


def paper_pass(
    X: Array,
    observed: BoolArray,
    Z: Array,
    stream: Algorithm2State,
    setting: Setting,
    *,
    batch_size: int = 1,
    max_inner: int = 50,
    tol: float = 1e-5,
    momentum: float = MOMENTUM,
    relaxation: float = RELAXATION,
) -> Pass:
    """Pass over the rows of X, n x m, in order; return X completed, codes, the stream and costs.

    All results are new arrays of float64. A batch that leads to numbers that are not finite changes
    nothing, and ``stream.rejected`` counts its samples.

    Parameters
    ----------
    X : array, n x m
        Missing entries start from what X holds there.
    observed : bool array, n x m
        Observed entries never change.
    Z : array, n x r
        Codes of the pass before, zeros at first. They matter to `tol` only.
    stream : Algorithm2State
        For a pass over a table ``stream.restart()``, for an endless stream what the last call
        returned.
    setting : Setting
        With the kernel RBF, its sigma given, or Poly.
    batch_size : int
        Samples per step of D. They share a step length with the RBF kernel.
    max_inner : int
        Updates of the codes and the missing entries per batch, at most.
    tol : float
        A batch is done when neither its codes nor its entries change by `tol` or more.
    momentum : float
        eta of the paper: the part of the last step that is added to the next.
    relaxation : float
        tau of the paper, above 1: how much the curvature is overstated.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.kernels import RBF
    >>> from hirank.optim.path import Setting
    >>> X = np.outer(np.arange(6.0), [1, 1])
    >>> observed = np.ones(X.shape, bool)
    >>> observed[4, 1] = False
    >>> known = np.where(observed, X, 0)
    >>> stream, Z = Algorithm2State.start(X[[0, 2, 5]]), np.zeros((6, 3))
    >>> done = paper_pass(known, observed, Z, stream, Setting(RBF(4.0), 1e-3))
    >>> bool(3.5 < done.X[4, 1] < 4.5)
    True
    """
    degree, constant = _kernel_numbers(setting.kernel)
    given = np.asarray(X, np.float64)
    X, Z, D, last_D = (np.array(a, np.float64, order="C") for a in (X, Z, stream.D, stream.last_D))
    observed, costs = np.ascontiguousarray(observed, bool), np.full((len(X), 2), np.nan)
    core = _compiled.core()
    pass_over = sweep if core is None else core.algorithm2_pass
    with np.errstate(all="ignore"):  # samples with numbers that are not finite are rejected
        rejected = pass_over(
            X,
            Z,
            observed,
            D,
            last_D,
            costs,
            degree,
            constant,
            float(setting.beta),
            float(setting.alpha),
            int(batch_size),
            int(max_inner),
            float(tol),
            float(momentum),
            float(relaxation),
        )
    rejected += stream.rejected
    return Pass(np.where(observed, given, X), Z, Algorithm2State(D, last_D, rejected), costs)


def _kernel_numbers(kernel: Kernel) -> tuple[int, float]:
    """Return the kernel as `hirank.optim.algorithm2_steps` takes it: degree (0: RBF), offset."""
    if isinstance(kernel, Poly):
        return int(kernel.degree), float(kernel.offset)
    if not isinstance(kernel, RBF):
        raise TypeError(
            f"Algorithm 2 of the paper is defined for the kernels RBF and Poly, got {kernel!r}."
        )
    if kernel.sigma is None:
        raise ValueError("This RBF kernel has no sigma yet: call resolve(X, bandwidth) first.")
    return 0, float(kernel.sigma) ** -2
