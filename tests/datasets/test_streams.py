from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hirank.datasets import polynomial_stream, smooth_stream

STREAMS = {
    "still": lambda: polynomial_stream(6, latent=2, degree=2, random_state=0),
    "union": lambda: polynomial_stream(6, manifolds=3, random_state=0),
    "abrupt": lambda: polynomial_stream(6, manifolds=2, change=(20, 20), random_state=0),
    "gradual": lambda: smooth_stream(6, latent=1, manifolds=2, change=(10, 40), random_state=0),
}


@pytest.mark.parametrize("name", STREAMS)
@given(sizes=st.lists(st.integers(1, 20), min_size=1, max_size=5))
def test_samples_do_not_depend_on_batches(name, sizes):
    stream = STREAMS[name]()
    parts = [stream.take(size, return_labels=True) for size in sizes]
    X, labels = STREAMS[name]().take(sum(sizes), return_labels=True)
    np.testing.assert_allclose(np.concatenate([part[0] for part in parts]), X, atol=1e-12)
    np.testing.assert_array_equal(np.concatenate([part[1] for part in parts]), labels)
    assert stream.n_taken == len(X)


@pytest.mark.parametrize("change", [(25, 25), (10, 40), (0, 49)])
def test_one_surface_becomes_another_by_cos_and_sin(change):
    rng = np.random.default_rng(3)
    powers = [p for d in (1, 2, 3) for p in combinations_with_replacement(range(3), d)]
    P, Q = rng.standard_normal((2, len(powers), 5))
    s = rng.random((50, 3))
    z = np.stack([s[:, p].prod(axis=1) for p in powers], axis=1)
    begin, end = change
    i = np.arange(50.0)
    share = (i >= begin) if begin == end else np.clip((i - begin) / (end - begin), 0, 1)
    angle = share[:, None] * np.pi / 2
    expected = np.cos(angle) * (z @ P) + np.sin(angle) * (z @ Q)
    np.testing.assert_array_equal(
        polynomial_stream(5, change=change, random_state=3).take(50), expected
    )


def test_after_an_abrupt_change_samples_leave_their_subspace():
    stream = polynomial_stream(12, latent=2, degree=1, change=(100, 100), random_state=0)
    before, after = stream.take(100), stream.take(100)
    assert [np.linalg.matrix_rank(X) for X in (before, after)] == [2, 2]
    assert np.linalg.matrix_rank(np.concatenate([before, after])) == 4


def test_a_gradual_change_is_still_at_both_ends_and_keeps_the_scale():
    stream = polynomial_stream(40, latent=2, degree=1, change=(100, 2000), random_state=0)
    first, turning, last = stream.take(101), stream.take(1899), stream.take(100)
    assert [np.linalg.matrix_rank(X) for X in (first, turning, last)] == [2, 4, 2]
    assert 0.5 < turning.std() / first.std() < 2


def test_a_union_brings_samples_of_all_manifolds_in_mixed_order():
    X, labels = polynomial_stream(30, latent=1, degree=2, manifolds=3, random_state=0).take(
        3000, return_labels=True
    )
    assert (np.bincount(labels) > 900).all()
    assert (np.diff(labels) != 0).mean() > 0.5
    assert [np.linalg.matrix_rank(X[labels == label]) for label in range(3)] == [2, 2, 2]
    assert np.linalg.matrix_rank(X) == 6


def test_batches_cover_the_requested_samples():
    sizes = [len(batch) for batch in smooth_stream(4, random_state=0).batches(105, size=50)]
    assert sizes == [50, 50, 5]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: polynomial_stream(change=5), r"change must be \(begin, end\)"),
        (lambda: polynomial_stream(change=(5, 4)), "end of change .* at least 5"),
        (lambda: polynomial_stream(change=(-1, 4)), "beginning of change"),
        (lambda: polynomial_stream(degree=0), "degree"),
        (lambda: polynomial_stream(latent=0), "latent"),
        (lambda: polynomial_stream(0), "n_features"),
        (lambda: smooth_stream(frequency=np.nan), "frequency"),
        (lambda: smooth_stream(terms=0), "terms"),
        (lambda: smooth_stream(latent=0), "latent"),
        (lambda: smooth_stream(manifolds=0), "manifolds"),
        (lambda: polynomial_stream().take(0), "n_samples"),
        (lambda: polynomial_stream().batches(10, size=0), "size"),
    ],
)
def test_wrong_arguments_are_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()
