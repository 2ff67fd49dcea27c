"""What several test modules share: reference values, and the paper's synthetic tables."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from helpers.compiled import COMPILED
from hypothesis import settings

from hirank import _compiled
from hirank.datasets import polynomial_manifolds, uniform_missing
from hirank.kernels import RBF, Poly
from hirank.optim.path import Setting

settings.register_profile("hirank", deadline=None, max_examples=30, derandomize=True)
settings.load_profile("hirank")


class Reference(NamedTuple):
    """The paper authors' own results on a small problem (see tests/data/README.md)."""

    arrays: dict[str, np.ndarray]
    settings: dict[str, Setting]

    def __getitem__(self, key: str) -> np.ndarray:
        return self.arrays[key]


@pytest.fixture(scope="session")
def reference() -> Reference:
    with np.load(Path(__file__).parent / "data" / "reference.npz", allow_pickle=False) as file:
        arrays = dict(file)
    value = {key: a.item() for key, a in arrays.items() if a.ndim == 0}
    return Reference(
        arrays,
        {
            "rbf": Setting(RBF(value["sigma2"] ** 0.5), value["beta_rbf"]),
            "poly": Setting(
                Poly(int(value["q"]), value["c"]), value["beta_poly"], value["alpha_poly"]
            ),
        },
    )


class Table(NamedTuple):
    truth: np.ndarray
    observed: np.ndarray

    @property
    def X(self) -> np.ndarray:
        """The table with NaN where it is missing."""
        return np.where(self.observed, self.truth, np.nan)


@pytest.fixture(scope="session")
def curved() -> Table:
    """Two curved surfaces, 120 x 12, 30 % missing."""
    truth = polynomial_manifolds(60, 12, latent=2, degree=2, manifolds=2, random_state=0)
    return Table(truth, uniform_missing(truth.shape, 0.3, random_state=1))


@pytest.fixture(scope="session")
def stream() -> Table:
    """Rows of a curved surface as they might arrive, 300 x 8, 30 % missing, none empty."""
    truth = polynomial_manifolds(300, 8, latent=2, degree=2, shuffle=True, random_state=0)
    observed = uniform_missing(truth.shape, 0.3, random_state=1)
    observed[:, 0] |= ~observed.any(axis=1)
    return Table(truth, observed)


@pytest.fixture(params=COMPILED or [pytest.param(None, marks=pytest.mark.skip("not compiled"))])
def core(request):
    """The compiled functions, on each instruction set of this machine; skipped without any."""
    with _compiled.using(request.param):
        yield _compiled.core()


@pytest.fixture(params=[_compiled.OFF, *COMPILED])
def instruction_set(request):
    """The NumPy code, then each instruction set; the name of what is in use."""
    with _compiled.using(request.param):
        yield request.param
