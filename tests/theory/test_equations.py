"""The paper's numbered equations of the model and its updates, as printed, against the library.

In this file samples are columns, as in the paper: X is m x n, D is m x r, Z is r x n. Where an
equation is misprinted, the test has both forms (docs/notes/theory.md).
"""

import numpy as np
import pytest
from helpers.theory import make_table

from hirank.core.objective import codes, objective, sample_gradient
from hirank.kernels import RBF, Poly
from hirank.optim.algorithm2 import Algorithm2State, paper_pass
from hirank.optim.algorithm3 import Algorithm3Config, run_algorithm3
from hirank.optim.newton import Newton
from hirank.optim.path import PathPoint, Setting
from hirank.theory import polynomial_features

SIGMA, OFFSET, TAU, ETA = 2.0, 1.0, 1.3, 0.4
SETTINGS = {
    "rbf": Setting(RBF(SIGMA), 0.05, 0.2),
    "poly": Setting(Poly(3, OFFSET), 0.05, 0.2),
}


class Problem:
    """Matrices of the paper for one table, and the state of Algorithm 1 there."""

    def __init__(self, kernel):
        self.setting = SETTINGS[kernel]
        rows, points = make_table(15, 4), make_table(5, 4, seed=1)
        self.X, self.D = rows.T, points.T
        self.solver = Newton(np.zeros(rows.shape, bool), momentum=0.0, relaxation=TAU)
        self.state = self.solver.init(PathPoint(self.setting, rows, points))
        self.Z = self.state.Z.T
        k = self.setting.kernel
        self.K_XD, self.K_DD = k.matrix(rows, points), k.matrix(points, points)
        self.alpha, self.beta = self.setting.alpha, self.setting.beta

    def value(self, X=None, D=None):
        """Return l(Z, D, X) with the codes as they are."""
        X, D = self.X if X is None else X, self.D if D is None else D
        return objective(X.T, self.Z.T, self.setting.basis(D.T))


@pytest.fixture
def rbf():
    return Problem("rbf")


@pytest.fixture
def poly():
    return Problem("poly")


def differentiate(function, at, step=1e-5):
    """Return the gradient by central differences."""
    gradient = np.empty_like(at)
    for index in np.ndindex(at.shape):
        move = np.zeros_like(at)
        move[index] = step
        gradient[index] = (function(at + move) - function(at - move)) / (2 * step)
    return gradient


def close(left, right):
    np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-7)


def test_equation_4_is_the_objective_with_explicit_features(poly):
    phi_X, phi_D = (polynomial_features(A.T, poly.setting.kernel).T for A in (poly.X, poly.D))

    printed = (
        np.sum((phi_X - phi_D @ poly.Z) ** 2) / 2
        + poly.alpha / 2 * np.sum(phi_D**2)
        + poly.beta / 2 * np.sum(poly.Z**2)
    )

    assert poly.value() == pytest.approx(printed)


def test_equation_5_has_half_the_square_of_sigma_in_all_other_equations(rbf):
    squares = ((rbf.X[:, :, None] - rbf.D[:, None]) ** 2).sum(axis=0)

    close(rbf.K_XD, np.exp(-squares / (2 * SIGMA**2)))  # as in equations 9, 56 and 72
    assert np.abs(rbf.K_XD - np.exp(-squares / SIGMA**2)).max() > 0.1


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_equations_6_and_22_are_the_codes(kernel):
    p = Problem(kernel)

    printed = np.linalg.solve(p.K_DD + p.beta * np.eye(5), p.K_XD.T)

    close(p.Z, printed)
    close(codes(p.X.T[:1], p.state.basis)[0], printed[:, 0])


def test_equation_7_is_the_part_of_the_objective_with_the_dictionary(poly):
    X, D, Z, q = poly.X, poly.D, poly.Z, 3
    W1, W2 = (X.T @ D + OFFSET) ** (q - 1), (D.T @ D + OFFSET) ** (q - 1)

    printed = (
        -np.trace((W1 * (X.T @ D + OFFSET)) @ Z)
        + np.trace(Z.T @ (W2 * (D.T @ D + OFFSET)) @ Z) / 2
        + poly.alpha / 2 * np.trace(W2 * (D.T @ D + OFFSET))
    )

    rest = poly.setting.kernel.diag(X.T).sum() / 2 + poly.beta / 2 * np.sum(Z**2)
    assert poly.value() == pytest.approx(printed + rest)


