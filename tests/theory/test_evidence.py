"""Parts of the evidence: what is hidden, linear completions, pairs, dimensions."""

import numpy as np
import pytest

from hirank.datasets import polynomial_manifolds
from hirank.models.als import completions
from hirank.theory.evidence import hide, pair_spread
from hirank.theory.structure import local_dimension, measure


def test_hidden_entries_lie_as_the_holes_do():
    rng = np.random.default_rng(0)
    observed = np.ones((400, 6), bool)
    observed[:, 2] = rng.random(400) < 0.5
    observed[:, 4] = rng.random(400) < 0.8
    hidden, fair = hide(observed, rng)
    assert fair
    assert not (hidden & ~observed).any()
    assert not hidden[:, [0, 1, 3, 5]].any()
    part = hidden.sum(axis=0)[[2, 4]] / observed.sum(axis=0)[[2, 4]]
    assert (part > 0).all()
    assert (part <= 0.25).all()


def test_rows_and_columns_keep_entries():
    rng = np.random.default_rng(0)
    observed = rng.random((50, 5)) < 0.4
    observed[~observed.any(axis=1), 0] = True
    hidden, _ = hide(observed, rng)
    left = observed & ~hidden
    assert hidden.any()
    assert left.any(axis=1).all()
    assert (left.sum(axis=0) >= 2).all()


def test_nothing_to_hide_where_samples_have_one_entry():
    hidden, fair = hide(np.eye(3, dtype=bool)[np.arange(60) % 3], np.random.default_rng(0))
    assert not hidden.any()
    assert not fair


def test_the_best_linear_completion_is_exact_on_low_rank():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3)) @ rng.standard_normal((3, 12)) + 1
    X /= X.std(axis=0)
    seen = rng.random(X.shape) < 0.7
    best = min(np.abs(filled - X)[~seen].max() for filled in completions(X, seen))
    assert best < 0.03


def test_pairs_on_curves_and_pairs_of_chance():
    rng = np.random.default_rng(0)
    t = rng.uniform(-1, 1, 300)
    everything = np.ones((300, 3), bool)
    assert pair_spread(np.column_stack([t, t**2, t**3]), everything, rng) < 0.15
    assert pair_spread(rng.standard_normal((300, 3)), everything, rng) > 0.7


@pytest.mark.parametrize("latent", [1, 2, 3])
@pytest.mark.parametrize(("degree", "manifolds"), [(3, 1), (2, 3), (1, 8)])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_local_dimension(latent, degree, manifolds, noise):
    X = polynomial_manifolds(
        80, 20, latent=latent, degree=degree, manifolds=manifolds, random_state=0
    )
    X = X / X.std(axis=0) + noise * np.random.default_rng(1).standard_normal(X.shape)
    assert local_dimension(X, 1.2 * noise) == latent


def test_noise_does_not_count_as_structure():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3)) @ rng.standard_normal((3, 15))
    X = X / X.std(axis=0) + 0.1 * rng.standard_normal((300, 15))
    assert measure(X, 0.1, rng).linear_rank == 3
    assert measure(X, 1e-6, rng).linear_rank == 15
    # Quadratics of three variables: 1 + 3 + 6
    assert measure(X, 0.1, rng).feature_rank <= 10
