"""What the tests of the paper's statements share."""

from hirank.datasets import polynomial_manifolds

RIDGES = {"beta": 0.1, "alpha": 0.1}


def make_table(n_samples=60, n_features=6, seed=0):
    """Return a standardized table of one quadratic surface, n x m."""
    X = polynomial_manifolds(n_samples, n_features, latent=2, degree=2, random_state=seed)
    return (X - X.mean(axis=0)) / X.std(axis=0)


def is_within(decrease, slack=1e-9):
    """Return whether a step lowers the objective by what a lemma guarantees."""
    return decrease.actual >= decrease.guaranteed * (1 - slack)
