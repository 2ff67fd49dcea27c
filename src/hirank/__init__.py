"""hirank: completion of high-rank tables."""

from importlib.metadata import version

from hirank.estimators import KFMC, OnlineKFMC, complete

__all__ = ["KFMC", "OnlineKFMC", "complete"]
__version__ = version("hirank")
