"""hirank: completion of high-rank tables."""

from importlib.metadata import version

from hirank.estimators import KFMC, complete

__all__ = ["KFMC", "complete"]
__version__ = version("hirank")
