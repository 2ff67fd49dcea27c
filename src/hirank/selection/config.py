"""Constants of the model search, each measured: docs/notes/selection.md."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from hirank._typing import Array
from hirank.core.masking import MaskingConfig
from hirank.models.als import ALSConfig
from hirank.models.em import EMConfig
from hirank.models.fit_factors import FactorConfig
from hirank.models.fit_schatten import LAST_SMOOTHING, default_n_landmarks
from hirank.optim.path import WINDOW
from hirank.selection.growth import GrowthConfig


@dataclass(frozen=True)
class DictionaryConfig:
    """Constants of the search for a dictionary.

    Errors are in standard deviations of the features. Tables on which other families have a smaller
    error than `exact_error` are nearly exact: there, late stages of a path can gain much.
    """

    max_rows: int = 2500  # to compare paths on (docs/notes/large_tables.md),
    max_rows_noisy: int = 5000  # and on very noisy tables, where points follow the noise of few
    first_size: float = 1 / 3  # of the default number of points, to begin with
    min_points: int = 15
    max_size: float = 2.0  # of the default number of points, to which a dictionary may grow
    max_points: int = 800
    max_features: int = 1000  # of a table: with more, a path takes minutes, and factor analysis was
    # ahead wherever it ended (docs/notes/wide_tables.md)
    growth: int = 3  # factor from one size to the next
    smooth_bandwidths: tuple[float, ...] = (2.0, 2.0, 2.0, 2.0, 3.0, 5.0, 8.0)  # for noisy tables
    smooth_beta: float = 10.0  # first ridge of that path, in units of the usual one
    max_ratio_start: float = 0.7  # error of a start over that of linear families: a good start
    later_stages: tuple[int, ...] = (2, 4)  # to begin with from there
    probe_stages: int = 3  # stages after which paths are compared; only the best continues
    max_ratio_path: float = 1.25  # error over that of a path before after its first stage, from
    # which a path is given up on large tables
    min_improvement: float = 0.03  # relative gain that a larger dictionary must bring
    min_improvement_behind: float = 0.1  # the same while other families are ahead
    min_improvement_stack: float = 0.02  # the same of the stack with the best of these instead
    min_improvement_noisy: float = 0.15  # gain of one growth on noisy tables, from which a second
    # one is tried
    exact_error: float = 0.1
    max_ratio: float = 1.1  # error over that of other families from which a path is abandoned
    max_ratio_exact: float = 3.0  # the same on nearly exact tables
    max_ratio_late: float = 2.0  # the same for dictionaries that start late from a good start,
    # and for any that may have more points
    min_gain_late: float = 0.9  # error over that of a good start, from which the start is preferred
    max_ratio_routed: float = 0.1  # error of routed dictionaries over that of their mixture
    rough_tol: float = 10.0  # times `tol` on noisy tables, where the ends of stages gain little
    ahead: float = 0.95  # error over that of other families from which `tol` is exact after all,
    rough_error: float = 0.05  # but on large tables only with at most this error
    min_gain: float = 0.01  # of a stage on large tables, below which a path that is rough ends
    perfect_error: float = 1e-3  # error that needs no improvement
    max_restart_points: int = 240  # larger dictionaries never gained from a second path
    max_points_many: int = 120  # points up to which `n_models` dictionaries are averaged
    n_models: int = 4
    n_models_large: int = 2
    member_stages: int = 2  # stages before the last with which dictionaries after the first begin


@dataclass(frozen=True)
class SchattenConfig:
    """Constants of low-rank kernel matrices (docs/notes/schatten.md).

    Tolerances are in units of that of the solver.
    """

    max_rows: int = 1500  # of a table: in more rows, dictionaries do more in the same time
    max_features: int = 1000  # as of dictionaries
    power: float = 0.2  # p of the penalty
    noisy_power: float = 0.5  # the same on noisy tables, where a lower one has larger large errors
    bandwidths: tuple[float, ...] = (3.0, 1.0, 0.5)  # of the RBF kernels that are compared
    smoothing: float = LAST_SMOOTHING  # of the last stage
    max_iter: int = 150  # steps in each stage, unless the solver takes fewer
    max_unit_ratio: float = 30.0  # of spreads, up to which features may share a unit
    tol: float = 1.0
    decades: float = 1.0  # by which the smoothing falls from one stage to the next
    window: int = WINDOW  # steps over which a stage is judged
    max_landmarks: int | None = None
    restarts: bool = True  # of rows that fit badly, between stages
    rough_tol: float = 3.0  # while the table may be noisy
    rough_iter: int = 60  # the same
    rough_bandwidths: tuple[float, ...] = (3.0,)  # the same
    rough_landmarks: int = 100  # the same, at most, with up to 25 features
    rough_decades: float = 2.0  # the same, after the first path
    rough_window: int = 5  # on very noisy tables
    max_ratio_rough: float = 1.25  # error over that of the families before, from which a path is
    # given up while the table may be noisy
    probe_stages: int = 4  # after which paths are compared,
    max_ratio_units: float = 1.1  # the better ones of several units continue, and other kernels are
    max_ratio_curved: float = 0.2  # error of degree 2 over that of the families before, up to which
    # no RBF kernel is compared
    max_ratio_behind: float = 1.5  # and given up with more than so many times the lowest loss
    exact_tol: float = 0.3  # of refits where the family is far ahead of those before,
    max_ratio_exact: float = 0.7  # with an error of at most this part of theirs
    exact_error: float = 0.1  # of the families before, above which a table may be noisy,
    max_ratio_noisy: float = 0.95  # and is, unless a rough fit has less than this part of it
    perfect_error: float = 1e-3  # the same that needs no improvement
    recovered_error: float = 1e-4  # own error from which a refit of the last stage is enough
    close_error: float = 0.01  # own error up to which the last stage of a refit has
    close_landmarks: int = 2  # so many times the landmarks
    min_gain: float = 0.99  # error over that two decades before; a path on a noisy table ends above
    refit_stage: int = 2  # from which refits begin that start from a fold
    n_models: int = 4  # refits that are averaged, at most one more than folds
    n_models_noisy: int = 2

    def rough(self, *, noisy: bool, narrow: bool = False) -> SchattenConfig:
        """Return the constants for a table that may be noisy, or that is very `noisy`.

        On `narrow` tables errors at held-out entries show too little to save time by them.
        """
        return replace(
            self,
            power=self.noisy_power,
            tol=self.rough_tol,
            max_iter=self.rough_iter,
            bandwidths=self.bandwidths if narrow else self.rough_bandwidths,
            decades=self.rough_decades if noisy else self.decades,
            window=self.rough_window if noisy else self.window,
            max_landmarks=None if narrow else self.rough_landmarks,
            max_ratio_rough=np.inf if narrow else self.max_ratio_rough,
            restarts=not noisy,
        )

    def n_landmarks(self, X: Array) -> int | None:
        """Return the number of landmarks of a table, n x v; None for the rule of the path."""
        if self.max_landmarks is None:
            return None
        return min(default_n_landmarks(len(X)), max(self.max_landmarks, 4 * X.shape[1]))

    @property
    def is_rough(self) -> bool:
        """Whether these are the constants for a table that may be noisy."""
        return self.power == self.noisy_power


@dataclass(frozen=True)
class RoutedConfig:
    """Constants of routed dictionaries (docs/notes/routed.md)."""

    min_table_rows: int = 500
    perfect_error: float = 1e-3  # of the families before that needs no improvement
    min_components: int = 3
    min_share: float = 0.9  # posterior probability from which a row counts as one of a component
    min_rows: int = 40  # of these; the rows of a smaller component go to others
    max_rows: int = 1200  # of a component, to fit on
    rows_per_point: int = 10
    min_points: int = 60  # of a dictionary, if it has twice as many rows
    max_points: int = 120
    bandwidths: tuple[float, ...] = (1.0, 1.5, 2.0, 5.0)  # of the stages
    max_iter: int = 100  # steps in each stage, unless the solver takes fewer
    rough_tol: float = 10.0  # times `tol` on large tables where they gain little
    n_probes: int = 3  # components that are fitted first
    clear_ratio: float = 0.5  # their error over that of the mixture, which needs no comparison
    max_ratio: float = 1.05  # the same, below which all components are fitted


@dataclass(frozen=True)
class ExactConfig:
    """Constants of the selection where held-out rows are poorer than those to impute.

    See "Narrow tables" in docs/notes/selection.md.
    """

    # Observed entries of a row that are left when one is held out, over those of a row with missing
    # entries, up to which the errors of both differ: 1 of 2 and 2 of 3, not 3 of 4.
    max_left: float = 0.7
    max_median: float = 0.01  # error of an exact model, in standard deviations
    min_entries: int = 30  # a median over fewer entries is left to chance


@dataclass(frozen=True)
class NoiseConfig:
    """When a linear model of a large table leaves only noise (docs/notes/large_tables.md)."""

    max_ratio: float = 1.12  # error at held-out entries over the noise in those that were fitted


@dataclass(frozen=True)
class SearchConfig:
    """Constants of the whole search."""

    # Entries of a table from which time is saved at the cost of some chance in what is selected
    # (docs/notes/large_tables.md).
    large_size: int = 100_000
    # Error of the best other family in standard deviations, above which a table is very noisy: rows
    # that fit badly do not restart from elsewhere (docs/notes/selection.md).
    noisy_error: float = 0.4
    max_rows: int = 10_000  # rows to select and fit on; the others are imputed out of sample
    # Loss of a mixture over that of one Gaussian, below which no other linear model is fitted.
    mixture_gain: float = 0.85
    n_models: int = 4  # refits of a mixture that are averaged, unless `n_init` is given
    mixture_refit_steps: int = 12
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    exact: ExactConfig = field(default_factory=ExactConfig)
    noise: NoiseConfig = field(default_factory=NoiseConfig)
    schatten: SchattenConfig = field(default_factory=SchattenConfig)
    routed: RoutedConfig = field(default_factory=RoutedConfig)
    dictionary: DictionaryConfig = field(default_factory=DictionaryConfig)
    growth: GrowthConfig = field(default_factory=GrowthConfig)
    mixture: EMConfig = field(default_factory=EMConfig)
    factors: FactorConfig = field(default_factory=FactorConfig)
    low_rank: ALSConfig = field(default_factory=ALSConfig)
