"""When a window stream learns anew, and what it keeps."""

from functools import cache

import numpy as np
import pytest

from hirank import OnlineKFMC
from hirank.datasets import polynomial_manifolds
from hirank.metrics import missing_relative_error

QUICK = {"window": 60, "n_start": 40, "batch_size": 20, "max_iter": 10, "random_state": 0}


def fed(model, rows, batch=20):
    """Actions and errors of the fills, batch by batch."""
    actions, fills = [], []
    for start in range(0, len(rows), batch):
        fills.append(model.partial_fit_transform(rows[start : start + batch]))
        actions.append(model.last_action_)
    return actions, np.concatenate(fills)


def world(seed):
    """Another surface, same features."""
    truth = polynomial_manifolds(300, 8, latent=2, degree=2, shuffle=True, random_state=seed)
    observed = np.random.default_rng(seed + 1).random(truth.shape) >= 0.3
    observed[:, 0] |= ~observed.any(axis=1)
    return truth, observed


@pytest.fixture(scope="module")
def other():
    """The world after a change that makes the fills of before as poor as means."""
    return world(15)


def test_the_path_is_walked_whenever_the_window_has_doubled_or_is_full(stream):
    model = OnlineKFMC(**{**QUICK, "window": 200}, self_score="off").partial_fit(stream.holes[:40])
    actions, _ = fed(model, stream.holes[40:])
    at = [60 + 20 * i for i, action in enumerate(actions) if "has grown" in action]
    assert at == [80, 160, 200]
    assert model._stream.walks == 4


def test_dictionaries_grow_with_the_window(stream):
    model = OnlineKFMC(**{**QUICK, "window": 160}).partial_fit(stream.holes[:40])
    sizes = []
    for rows in (stream.holes[40:80], stream.holes[80:160], stream.holes[160:]):
        sizes.append(model.n_components_)
        model.partial_fit(rows)
    sizes.append(model.n_components_)
    assert sizes == [35, 53, 80, 80]


def test_the_memory_never_exceeds_the_window(stream):
    model = OnlineKFMC(**{**QUICK, "batch_size": 25}).partial_fit(stream.holes[:40])
    for start in range(40, 300, 10):
        model.partial_fit(stream.holes[start : start + 10])
        kept = model._stream.memory
        assert len(kept.rows) == len(kept.filled) == len(kept.guess) <= 60
        assert len(model._stream.pending) < 25
    assert len(kept) == 60
    learned = 300 - len(model._stream.pending)
    np.testing.assert_array_equal(kept.rows, stream.holes[learned - 60 : learned])


def test_a_window_smaller_than_a_batch(stream):
    model = OnlineKFMC(**{**QUICK, "window": 30, "batch_size": 50}).partial_fit(stream.holes)
    assert len(model._stream.memory) == 30
    assert np.isfinite(model.transform(stream.holes)).all()


@cache
def changed(self_score, seed=15):
    """Actions after an abrupt change, and the error some time after it."""
    (truth, observed), (old, seen) = world(seed), world(0)
    model = OnlineKFMC(**QUICK, self_score=self_score)
    model.partial_fit(np.where(seen, old, np.nan)[:200])
    actions, filled = fed(model, np.where(observed, truth, np.nan))
    late = slice(160, 300)
    return actions, missing_relative_error(filled[late], truth[late], observed[late])


def test_when_fills_become_as_poor_as_means_the_model_starts_over():
    actions, error = changed("react")
    over = [i for i, action in enumerate(actions) if action.startswith("started over")]
    assert len(over) == 1
    assert over[0] <= 3
    assert error < 0.1


def test_when_they_become_worse_but_not_as_poor_it_walks_again():
    actions, error = changed("react", seed=9)
    assert "walked again: fills had become worse" in actions
    assert not [action for action in actions if action.startswith("started over")]
    assert error < changed("watch", seed=9)[1]


@pytest.mark.parametrize("self_score", ["watch", "off"])
def test_without_react_it_does_neither(self_score):
    actions, error = changed(self_score)
    assert not [action for action in actions if "started over" in action or "worse" in action]
    assert error > 2 * changed("react")[1]


