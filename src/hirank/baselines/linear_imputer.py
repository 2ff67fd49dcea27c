"""What the low-rank imputers share: new rows are completed from a subspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hirank.estimators.base import Imputer
from hirank.models.low_rank import Subspace


@dataclass(eq=False, repr=False)
class LinearImputer(Imputer):
    """An imputer that completes new rows from a subspace."""

    def _publish(self, outcome: Any) -> None:
        super()._publish(outcome)
        assert isinstance(self._rows, Subspace)
        basis, spread = self._rows.basis, self._scaling.spread
        varying = spread > 0
        self.components_ = np.zeros((len(basis), len(spread)))
        self.components_[:, varying] = basis[:, : varying.sum()] * spread[varying]
