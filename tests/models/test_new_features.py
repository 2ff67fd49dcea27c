import numpy as np

from hirank.models.new_features import complete_features


def test_new_features_match_the_authors_code(reference):
    observed = reference["new_features/observed"]
    R = np.where(observed, reference["new_features/R"], np.nan)
    filled = complete_features(R, observed, reference["new_features/Z"], ridge=0.01)
    assert np.abs(filled - reference["new_features/completed"]).max() < 1e-8


def test_a_linear_function_of_the_codes_is_recovered():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((200, 5))
    truth = Z @ rng.standard_normal((5, 2))
    observed = rng.random(truth.shape) >= 0.5
    filled = complete_features(np.where(observed, truth, 0), observed, Z, ridge=1e-8)
    np.testing.assert_allclose(filled, truth, atol=1e-6)
    completed = complete_features(np.where(observed, truth + 3, 0), observed, Z)
    np.testing.assert_allclose(completed, truth + 3, atol=1e-4)
