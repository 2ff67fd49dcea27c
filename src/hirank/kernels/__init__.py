"""Kernels, one module each: a formula and its derivatives.

To add a kernel, write its module and add it below: to `BuiltinKernel`, and to `KERNELS` if the
estimators should know it by a name. A kernel that is passed as an object needs neither.
"""

from collections.abc import Callable
from typing import TypeAlias

from hirank.kernels.base import BoundKernel, Kernel
from hirank.kernels.poly import Poly
from hirank.kernels.rbf import RBF, mean_distance

__all__ = ["KERNELS", "RBF", "BoundKernel", "BuiltinKernel", "Kernel", "Poly", "mean_distance"]

BuiltinKernel: TypeAlias = RBF | Poly
"""The kernels that a model file may contain."""

KERNELS: dict[str, Callable[[int, float], Kernel]] = {
    "rbf": lambda degree, offset: RBF(),  # its bandwidth is resolved on data
    "poly": Poly,
}
"""Named kernels, made of the parameters `degree` and `offset` of an estimator."""
