import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from hirank.core.threads import Workers, allowed_threads, row_blocks


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
