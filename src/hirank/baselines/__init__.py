"""The systems that the paper compares KFMC with, as scikit-learn transformers.

- Low rank: `LRF`, `NNM`, `SoftImpute`; as rows arrive, `GROUSE` and `OnlineLRF`.
- Unions of linear subspaces: `SFMC`, `GroupSparse`; as rows arrive, `DLSR`.
- Low rank in the feature space of a kernel: `VMC` (polynomial), `NLMC` (RBF).

All impute the table that they are fitted to (``fit_transform``) and new rows (``transform``).
"""

from hirank.baselines.dlsr import DLSR
from hirank.baselines.group_sparse import GroupSparse
from hirank.baselines.grouse import GROUSE
from hirank.baselines.kernel_imputers import NLMC, VMC
from hirank.baselines.lrf import LRF
from hirank.baselines.nnm import NNM
from hirank.baselines.online_lrf import OnlineLRF
from hirank.baselines.sfmc import SFMC
from hirank.baselines.soft_impute import SoftImpute

__all__ = [
    "DLSR",
    "GROUSE",
    "LRF",
    "NLMC",
    "NNM",
    "SFMC",
    "VMC",
    "GroupSparse",
    "OnlineLRF",
    "SoftImpute",
]
