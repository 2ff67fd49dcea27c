"""How often statements of the paper hold: Theorem 2, Lemmas 3 and 6, Lemma 4, Lemma 5.

    python benchmarks/theory/statements.py ranks     # exact ranks, modulo a prime
    python benchmarks/theory/statements.py steps     # Lemmas 3 and 6 on random problems
    python benchmarks/theory/statements.py neglected # Lemma 4 against sigma and n
    python benchmarks/theory/statements.py momentum  # Lemma 5 on tables, for several momenta
    python benchmarks/theory/statements.py streams   # Lemma 6: whether D stays bounded

docs/notes/theory.md has the numbers.
"""

import argparse
import random
import sys
from collections.abc import Iterator
from itertools import product
from math import comb, prod
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import QUICK, report, seeds

from hirank.datasets import polynomial_manifolds, uniform_missing
from hirank.kernels import RBF, Poly
from hirank.optim.algorithm2 import Algorithm2State, paper_pass
from hirank.optim.path import Setting
from hirank.theory import neglected_term, offline_decrease, online_decrease, trace_algorithm_1

PRIME = 2**31 - 1
MAX_WORK = 1e5 if QUICK else 4e6
PROBLEMS = 10 if QUICK else 300


def exponents(variables: int, degree: int) -> list[tuple[int, ...]]:
    return [mu for mu in product(range(degree + 1), repeat=variables) if sum(mu) <= degree]


def evaluate(point: list[int], powers: list[tuple[int, ...]]) -> list[int]:
    """Return monomials of a point, modulo the prime."""
    return [prod(pow(s, e, PRIME) for s, e in zip(point, mu, strict=True)) % PRIME for mu in powers]


def rank_modulo(rows: list[list[int]]) -> int:
    rank = 0
    for column in range(len(rows[0])):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        inverse = pow(rows[rank][column], -1, PRIME)
        base = [value * inverse % PRIME for value in rows[rank]]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column]
            rows[i] = [(a - factor * b) % PRIME for a, b in zip(rows[i], base, strict=True)]
        rank += 1
    return rank


def ranks() -> Iterator[dict]:
    """Yield the surfaces with random coefficients whose feature rank is not that of Theorem 2."""
    random.seed(0)
    checked = failed = 0
    for d, p, q, m in product((1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), range(1, 9)):
        size, most = comb(m + q, q), comb(d + p * q, d)
        if min(size, most) ** 2 * size > MAX_WORK:
            continue
        latent, powers = exponents(d, p), exponents(m, q)
        weights = [[random.randrange(PRIME) for _ in latent] for _ in range(m)]
        rows = []
        for _ in range(min(size, most) + 2):
            s = evaluate([random.randrange(PRIME) for _ in range(d)], latent)
            x = [sum(a * b for a, b in zip(w, s, strict=True)) % PRIME for w in weights]
            rows.append(evaluate(x, powers))
        rank = rank_modulo(rows)
        checked += 1
        if rank != min(size, most):
            failed += 1
            yield {"d": d, "p": p, "q": q, "m": m, "rank": rank, "theorem": min(size, most)}
    print(f"{failed} of {checked} surfaces")


def steps() -> Iterator[dict]:
    """Yield how often a step lowers the objective by less than Lemmas 3 and 6 have it, or rises."""
    shapes = [(1, 1, 1), (3, 2, 2), (20, 3, 4), (100, 10, 10)]
    for (n, m, r), q, tau in product(shapes, (1, 2, 3), (0.4, 0.9, 1.0, 1.1, 1.5, 2.0, 5.0)):
        rng = np.random.default_rng(0)
        offline, online = [], []
        for _ in range(PROBLEMS):
            size = 10 ** rng.uniform(-1, 1)
            X, D = size * rng.standard_normal((n, m)), size * rng.standard_normal((r, m))
            ridges = {"beta": 10 ** rng.uniform(-3, 0), "alpha": 10 ** rng.uniform(-3, 0)}
            options = {"kernel": Poly(q, 1.0), "relaxation": tau, **ridges}
            offline.append(offline_decrease(X, D, **options))
            online.append(online_decrease(X[0], D, **options))
        row = {"n": n, "m": m, "r": r, "degree": q, "tau": tau}
        for name, taken in (("Lemma 3", offline), ("Lemma 6", online)):
            row[f"{name} fails %"] = 100 * float(np.mean([is_less(step) for step in taken]))
            row[f"{name} rises %"] = 100 * float(np.mean([is_less(step, 0) for step in taken]))
        yield row