def test_equations_8_41_and_44_the_step_and_a_gradient_that_is_q_times_the_printed_one(poly):
    X, D, Z, q = poly.X, poly.D, poly.Z, 3
    W1, W2 = (X.T @ D + OFFSET) ** (q - 1), (D.T @ D + OFFSET) ** (q - 1)
    H = Z @ Z.T * W2 + poly.alpha * W2 * np.eye(5)
    g = -X @ (W1 * Z.T) + D @ H

    after = poly.solver.step(poly.state).D().T

    close(D - after, g @ np.linalg.inv(H) / TAU)
    close(q * g, differentiate(lambda D: poly.value(D=D), D))


def test_equations_9_and_10_the_gradient_and_step_of_the_dictionary(rbf):
    X, D, Z = rbf.X, rbf.D, rbf.Z
    Q1 = -Z.T * rbf.K_XD
    Q2 = (0.5 * Z @ Z.T + 0.5 * rbf.alpha * np.eye(5)) * rbf.K_DD
    G1, G2 = np.diag(Q1.sum(axis=0)), np.diag(Q2.sum(axis=0))
    printed = (X @ Q1 - D @ G1 + 2 * (D @ Q2 - D @ G2)) / SIGMA**2
    H = (2 * Q2 - G1 - 2 * G2) / SIGMA**2

    after = rbf.solver.step(rbf.state).D().T

    close(printed, differentiate(lambda D: rbf.value(D=D), D))
    close(D - after, printed @ np.linalg.inv(H) / TAU)


def test_equation_10_the_curvature_is_positive_definite_at_the_best_codes(rbf):
    """The sum of a Laplacian and a diagonal has no sign; with K = A Z it is Z Z' * K_DD + beta."""
    rows, points, codes = rbf.X.T, rbf.D.T, rbf.Z.T
    P = -codes * RBF(SIGMA).matrix(rows, points)
    Q = (codes.T @ codes + rbf.alpha * np.eye(5)) * rbf.K_DD / 2

    H = RBF(SIGMA).dictionary_curvature(P, Q)

    ZZ = rbf.Z @ rbf.Z.T
    close(H * SIGMA**2, ZZ * rbf.K_DD + rbf.beta * np.diag(np.diag(ZZ)))
    assert np.linalg.eigvalsh(H).min() > 0


def test_equations_11_and_12_the_second_line_makes_the_step_q_times_too_long(poly):
    poly.D = poly.solver.step(poly.state).D().T  # Algorithm 1 moves D first
    X, D, Z, q = poly.X, poly.D, poly.Z, 3
    w, W4 = ((X**2).sum(axis=0) + OFFSET) ** (q - 1), (X.T @ D + OFFSET) ** (q - 1)
    first_line = X * w - D @ (W4.T * Z)

    after = poly.solver.step(poly.state).X().T

    close(q * first_line, differentiate(lambda X: poly.value(X=X), X))
    close(X - after, first_line / w / TAU)


def test_equations_13_and_14_the_gradient_and_step_of_samples(rbf):
    rbf.D = rbf.solver.step(rbf.state).D().T
    X, D, Z = rbf.X, rbf.D, rbf.Z
    Q3 = -Z * RBF(SIGMA).matrix(X.T, D.T).T
    Q4 = 0.5 * np.eye(15)
    G3, G4 = np.diag(Q3.sum(axis=0)), np.diag(Q4.sum(axis=0))
    printed = (D @ Q3 - X @ G3 + 2 * (X @ Q4 - X @ G4)) / SIGMA**2
    H = (2 * Q4 - G3 - 2 * G4) / SIGMA**2

    after = rbf.solver.step(rbf.state).X().T

    close(printed, differentiate(lambda X: rbf.value(X=X), X))
    close(X - after, printed @ np.linalg.inv(H) / TAU)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_equation_15_momentum_adds_a_part_of_the_last_step(kernel):
    p = Problem(kernel)
    solver = Newton(np.zeros((15, 4), bool), momentum=ETA, relaxation=TAU)
    first = solver.step(p.state)

    with_momentum = solver.step(first)

    plain = p.solver.step(first)
    close(with_momentum.D(), plain.D() - ETA * (p.D.T - first.D()))


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_equations_16_to_20_samples_add_up_with_alpha_over_n(kernel):
    """Equation 20, of one sample, has alpha in place of alpha / n."""
    p = Problem(kernel)
    parts = [
        objective(x[None], z[None], Setting(p.setting.kernel, p.beta, p.alpha / 15).basis(p.D.T))
        for x, z in zip(p.X.T, p.Z.T, strict=True)
    ]

    assert sum(parts) == pytest.approx(p.value())
    alone = objective(p.X.T[:1], p.Z.T[:1], p.setting.basis(p.D.T))  # equation 20
    assert alone - parts[0] == pytest.approx((1 - 1 / 15) * p.alpha / 2 * np.trace(p.K_DD))


