"""Data to try hirank on, and ways to make entries go missing.

- Tables: `polynomial_manifolds`, `smooth_manifolds` (one or unions), `twisted_cubic`; `add_noise`.
- Streams without end, with and without changes: `polynomial_stream`, `smooth_stream`.
- Missing patterns, which give `observed` (True = known): `uniform_missing`, `missing_per_sample`,
  `missing_gaps`, `value_dependent_missing`, `missing_blocks`.

Rows are samples everywhere, and ``random_state`` is an int, a numpy Generator or None.
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
