"""Real motions: skipped where the files are not at hand."""

import os
from pathlib import Path

import pytest

from hirank.cluster import SSC
from hirank.metrics import clustering_error
from reproduction.readers import load_hopkins

FOLDER = Path(os.environ.get("HIRANK_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.mark.skipif(
    not (FOLDER / "1R2RC_truth.mat").exists(),
    reason=f"no Hopkins155 files in {FOLDER}; set HIRANK_DATA to the folder that has them",
)
@pytest.mark.parametrize(("name", "most"), [("1R2RC", 0.03), ("1R2TCR", 0.05)])
def test_motions_of_complete_trajectories_are_found(name, most):
    X, labels = load_hopkins(FOLDER / f"{name}_truth.mat")
    assert clustering_error(labels, SSC(3, random_state=0).fit_predict(X)) < most
