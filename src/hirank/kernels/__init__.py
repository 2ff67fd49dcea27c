"""Kernels, one module each: a formula and its derivatives."""

from hirank.kernels.base import BoundKernel, Kernel
from hirank.kernels.poly import Poly
from hirank.kernels.rbf import RBF, mean_distance

__all__ = ["RBF", "BoundKernel", "Kernel", "Poly", "mean_distance"]
