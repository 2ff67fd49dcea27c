import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hirank.optim import quasi_newton as qn


def quadratics(seed, b, N):
    """b convex quadratics with their own Hessians and minima."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((b, N, N))
    H = A @ A.transpose(0, 2, 1) + 0.1 * np.eye(N)
    best = rng.standard_normal((b, N))

    def evaluate(x, rows=slice(None)):
        g = np.einsum("bij,bj->bi", H[rows], x - best[rows])
        return ((x - best[rows]) * g).sum(axis=1) / 2, g

    return evaluate, best


def minimize(evaluate, x, rounds, memory=10):
    rows = qn.begin(x, *evaluate(x), memory)
    values = [rows.value]
    for _ in range(rounds):
        point = qn.trial(rows)
        rows = qn.update(rows, point, *evaluate(point))
        values.append(rows.value)
    return rows, np.array(values)


def test_every_row_finds_its_minimum():
    evaluate, best = quadratics(0, 5, 8)
    rows, _ = minimize(evaluate, np.zeros((5, 8)), 120)
    np.testing.assert_allclose(rows.x, best, atol=1e-6)


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 6))
def test_no_row_ever_rises(seed, b, N):
    evaluate, _ = quadratics(seed, b, N)
    _, values = minimize(evaluate, np.ones((b, N)), 30, memory=4)
    assert (np.diff(values, axis=0) <= 0).all()


def test_rows_do_not_see_each_other():
    evaluate, _ = quadratics(1, 6, 5)
    together, _ = minimize(evaluate, np.zeros((6, 5)), 25)
    for i in range(6):
        alone, _ = minimize(lambda x, i=i: evaluate(x, slice(i, i + 1)), np.zeros((1, 5)), 25)
        np.testing.assert_allclose(alone.x[0], together.x[i], rtol=1e-12)


def test_points_where_nothing_can_be_evaluated_are_left_behind():
    """An infinite or undefined value only shortens the step."""

    def evaluate(x):
        with np.errstate(invalid="ignore"):
            value = np.where(x > 2, np.nan, (x - 1.9) ** 2).sum(axis=1)
        return value, 2 * (x - 1.9)

    rows, _ = minimize(evaluate, np.full((1, 1), -50.0), 60)
    np.testing.assert_allclose(rows.x, 1.9, atol=1e-6)