def is_less(step, share: float = 1.0) -> bool:
    """Return whether a decrease is smaller than a share of what is guaranteed, not by rounding."""
    return step.actual < share * step.guaranteed - 1e-9 * abs(step.guaranteed) - 1e-12


def neglected() -> Iterator[dict]:
    cases = [(200, sigma, 1.0) for sigma in (3.0, 6.0, 12.0, 24.0, 48.0)]
    cases += [(n, 5.0, beta) for beta in (1e-2, 1.0) for n in (50, 200, 800)]
    cases += [(n, 5.0, float(n)) for n in (50, 200, 800)]
    for n, sigma, beta in cases:
        X = polynomial_manifolds(n, 10, latent=2, degree=2, random_state=0)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        D, move = X[:20], np.random.default_rng(1).standard_normal((20, 10))
        move *= 0.01 * np.linalg.norm(D) / np.linalg.norm(move)
        term = neglected_term(X, D, D + move, sigma=sigma, beta=beta)
        unit = float(np.linalg.norm(X, 2) * np.linalg.norm(move))
        yield {
            "n": n,
            "sigma": sigma,
            "beta": beta,
            "change / |X||dD|": term.change / unit,
            "printed / |X||dD|": term.printed / unit,
            "bound / |X||dD|": term.bound / unit,
            "change / kept": term.change / term.kept,
        }


def momentum() -> Iterator[dict]:
    for name, eta in product(("rbf", "poly 2", "poly 3"), (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)):
        falls, ends, rises = [], 0, 0
        for seed in range(3):
            X = polynomial_manifolds(20, 3, latent=1, degree=2, random_state=seed)
            X = (X - X.mean(axis=0)) / X.std(axis=0)
            observed = uniform_missing(X.shape, 0.2, random_state=seed)
            D = np.random.default_rng(seed).standard_normal((3, 3))
            kernel = RBF(2.5) if name == "rbf" else Poly(int(name[-1]), 1.0)
            course = trace_algorithm_1(
                np.where(observed, X, 0),
                D,
                kernel,
                observed=observed,
                beta=0.1,
                alpha=0.0 if name == "rbf" else 0.1,
                momentum=eta,
                n_steps=50 if QUICK else 1500,
            )
            values = course.objectives
            diverged = len(values) < 51 or values[-1] > 10 * values[0]
            ends += diverged
            rises += int(np.sum(np.diff(values) > 1e-10 * values[:-1]))
            if not diverged:
                falls.append(course.gradient_norms[-1] / course.gradient_norms[0])
        yield {
            "kernel": name,
            "eta": eta,
            "diverged of 3": ends,
            "rises": rises,
            "last / first gradient": float(max(falls, default=np.nan)),
        }


def streams() -> Iterator[dict]:
    """Yield the largest entry of D after a stream, over that of the samples, of four streams."""
    for q, eta, size in product((1, 2, 3, 4), (0.0, 0.5, 0.9), (0.3, 1.0, 3.0, 10.0)):
        ratios, rejected = [], 0
        for seed in seeds(4):
            rng = np.random.default_rng(seed)
            X, D = size * rng.standard_normal((400, 3)), rng.standard_normal((6, 3))
            done = paper_pass(
                X,
                np.ones(X.shape, bool),
                np.zeros((400, 6)),
                Algorithm2State.start(D),
                Setting(Poly(q, 1.0), 0.01, 0.01),
                momentum=eta,
            )
            ratios.append(np.abs(done.state.D).max() / np.abs(X).max())
            rejected += done.state.rejected
        yield {
            "degree": q,
            "eta": eta,
            "size": size,
            "largest D / X": float(max(ratios)),
            "rejected": rejected,
        }


if __name__ == "__main__":
    np.seterr(all="ignore")
    programs = {f.__name__: f for f in (ranks, steps, neglected, momentum, streams)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=[*programs])
    known, rest = parser.parse_known_args()
    report(programs[known.what](), rest)
