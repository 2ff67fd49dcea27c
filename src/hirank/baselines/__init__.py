"""The systems that the paper compares with, on the interface of :class:`hirank.KFMC`."""

from hirank.baselines.lrf import LRF
from hirank.baselines.nlmc import NLMC
from hirank.baselines.nnm import NNM
from hirank.baselines.soft_impute import SoftImpute
from hirank.baselines.vmc import VMC

__all__ = ["LRF", "NLMC", "NNM", "VMC", "SoftImpute"]
