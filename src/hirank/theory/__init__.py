"""Ranks and sampling rates of the paper, and advice on a table with missing values."""

from hirank.theory.advice import Advice
from hirank.theory.advisor import advise
from hirank.theory.ranks import data_rank, feature_dimension, feature_rank
from hirank.theory.rates import freedom, kfmc_rate, low_rank_rate

__all__ = [
    "Advice",
    "advise",
    "data_rank",
    "feature_dimension",
    "feature_rank",
    "freedom",
    "kfmc_rate",
    "low_rank_rate",
]