def test_nothing_starts_over_while_the_world_stays(stream):
    model = OnlineKFMC(**QUICK).partial_fit(stream.holes[:100])
    actions, _ = fed(model, stream.holes[100:])
    assert not [action for action in actions if "started over" in action]


def test_units_that_grow_slowly_are_followed(stream):
    growth = np.geomspace(1, 30, 300)[:, None]
    truth = growth * stream.truth
    model = OnlineKFMC(**QUICK)
    model.partial_fit(np.where(stream.observed, truth, np.nan)[:40])
    first = model._stream.model.unit
    actions, filled = fed(model, np.where(stream.observed, truth, np.nan)[40:])
    assert (model._stream.model.unit > 10 * first).all()
    assert any("left their scale" in action for action in actions)
    late = slice(200, 260)
    error = missing_relative_error(filled[late], truth[40:][late], stream.observed[40:][late])
    assert error < 0.3


def test_units_stay_the_users_without_scaling(stream):
    model = OnlineKFMC(**QUICK, scale=False).partial_fit(stream.holes[:100])
    actions, _ = fed(model, np.geomspace(1, 30, 200)[:, None] * stream.holes[100:])
    assert (model._stream.model.fitted.scaling.spread == 1).all()
    assert not any("left their scale" in action for action in actions)


def test_a_feature_that_goes_silent_keeps_values_of_its_kind(stream):
    rows = stream.holes.copy()
    rows[120:, 2] = np.nan
    model = OnlineKFMC(**QUICK).partial_fit(rows)
    filled = model.transform(rows[240:])[:, 2]
    low, high = stream.truth[:, 2].min(), stream.truth[:, 2].max()
    assert ((low - 1 < filled) & (filled < high + 1)).all()


def test_after_a_new_start_a_silent_feature_is_filled_with_its_last_mean(stream, other):
    model = OnlineKFMC(**QUICK).partial_fit(stream.holes[:200])
    truth, observed = other
    rows = np.where(observed, truth, np.nan)
    rows[:, 2] = np.nan
    actions, _ = fed(model, rows)
    assert any("started over" in action for action in actions)
    filled = model.transform(rows[:20])[:, 2]
    assert (filled == filled[0]).all()
    assert filled[0] == pytest.approx(np.nanmean(stream.holes[140:200, 2]), abs=0.5)
    assert (model.dictionary_[:, 2] == filled[0]).all()


def test_a_feature_that_comes_alive_is_learned(stream):
    rows = stream.holes.copy()
    rows[:100, 5] = np.nan
    model = OnlineKFMC(**QUICK).partial_fit(rows[:100])
    assert (model.transform(rows[:100])[:, 5] == 0).all()
    actions, filled = fed(model, rows[100:])
    assert "started over: a feature has come alive" in actions
    missing = ~stream.observed[200:, 5]
    error = np.abs(filled[100:, 5] - stream.truth[200:, 5])[missing].mean()
    assert error < 0.3 * stream.truth[:, 5].std()


def test_a_feature_that_comes_late_and_constant_is_filled_with_its_value(stream):
    rows = stream.holes.copy()
    rows[:, 5] = np.nan
    rows[60::2, 5] = 7.0
    model = OnlineKFMC(**QUICK).partial_fit(rows)
    assert model.transform(rows[61:62])[0, 5] == 7


def test_guesses_of_a_model_that_failed_are_not_used_again(stream, other):
    truth, observed = other
    model = OnlineKFMC(**QUICK).partial_fit(stream.holes[:200])
    rows = np.where(observed, truth, np.nan)
    for start in range(0, 300, 20):
        model.partial_fit(rows[start : start + 20])
        if model.last_action_.startswith("started over"):
            break
    assert np.isnan(model._stream.memory.guess).all()
    model.partial_fit(rows[start + 20 : start + 40])
    assert np.isfinite(model._stream.memory.guess[-20:]).any()


def test_a_window_in_which_nothing_varies_any_more(stream):
    rows = np.column_stack([stream.holes[:40], np.ones(40)])
    silent = np.full((100, 9), np.nan)
    silent[:, 8] = 1
    model = OnlineKFMC(**{**QUICK, "batch_size": 100}).partial_fit(rows)
    with pytest.warns(UserWarning, match="no observed entry to go by"):
        filled = model.partial_fit_transform(silent)
    assert np.isfinite(filled).all()
