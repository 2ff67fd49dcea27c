"""The systems that the paper compares with, on the interface of :class:`hirank.KFMC`."""

from hirank.baselines.dlsr import DLSR
from hirank.baselines.group_sparse import GroupSparse
from hirank.baselines.grouse import GROUSE
from hirank.baselines.lrf import LRF
from hirank.baselines.nnm import NNM
from hirank.baselines.online_lrf import OnlineLRF
from hirank.baselines.sfmc import SFMC
from hirank.baselines.soft_impute import SoftImpute

__all__ = ["DLSR", "GROUSE", "LRF", "NNM", "SFMC", "GroupSparse", "OnlineLRF", "SoftImpute"]
