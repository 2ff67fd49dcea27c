"""Data to try hirank on."""

from hirank.datasets.synthetic import polynomial_manifolds

__all__ = ["polynomial_manifolds"]
