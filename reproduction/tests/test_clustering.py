"""Clustering of the real motions of Hopkins155."""

import pytest

from hirank.cluster import SSC
from hirank.metrics import clustering_error
from reproduction.readers import load_hopkins


@pytest.mark.parametrize(("name", "bound"), [("1R2RC", 0.03), ("1R2TCR", 0.05)])
def test_motions_of_complete_trajectories_are_found(data_folder, name, bound):
    X, labels = load_hopkins(data_folder / f"{name}_truth.mat")

    error = clustering_error(labels, SSC(3, random_state=0).fit_predict(X))

    assert error < bound