def test_equation_21_is_the_objective_of_a_sample(rbf):
    k, z = rbf.K_XD[:1], rbf.Z[:, :1]

    printed = 0.5 - k @ z + z.T @ rbf.K_DD @ z / 2 + rbf.beta / 2 * np.sum(z**2)

    parts = sample_gradient(rbf.X.T, rbf.state.basis)[0]
    assert parts[0] == pytest.approx(printed.item())


def take_sample_step(problem):
    """Return x and its first step in Algorithm 3, with one entry observed."""
    x = problem.X.T[:1]
    observed = np.array([[True, False, False, False]])
    config = Algorithm3Config(ETA, TAU, max_iter=1)
    after = run_algorithm3(x, observed, problem.state.basis, config).X
    assert after[0, 0] == x[0, 0]
    return x[0], (x - after)[0, 1:]


def test_equations_23_and_24_the_step_of_a_sample(poly):
    x, step = take_sample_step(poly)
    z, q = poly.Z[:, 0], 3
    w1, w2 = (x @ x + OFFSET) ** (q - 1), (x @ poly.D + OFFSET) ** (q - 1)

    printed = (w1 * x - poly.D @ (w2 * z)) / (TAU * w1)

    close(step, printed[1:])


def test_equations_25_and_26_the_printed_step_of_a_sample_has_the_wrong_sign(rbf):
    x, step = take_sample_step(rbf)
    z = rbf.Z[:, 0]
    q = -z * rbf.K_XD[0]
    gamma = q.sum()
    gradient = (rbf.D @ q - gamma * x) / SIGMA**2

    printed = SIGMA**2 / (TAU * gamma) * gradient

    close(gradient, sample_gradient(x[None], rbf.state.basis)[1][0])
    assert gamma < 0
    close(step, -printed[1:])
    value = [
        sample_gradient((x - move)[None], rbf.state.basis)[0] for move in (0 * x, -printed, printed)
    ]
    assert value[1] < value[0] < value[2]


def test_equation_26_moves_away_from_the_dictionary_in_the_smallest_case():
    """One point at 0, x = 1 missing, sigma = 1: equation 26 leads to 1 + 1 / tau."""
    basis = Setting(RBF(1.0), 0.1).basis(np.zeros((1, 1)))
    config = Algorithm3Config(0.0, TAU, max_iter=1)

    after = run_algorithm3(np.ones((1, 1)), np.zeros((1, 1), bool), basis, config).X

    assert after[0, 0] == pytest.approx(1 - 1 / TAU)


def test_equations_27_30_and_31_the_step_of_the_dictionary_for_a_sample(rbf):
    """The authors take the size of the row sums of Q_2; here they are positive anyway."""
    x, D = rbf.X[:, :1], 0.3 * rbf.D
    seen = np.ones((1, 4), bool)

    _, z, after, _ = paper_pass(
        x.T, seen, np.zeros((1, 5)), Algorithm2State.start(D.T), rbf.setting,
        momentum=0.0, relaxation=TAU,
    )  # fmt: skip

    K_DD = RBF(SIGMA).matrix(D.T, D.T)
    Q1 = -z * RBF(SIGMA).matrix(x.T, D.T)
    Q2 = (0.5 * z.T @ z + 0.5 * rbf.alpha * np.eye(5)) * K_DD
    G1, G2 = np.diag(Q1[0]), np.diag(Q2.sum(axis=0))
    printed = (x @ Q1 - D @ G1 + 2 * (D @ Q2 - D @ G2)) / SIGMA**2
    norm = np.linalg.norm((2 * Q2 - G1 - 2 * G2) / SIGMA**2, 2)

    def value(D):
        return objective(x.T, z, rbf.setting.basis(D.T))

    assert (Q2.sum(axis=0) > 0).all()
    close(printed, differentiate(value, D))
    np.testing.assert_allclose(D - after.D.T, printed / (TAU * norm), rtol=1e-3)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_equation_32_new_samples_are_minimized_with_the_dictionary_fixed(kernel):
    """Algorithm 3 ends where the gradient in the missing entries is 0; the codes are the best."""
    p = Problem(kernel)
    rows = p.X.T + 0.0
    observed = np.ones(rows.shape, bool)
    observed[:, 2] = False
    rows[:, 2] = 0

    done = run_algorithm3(
        rows, observed, p.state.basis, Algorithm3Config(max_iter=3000, tol_change=1e-9)
    )

    before, after = (sample_gradient(x, p.state.basis)[1][:, 2] for x in (rows, done.X))
    assert np.abs(after).max() < 1e-5 * np.abs(before).max()
    close(done.Z, codes(done.X, p.state.basis))
    assert (done.X[observed] == rows[observed]).all()
