"""A dictionary that was fitted by Algorithm 1 of the paper, and imputes rows by Algorithm 3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from hirank._typing import Array, BoolArray, Shape
from hirank.core.bounds import Bounds
from hirank.core.threads import Workers
from hirank.models.dictionary import check_points, points_work, span_coordinates
from hirank.models.out_of_sample import complete_by_algorithm3
from hirank.optim.algorithm3 import Algorithm3Config
from hirank.optim.path import Setting


@dataclass(frozen=True)
class NewtonDictionary:
    """Imputes rows by the steps that have fitted the dictionary: Algorithm 3 of the paper."""

    D: Annotated[Array, Shape("r v")]
    settings: tuple[Setting, ...]  # kernel and ridge of the fit; none if no feature varies
    config: Algorithm3Config
    bounds: Bounds | None = None  # of imputed values, v features in scaled units

    @property
    def width(self) -> int:
        """The number of features v."""
        return self.D.shape[1]

    @property
    def work(self) -> float:
        """The multiplications of a block of rows: see `points_work`."""
        return points_work(self.D, self.config.max_iter)

    def complete(self, X: Array, observed: BoolArray) -> Array:
        basis = self.settings[-1].basis(self.D)
        with Workers() as workers:
            return complete_by_algorithm3(
                X, observed, basis, self.config, workers, bounds=self.bounds
            )

    def coordinates(self, X: Array) -> Array:
        """Return completed rows in coordinates of the dictionary's span, n x v -> n x r."""
        return span_coordinates(X, self.D, self.settings)

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if len(self.settings) > 1:
            raise ValueError("Algorithm 1 has one setting")
        check_points(self.D, self.settings, self.bounds)
