import numpy as np
import pytest

from hirank import Imputer
from hirank.exceptions import EmptyRowsWarning


@pytest.fixture(scope="session")
def fitted():
    """Return a model, its table with an empty and a sparse row, imputed values, and intervals."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(80, 1)) * [1, 2, 3, -1] + rng.normal(size=(80, 4)) / 4
    X = np.where(rng.random(truth.shape) < 0.25, np.nan, truth)
    X[7] = np.nan
    X[9] = [np.nan, np.nan, 1.0, np.nan]
    model = Imputer(max_iter=20, random_state=0)
    with pytest.warns(EmptyRowsWarning):
        filled, interval = model.fit_transform(X), model.interval(X)
    return model, X, filled, interval
