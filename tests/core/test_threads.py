import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from hirank.core.threads import Workers, _BlasLimit, _User, allowed_threads, row_blocks


def blas_threads() -> set[int]:
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


def test_blas_has_one_thread_inside_and_its_own_again_outside():
    before = blas_threads()
    with Workers():
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_the_users_limit_is_respected():
    with threadpool_limits(1, user_api="blas"):
        assert allowed_threads() == 1


def test_results_come_in_the_order_of_the_blocks():
    with Workers(3) as workers:
        blocks = [slice(i, i + 1) for i in range(50)]
        assert list(workers.map(lambda b: b.start, blocks, cost=1e12)) == list(range(50))


def test_an_error_in_a_block_reaches_the_caller():
    def fail(block):
        raise np.linalg.LinAlgError("here")

    with Workers(2) as workers, pytest.raises(np.linalg.LinAlgError, match="here"):
        list(workers.map(fail, [slice(0, 1), slice(1, 2)], cost=1e12))


@given(st.integers(0, 10_000), st.integers(1, 100_000), st.sampled_from([1.0, 1e12]))
def test_blocks_cover_all_rows_once(n, row_bytes, cost):
    blocks = row_blocks(n, row_bytes, cost)
    assert len(blocks) >= (2 if cost > 1 else 1)
    assert [i for b in blocks for i in range(n)[b]] == list(range(n))


def test_overlapping_threads_leave_blas_with_as_many_threads_as_before():
    first_is_in, second_is_in = threading.Event(), threading.Event()

    def first():
        with Workers():
            first_is_in.set()
            second_is_in.wait(10)

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        thread = threading.Thread(target=first)
        thread.start()
        first_is_in.wait(10)
        with Workers() as workers:
            second_is_in.set()
            thread.join()  # the first leaves while the second is inside
            assert blas_threads() == {1}
            assert workers._pool is not None  # the limit of the first is not taken for the user's
        assert blas_threads() == before


def test_a_user_that_never_left_does_not_keep_the_limit():
    before = blas_threads()
    limit, lost = _BlasLimit(), _User()
    limit.enter(lost)
    del lost  # as if an interrupt had kept it from leaving

    user = _User()
    limit.enter(user)
    limit.leave(user)

    assert blas_threads() == before


def test_inside_workers_others_take_no_further_threads():
    with threadpool_limits(2, user_api="blas"), Workers() as outer:
        with Workers() as inner:
            assert inner._pool is None
        assert [*outer.map(starts_threads, [0, 1], cost=1e12)] == [False, False]


def starts_threads(_):
    with Workers() as workers:
        return workers._pool is not None
