"""Ranks, sampling rates and lemmas of the paper, and advice on a table with missing values."""

from hirank.theory.advice import Advice
from hirank.theory.advisor import advise
from hirank.theory.descent import (
    neglected_term,
    offline_decrease,
    online_decrease,
    trace_algorithm_1,
)
from hirank.theory.features import factor_features, polynomial_features
from hirank.theory.ranks import data_rank, feature_dimension, feature_rank
from hirank.theory.rates import exact_kfmc_rate, freedom, kfmc_rate, low_rank_rate
from hirank.theory.taylor import rbf_features, rbf_taylor_bound, taylor_rbf

__all__ = [
    "Advice",
    "advise",
    "data_rank",
    "exact_kfmc_rate",
    "factor_features",
    "feature_dimension",
    "feature_rank",
    "freedom",
    "kfmc_rate",
    "low_rank_rate",
    "neglected_term",
    "offline_decrease",
    "online_decrease",
    "polynomial_features",
    "rbf_features",
    "rbf_taylor_bound",
    "taylor_rbf",
    "trace_algorithm_1",
]
