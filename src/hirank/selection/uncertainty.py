"""How far fills may be from the truth: intervals and draws, from what hidden entries showed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.models.calibration import Calibration, Covariates
from hirank.models.mixture import Mixture
from hirank.models.stacking import Blend, disagreement
from hirank.selection.results import HeldOut


@dataclass(frozen=True)
class Confidence:
    """A calibration, and the models that tell how sure a fill is."""

    calibration: Calibration
    blend: Blend
    mixture: Mixture | None

    @classmethod
    def learn(
        cls,
        held_out: HeldOut,
        blend: Blend,
        mixture: Mixture | None,
        n_features: int,
        gain: float = 1.0,
    ) -> Confidence:
        """From the hidden entries of a table with `n_features`; errors are taken `gain` times."""
        covariates = Covariates(
            held_out.columns,
            held_out.spread,
            # Around the blend, as for new entries, even where neighbors in time moved the fills.
            disagreement(held_out.fills.T, held_out.fills @ blend.shares()),
        )
        residuals = gain * (held_out.fill - held_out.truth)
        return cls(Calibration.learn(residuals, covariates, n_features), blend, mixture)

    def half_width(self, X: Array, observed: BoolArray, coverage: float) -> Array:
        """Half the widths of intervals around the fills of X, n x v; 0 where observed."""
        half = np.zeros(X.shape)
        half[~observed] = self.calibration.half_width(self.covariates(X, observed), coverage)
        return half

    def draw(
        self,
        filled: Array,
        observed: BoolArray,
        covariates: Covariates,
        rng: np.random.Generator,
    ) -> Array:
        """The table as it may be, n x v, around its fills; covariates are those of its holes."""
        return self.calibration.draw(filled, observed, covariates, self.mixture, rng)

    def covariates(self, X: Array, observed: BoolArray) -> Covariates:
        """Those of the missing entries of X, n x v."""
        missing = ~observed
        deviation, spread = np.zeros(X.shape), np.zeros(X.shape)
        if self.mixture is not None:
            deviation = self.mixture.conditional(X, observed)[1]
        todo = missing.any(axis=1) & observed.any(axis=1)
        if len(self.blend.parts) > 1 and todo.any():
            spread[todo] = self.blend.spread(self.blend.fills(X[todo], observed[todo]))
        return Covariates(np.nonzero(missing)[1], deviation[missing], spread[missing])
