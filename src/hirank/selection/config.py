"""Constants of the model search, each measured: docs/notes/selection.md."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hirank.core.masking import MaskingConfig
from hirank.models.als import ALSConfig
from hirank.models.em import EMConfig
from hirank.models.fit_schatten import LAST_SMOOTHING


@dataclass(frozen=True)
class DictionaryConfig:
    """Constants of the search for a dictionary.

    Errors are in standard deviations of the features. Tables on which other families have a smaller
    error than `exact_error` are nearly exact: there, late stages of a path can gain much.
    """

    first_size: float = 1 / 3  # of the default number of points, to begin with
    min_points: int = 15
    max_size: float = 2.0  # of the default number of points, to which a dictionary may grow
    max_points: int = 800
    growth: int = 3  # factor from one size to the next
    smooth_bandwidths: tuple[float, ...] = (2.0, 2.0, 2.0, 2.0, 3.0, 5.0, 8.0)  # for noisy tables
    smooth_beta: float = 10.0  # first ridge of that path, in units of the usual one
    max_ratio_start: float = 0.7  # error of a start over that of linear families: a good start
    later_stages: tuple[int, ...] = (2, 4)  # to begin with from there
    probe_stages: int = 3  # stages after which paths are compared; only the best continues
    min_improvement: float = 0.03  # relative gain that a larger dictionary must bring
    min_improvement_behind: float = 0.1  # the same while other families are ahead
    exact_error: float = 0.1
    max_ratio: float = 1.1  # error over that of other families from which a path is abandoned
    max_ratio_exact: float = 3.0  # the same on nearly exact tables
    rough_tol: float = 10.0  # times `tol` on noisy tables, where the ends of stages gain little
    ahead: float = 0.95  # error over that of other families from which `tol` is exact after all
    perfect_error: float = 1e-3  # error that needs no improvement
    max_restart_points: int = 240  # larger dictionaries never gained from a second path
    max_points_many: int = 120  # points up to which `n_models` dictionaries are averaged
    n_models: int = 4
    n_models_large: int = 2


@dataclass(frozen=True)
class SchattenConfig:
    """Constants of low-rank kernel matrices (docs/notes/schatten.md).

    Tolerances are in units of that of the solver.
    """

    max_rows: int = 1500  # of a table: in more rows, dictionaries do more in the same time
    power: float = 0.2  # p of the penalty
    noisy_power: float = 0.5  # the same on noisy tables, where a lower one has larger large errors
    bandwidths: tuple[float, ...] = (3.0, 1.0, 0.5)  # of the RBF kernels that are compared
    smoothing: float = LAST_SMOOTHING  # of the last stage
    max_iter: int = 150  # steps in each stage, unless the solver takes fewer
    max_unit_ratio: float = 30.0  # of spreads, up to which features may share a unit
    tol: float = 1.0
    rough_tol: float = 3.0  # while the table may be noisy
    rough_iter: int = 60  # the same
    exact_tol: float = 0.3  # of refits where the family is far ahead of those before,
    max_ratio_exact: float = 0.7  # with an error of at most this part of theirs
    exact_error: float = 0.1  # of the families before, above which a table may be noisy,
    max_ratio_noisy: float = 0.85  # and is, unless a rough fit has less than this part of it
    perfect_error: float = 1e-3  # the same that needs no improvement
    min_gain: float = 0.99  # error over that two stages before; a path on a noisy table ends above
    refit_stage: int = 2  # from which refits begin that start from a fold
    n_models: int = 4  # refits that are averaged, at most one more than folds
    n_models_noisy: int = 2

    def rough(self) -> SchattenConfig:
        """Return the constants for a table that may be noisy."""
        return replace(self, power=self.noisy_power, tol=self.rough_tol, max_iter=self.rough_iter)


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
class SearchConfig:
    """Constants of the whole search."""

    max_rows: int = 10_000  # rows to select and fit on; the others are imputed out of sample
    n_models: int = 4  # refits of a mixture that are averaged, unless `n_init` is given
    mixture_refit_steps: int = 12
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    exact: ExactConfig = field(default_factory=ExactConfig)
    schatten: SchattenConfig = field(default_factory=SchattenConfig)
    dictionary: DictionaryConfig = field(default_factory=DictionaryConfig)
    mixture: EMConfig = field(default_factory=EMConfig)
    low_rank: ALSConfig = field(default_factory=ALSConfig)
