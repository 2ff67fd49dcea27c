"""hirank: imputation of missing values in high-rank tables."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hirank._versions import show_versions
    from hirank.estimators import KFMC, Imputer, OnlineImputer, OnlineKFMC, complete, load

__all__ = ["KFMC", "Imputer", "OnlineImputer", "OnlineKFMC", "complete", "load", "show_versions"]


def __getattr__(name: str) -> Any:
    # On first use: importing scikit-learn takes a second, which `hirank --help` need not wait for.
    if name == "__version__":
        return import_module("importlib.metadata").version("hirank")
    if name == "show_versions":
        return import_module("hirank._versions").show_versions
    if name in __all__:
        return getattr(import_module("hirank.estimators"), name)
    raise AttributeError(f"module 'hirank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
