"""What advise says of tables whose structure is known."""

import json

import numpy as np
import pandas as pd
import pytest

from hirank.datasets import polynomial_manifolds
from hirank.theory import advise


def with_holes(truth, missing=0.3, seed=1):
    return np.where(np.random.default_rng(seed).random(truth.shape) < missing, np.nan, truth)


def low_rank(rank=3, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((120, rank)) @ rng.standard_normal((rank, 12)) + 5
    return X + noise * rng.standard_normal(X.shape)


def twisted_cubic(removed):
    rng = np.random.default_rng(0)
    t = rng.uniform(-1, 1, 150)
    kept = np.argsort(rng.random((150, 3)), axis=1) >= removed
    return np.where(kept, np.column_stack([t, t**2, t**3]), np.nan)


@pytest.fixture(scope="module")
def curved_holes():
    truth = polynomial_manifolds(60, 16, latent=2, degree=1, manifolds=5, random_state=0)
    X = with_holes(truth)
    X[[10, 20]] = np.nan
    X[10, 3] = truth[10, 3]  # one entry; sample 20 has none
    X[:, 5] = np.nan
    X[:4, 5] = truth[:4, 5]  # a feature known in four samples
    return X


@pytest.fixture(scope="module")
def curved_advice(curved_holes):
    return advise(curved_holes, random_state=0)


def test_several_subspaces(curved_advice):
    assert curved_advice.verdict == "kfmc"
    assert curved_advice.kfmc_can
    assert curved_advice.latent_dimension == 2
    assert 8 <= curved_advice.linear_rank <= 10
    assert curved_advice.held_out.kfmc_error < 0.3 * curved_advice.held_out.linear_error
    assert curved_advice.kfmc_rate < curved_advice.low_rank_rate < 1
    assert "Linear completion is not enough; KFMC can" in str(curved_advice)


def test_thin_samples_and_features_are_named(curved_advice, curved_holes):
    known = np.isfinite(curved_holes)
    needs = curved_advice.sample_needs
    assert needs == 3
    few = known.sum(axis=1)
    expected = {i: few[i] for i in np.flatnonzero((few < needs) & (few > 0))}
    assert curved_advice.thin_samples == expected
    assert curved_advice.thin_samples[10] == 1
    assert curved_advice.empty_samples == (20,)
    assert curved_advice.thin_features == {5: 4}
    assert curved_advice.feature_needs == curved_advice.linear_rank + 1
    assert 0.7 < curved_advice.reachable < 1
    assert "10 (has 1)" in str(curved_advice)
    assert "5 (has 4)" in str(curved_advice)


def test_plain_dictionary(curved_advice):
    plain = json.loads(json.dumps(curved_advice.to_dict()))
    assert plain["verdict"] == "kfmc"
    assert plain["held_out"]["n_entries"] == curved_advice.held_out.n_entries
    assert plain["thin_features"] == {"5": 4}


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_low_rank(noise):
    advice = advise(with_holes(low_rank(noise=noise)), random_state=0)
    assert advice.verdict == "linear"
    assert advice.linear_rank == 3
    assert advice.latent_dimension == 3
    assert advice.held_out.linear_error < 0.02 + 1.5 * noise
    assert str(advice).splitlines()[1].startswith("Linear completion should do.")


def test_noise_has_no_structure():
    advice = advise(with_holes(np.random.default_rng(0).standard_normal((100, 8))), random_state=0)
    assert advice.verdict == "neither"
    assert not advice.kfmc_can
    assert advice.latent_dimension is advice.linear_rank is advice.kfmc_rate is None
    assert "Features are unrelated" in str(advice)


def test_twisted_cubic_with_one_of_three_removed():
    advice = advise(twisted_cubic(1), random_state=0)
    assert advice.verdict == "kfmc"
    # Two entries a sample: none can be hidden without making it harder than it is.
    assert not advice.held_out.fair
    assert advice.held_out.pair_spread < 0.2
    assert "too hard" in str(advice)


def test_twisted_cubic_with_two_of_three_removed():
    advice = advise(twisted_cubic(2), random_state=0)
    assert advice.verdict == "neither"
    assert advice.reachable == 0
    assert advice.separate_groups == ((0,), (1,), (2,))
    assert "too few observations" in str(advice)


def test_one_entry_is_enough_on_a_line_and_for_a_function():
    x = np.random.default_rng(0).uniform(-1, 1, 100)
    line = with_holes(np.column_stack([x, 2 * x + 1]), 0.15)
    advice = advise(line, random_state=0)
    assert (advice.verdict, advice.sample_needs, advice.thin_samples) == ("linear", 1, {})
    parabola = np.column_stack([x, x**2])
    parabola[::4, 1] = np.nan  # only the value is ever missing, not the argument
    advice = advise(parabola, random_state=0)
    assert (advice.verdict, advice.sample_needs, advice.thin_samples) == ("kfmc", 1, {})


def test_features_never_known_together():
    X = low_rank()
    X[:60, 6:] = np.nan
    X[60:, :6] = np.nan
    advice = advise(X, random_state=0)
    assert advice.separate_groups == (tuple(range(6)), tuple(range(6, 12)))
    assert advice.reachable == 0
    assert "No sample connects these groups" in str(advice)


def test_data_frame_with_odd_columns():
    X = with_holes(low_rank())
    frame = pd.DataFrame(X, columns=[f"s{j}" for j in range(12)])
    frame["site"] = "north"
    frame["fixed"] = 7.0
    frame["void"] = np.nan
    frame["count"] = pd.array([1, None] * 60, dtype="Int64")
    frame["random"] = np.random.default_rng(3).standard_normal(120)
    frame.loc[::2, "random"] = np.nan
    frame["s0"] *= 1e6
    advice = advise(frame, random_state=0)
    assert advice.verdict == "linear"
    assert advice.ignored_columns == ("site",)
    assert advice.empty_features == ("void",)
    assert advice.constant_features == ("fixed", "count")
    assert advice.unrelated_features == ("random",)
    text = str(advice)
    assert all(name in text for name in ("site", "void", "fixed", "random"))


def test_nothing_missing():
    advice = advise(low_rank(), random_state=0)
    assert advice.reachable is None
    assert advice.verdict == "linear"
    assert "Nothing is missing" in str(advice)


@pytest.mark.parametrize(
    "X", [[[1.0, np.nan]], [[1.0], [np.nan], [3.0]], [[1.0, 2.0], [2.0, np.nan], [3.0, 6.0]]]
)
def test_tiny_tables_get_no_verdict(X):
    advice = advise(X, random_state=0)
    assert advice.verdict in ("untested", "neither")
    assert advice.held_out is None
    assert "KFMC can" not in str(advice)


def test_other_missing_values_and_the_same_seed():
    X = with_holes(low_rank())
    marked = np.where(np.isnan(X), -200, X)
    before = marked.copy()
    assert advise(marked, missing_values=-200, random_state=3) == advise(X, random_state=3)
    np.testing.assert_array_equal(marked, before)


def test_wrong_input_is_told():
    with pytest.raises(ValueError, match="no observed entry"):
        advise(np.full((3, 2), np.nan))
    with pytest.raises(ValueError, match="missing_values must be a number"):
        advise(np.ones((3, 2)), missing_values="NA")
    with pytest.raises(ValueError, match="infinity"):
        advise([[1.0, np.inf], [2.0, 3.0]])
    with pytest.raises(TypeError, match="No column is numeric"):
        advise(pd.DataFrame({"a": ["x", "y"]}))


def test_constant_tables_have_samples():
    advice = advise([[1.0, 2.0], [1.0, np.nan], [np.nan, np.nan]], random_state=0)
    assert advice.constant_features == (0, 1)
    assert advice.empty_samples == (2,)
    assert "Fewer than two features vary" in str(advice)


def test_groups_that_no_sample_connects_are_out_of_reach():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 8))
    X[:50, :4], X[50:, 4:] = np.nan, np.nan
    advice = advise(X, random_state=0)
    assert (advice.verdict, advice.reachable) == ("neither", 0.0)
    assert "too few observations" in str(advice)
    assert "Fills will be" not in str(advice)
