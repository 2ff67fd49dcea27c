"""Synthetic data, and patterns of missing values.

- Tables: `polynomial_manifolds`, `smooth_manifolds` (one or unions), `twisted_cubic`; `add_noise`.
- Endless streams, with and without change: `polynomial_stream`, `smooth_stream`.
- Patterns, which return `observed` (False = missing): `uniform_missing`, `missing_per_sample`,
  `missing_gaps`, `value_dependent_missing`, `missing_blocks`.

Rows are samples, and ``random_state`` is an int, a NumPy Generator or None.
"""

from hirank.datasets.patterns import (
    missing_blocks,
    missing_gaps,
    missing_per_sample,
    uniform_missing,
    value_dependent_missing,
)
from hirank.datasets.streams import ManifoldStream, polynomial_stream, smooth_stream
from hirank.datasets.synthetic import (
    add_noise,
    polynomial_manifolds,
    smooth_manifolds,
    twisted_cubic,
)

__all__ = [
    "ManifoldStream",
    "add_noise",
    "missing_blocks",
    "missing_gaps",
    "missing_per_sample",
    "polynomial_manifolds",
    "polynomial_stream",
    "smooth_manifolds",
    "smooth_stream",
    "twisted_cubic",
    "uniform_missing",
    "value_dependent_missing",
]
