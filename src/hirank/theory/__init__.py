"""What can be recovered: ranks, sampling rates, and advice on a table with holes."""

from hirank.theory.advice import Advice
from hirank.theory.advisor import advise
from hirank.theory.evidence import HeldOut
from hirank.theory.ranks import data_rank, feature_dimension, feature_rank
from hirank.theory.rates import freedom, kfmc_rate, low_rank_rate

__all__ = [
    "Advice",
    "HeldOut",
    "advise",
    "data_rank",
    "feature_dimension",
    "feature_rank",
    "freedom",
    "kfmc_rate",
    "low_rank_rate",
]
