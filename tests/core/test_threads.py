import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from hirank.core.blas import BlasLimit, _User
from hirank.core.threads import Workers, count_threads, position, row_blocks

LARGE = 1e12  # multiplications that are worth sharing


def blas_threads() -> set[int]:
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


@pytest.fixture
def four_processors(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 4)
    monkeypatch.setattr("joblib._parallel_backends.cpu_count", lambda: 4)


def test_blas_has_one_thread_inside_and_its_own_again_outside():
    with threadpool_limits(2, user_api="blas"):
        outside = blas_threads()  # other packages may bring libraries of one thread
        with Workers():
            assert blas_threads() == {1}
        assert blas_threads() == outside
        assert 2 in outside


def test_the_number_of_jobs_means_what_it_does_in_scikit_learn(four_processors):
    assert [count_threads(n_jobs) for n_jobs in (None, 1, 3, -1, -2, -9)] == [1, 1, 3, 4, 3, 1]
    with joblib.parallel_config("threading", n_jobs=3):
        assert [count_threads(n_jobs) for n_jobs in (None, 2, -1)] == [3, 2, 4]


def test_a_process_that_shares_processors_takes_no_more_than_its_part(four_processors, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # as joblib and Dask do for their workers

    assert [count_threads(n_jobs) for n_jobs in (None, 3, -1)] == [1, 3, 2]


def test_inside_a_task_of_joblib_there_is_one_thread(four_processors):
    tasks = joblib.Parallel(2, prefer="threads")(joblib.delayed(count_threads)(None) for _ in "ab")

    assert tasks == [1, 1]


def test_results_come_in_the_order_of_the_blocks():
    with Workers(3) as workers:
        blocks = [slice(i, i + 1) for i in range(50)]
        assert list(workers.map(lambda b: b.start, blocks, LARGE)) == list(range(50))


def test_small_work_starts_no_thread():
    before = threading.active_count()

    with Workers(3) as workers:
        assert list(workers.map(str, range(3), 1e3)) == ["0", "1", "2"]
        assert list(workers.map(str, range(1), LARGE)) == ["0"]

        assert threading.active_count() <= before  # threads of earlier tests may end meanwhile


def test_the_caller_computes_what_a_busy_thread_has_not_begun():
    caller, held, go = threading.current_thread(), threading.Event(), threading.Event()
    own = []

    def work(block):
        if threading.current_thread() is caller:
            held.wait(20)  # until the other thread has begun a block
            own.append(block)
            if len(own) == 5:
                go.set()
        else:
            held.set()
            assert go.wait(20)
        return block

    with Workers(2) as workers:
        assert [*workers.map(work, range(6), LARGE)] == [*range(6)]


def test_tasks_may_have_tasks_of_their_own():
    def total(row):
        return sum(workers.map(lambda x: x * row, range(5), LARGE))

    with Workers(3) as workers:
        assert list(workers.map(total, range(20), LARGE)) == [10 * row for row in range(20)]


def test_an_error_in_a_block_reaches_the_caller():
    def fail(block):
        time.sleep(0.01 * (3 - block))
        raise np.linalg.LinAlgError(f"in {block}")

    for _ in range(5):  # the first block's, whichever fails first
        with Workers(3) as workers, pytest.raises(np.linalg.LinAlgError, match="in 0"):
            list(workers.map(fail, range(3), LARGE))


def test_threads_end_with_the_context():
    def threads():
        return [thread for thread in threading.enumerate() if thread.name == "hirank"]

    with Workers(3) as workers:
        list(workers.map(str, range(9), LARGE))
        assert len(threads()) >= 2
        own = threads()

    for thread in own:
        thread.join(10)
    assert not any(thread.is_alive() for thread in own)


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_an_interrupt_ends_the_computation_at_once():
    program = """
        import signal
        import time
        from hirank.core.threads import Workers

        # Where tests run in the background, SIGINT is ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)

        def work(block):
            print("working\\n", end="", flush=True)  # in one piece
            time.sleep(30)

        try:
            with Workers(3) as workers:
                list(workers.map(work, range(9), 1e12))
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        rest = process.stdout.read()
        assert process.wait(20) == 0
    assert "interrupted" in rest
    assert time.monotonic() - began < 10  # not the 30 s of the blocks


def test_positions_sort_as_one_thread_would_come_by():
    def visit(block):
        found = [position()]
        found += [at for part in workers.map(lambda _: [position()], "xy", LARGE) for at in part]
        return [*found, position()]

    with Workers(3) as workers:
        before = position()
        parts = [*workers.map(visit, range(5), LARGE)]
        seen = [before, *(at for part in parts for at in part), position()]

    assert seen == sorted(seen)


def test_inside_a_context_another_one_uses_its_threads():
    with Workers(2) as outer:
        with Workers() as inner, Workers(3) as other:
            assert inner is outer is other
        assert [*outer.map(lambda _: enter() is outer, "abcd", LARGE)] == [True] * 4
        assert [*outer.map(str, range(4), LARGE)] == ["0", "1", "2", "3"]  # still open


def enter():
    with Workers() as workers:
        return workers


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
        with Workers():
            second_is_in.set()
            thread.join()  # the first leaves while the second is inside
            assert blas_threads() == {1}
        assert blas_threads() == before


def test_a_user_that_never_left_does_not_keep_the_limit():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        limit, lost = BlasLimit(), _User()
        limit.enter(lost)
        del lost  # as if an interrupt had kept it from leaving

        user = _User()
        limit.enter(user)
        limit.leave(user)

        assert blas_threads() == before


def test_libraries_with_one_thread_are_left_alone(monkeypatch):
    with threadpool_limits(1, user_api="blas"):
        monkeypatch.setattr("hirank.core.blas._set_threads", None)  # cannot be called
        with Workers():
            assert blas_threads() == {1}
